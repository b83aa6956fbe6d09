"""``tidings audit``, in one process and on a cluster of several: the same answer."""

from __future__ import annotations

import contextlib
import json

import pandas as pd
import pytest
from spark_cluster import cluster

from tidings.cli.commands import run

EPOCH_NS = 1_700_000_000_000_000_000
SECOND_NS = 1_000_000_000


def at(seconds):
    return EPOCH_NS + round(seconds * SECOND_NS)


@pytest.fixture(scope="module")
def traces(tmp_path_factory):
    """Two hundred events to two subscribers, one of whom misses three and gets one too many."""
    folder = tmp_path_factory.mktemp("history")
    events = [f"e{n}" for n in range(200)]
    contents = ['{"a":1}' if n % 2 else '{"a":2}' for n in range(200)]
    pd.DataFrame(
        {
            "event": events,
            "publisher": "p",
            "published_ns": [at(n) for n in range(200)],
            "content": contents,
        }
    ).to_parquet(folder / "publications.parquet")
    pd.DataFrame(
        {
            "subscription": ["s", "s", "t"],
            "subscriber": ["ann", "ann", "bob"],
            "broker": "b",
            "action": ["subscribe", "unsubscribe", "subscribe"],
            "at_ns": [at(0), at(150.5), at(10)],
            "filter": ["{}", None, '{"a":1}'],
        }
    ).to_parquet(folder / "subscriptions.parquet")
    ann = [(e, "ann", at(n + 0.5)) for n, e in enumerate(events) if n < 150 and n not in (50, 60)]
    ann += [("e180", "ann", at(181))]
    bob = [(e, "bob", at(n + 0.5)) for n, e in enumerate(events) if n % 2 and n > 10 and n != 99]
    rows = pd.DataFrame([*ann, *bob], columns=["event", "subscriber", "received_ns"])
    rows.to_parquet(folder / "deliveries.parquet")
    (folder / "traces.json").write_text(
        json.dumps({"version": 1, "from_ns": at(0), "until_ns": at(201)})
    )
    return folder


BOUNDS = ("--subscription-delay", "2s", "--diffusion-delay", "1s")


@pytest.mark.slow
def test_a_history_is_audited_alike_here_and_on_a_cluster(
    traces, spark, tmp_path, capsys, monkeypatch
):
    """The numbers, the proofs and the exit code; on two worker processes the very same."""
    monkeypatch.setattr("tidings.cli.spark.started", lambda *_, **__: contextlib.nullcontext(spark))
    with cluster(tmp_path / "cluster") as machines:
        told = machines.run("audit", str(traces), *BOUNDS, "--json", "--to", str(tmp_path / "far"))
    code, elsewhere = told
    assert run(["audit", str(traces), *BOUNDS, "--json", "--to", str(tmp_path / "here")]) == 1
    here = json.loads(capsys.readouterr().out)
    assert (code, elsewhere) == (1, here)
    assert here["violations"] == {"legality": 1, "validity": 0, "liveness": 3}
    lost = [row["event"] for row in here["examples"] if row["kind"] == "liveness"]
    assert lost == ["e50", "e60", "e99"]
    wrong = here["examples"][0]
    assert (wrong["event"], wrong["subscriber"], wrong["notified_ns"]) == ("e180", "ann", at(181))
    assert here["totals"] == {
        "subscribers": 2, "guaranteed": 148 + 94, "notified": 146 + 93, "lost": 3,
        "notifications": 149 + 94, "illegal": 1, "invalid": 0,
    }  # fmt: skip
    for name in ("violations", "counts"):
        near, far = (pd.read_parquet(tmp_path / place / name) for place in ("here", "far"))
        order = sorted(near.columns)
        near, far = (each[order].sort_values(order, ignore_index=True) for each in (near, far))
        pd.testing.assert_frame_equal(near, far)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere", *BOUNDS], "wants a folder of trace tables"),
        (["TRACES", "--subscription-delay", "soon", "--diffusion-delay", "1s"], "'soon' is not"),
        (["TRACES", *BOUNDS, "--to", "TRACES"], "exists; choose another folder"),
        (["LACKING", *BOUNDS], "has no table subscriptions"),
    ],
)
def test_what_is_wrong_is_told_before_spark_starts(
    traces, tmp_path, capsys, monkeypatch, arguments, said
):
    monkeypatch.setattr("tidings.cli.spark.started", lambda *_, **__: pytest.fail("Spark began"))
    (tmp_path / "publications.parquet").touch()
    (tmp_path / "deliveries.parquet").touch()
    places = {"TRACES": str(traces), "LACKING": str(tmp_path)}
    assert run(["audit", *(places.get(each, each) for each in arguments)]) == 2
    assert said in " ".join(capsys.readouterr().err.split())
