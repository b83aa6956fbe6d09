"""``tidings audit``, in one process and on a cluster of several: the same answer."""

from __future__ import annotations

import contextlib
import importlib.util
import json
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from spark_cluster import FEW_ROWS, cluster
from tidings.cli.commands import run
from tidings.histories.checking import checked_history
from tidings.histories.judging import VIOLATIONS, Bounds
from tidings.histories.summary import summary
from tidings.traces.reading import read_traces

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


@pytest.fixture
def shared(spark, few_rows, monkeypatch):
    """Commands use the session of the tests."""
    monkeypatch.setattr("tidings.cli.spark.started", lambda *_, **__: contextlib.nullcontext(spark))


def test_a_history_is_audited(traces, shared, tmp_path, capsys):
    """The numbers, the proofs, the tables and the exit code."""
    place = tmp_path / "out"
    assert run(["audit", str(traces), *BOUNDS, "--json", "--to", str(place)]) == 1
    found = json.loads(capsys.readouterr().out)
    assert {name: found[name] for name in EXPECTED} == EXPECTED
    lost = [row["event"] for row in found["examples"] if row["kind"] == "liveness"]
    assert lost == ["e50", "e60", "e99"]
    wrong = found["examples"][0]
    assert (wrong["event"], wrong["subscriber"], wrong["notified_ns"]) == ("e180", "ann", at(181))
    violations = pd.read_parquet(place / "violations")
    assert sorted(violations["event"]) == ["e180", "e50", "e60", "e99"]
    counts = pd.read_parquet(place / "counts").set_index("subscriber")
    assert counts.loc["ann", ["guaranteed", "lost", "illegal"]].tolist() == [148, 2, 1]


EXPECTED = {
    "violations": {"legality": 1, "validity": 0, "liveness": 3},
    "totals": {
        "subscribers": 2, "guaranteed": 148 + 94, "notified": 146 + 93, "lost": 3,
        "notifications": 149 + 94, "illegal": 1, "invalid": 0,
    },
    "set_aside": [],
}  # fmt: skip

SCRIPT = f"""
import json, sys
from tidings.histories import audiences, checking
from tidings.histories.checking import checked_history
from tidings.histories.judging import Bounds
from tidings.histories.summary import summary
from tidings.traces.reading import read_traces
from tidings.traces.session import spark_session

few = {FEW_ROWS | {"spark.sql.shuffle.partitions": "2"}}
with spark_session(sys.argv[1], settings=few) as spark:
    tables = read_traces(spark, sys.argv[2]).tables
    with checked_history(tables, Bounds(subscription_ns=2 * 10**9, diffusion_ns=10**9)) as found:
        said = summary(found, 10)
    audiences.LARGEST_AUDIENCE, checking.MOST_LIVES, checking.MOST_CONTENTS = 2, 5, 5
    tables = read_traces(spark, sys.argv[3]).tables
    with checked_history(tables, Bounds(subscription_ns=1, diffusion_ns=2)) as found:
        rows = [list(row) for row in found.ledger.collect()]
print(json.dumps({{"summary": said, "rows": rows}}))
"""


@pytest.fixture
def random_history(tmp_path):
    """Forty small random histories as one folder of traces, and as rows."""
    place = Path(__file__).parents[1] / "histories"
    made, naive = (_module(place / f"{name}.py") for name in ("conftest", "naive_history"))
    random = np.random.default_rng(8)
    parts = [made.random_history(random, f"h{n}") for n in range(40)]
    folder = tmp_path / "random"
    folder.mkdir()
    for name, rows in zip(made.NAMES, made.joined(parts), strict=True):
        pd.DataFrame(rows).to_parquet(folder / f"{name}.parquet")
    (folder / "traces.json").write_text(json.dumps({"version": 1, "from_ns": 0, "until_ns": 20}))
    violations = sum((naive.naive_check(part, 1, 2, False)[0] for part in parts), Counter())
    return folder, violations


def _module(path):
    spec = importlib.util.spec_from_file_location(f"audited_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.nightly
def test_a_cluster_of_processes_gives_the_same_answer(traces, random_history, tmp_path, tables_of):
    """A master, two workers, an executor on each: same violations, same rows, same counts.

    The second history in pieces there, as if it were huge, and in one piece here.
    """
    folder, violations = random_history
    with cluster(tmp_path / "cluster") as machines:
        elsewhere = machines.run(SCRIPT, str(traces), str(folder))
        executors = sorted(path.parent.name for path in (tmp_path / "cluster").glob("w?/app*/*/"))
    assert len(executors) == 2
    assert {name: elsewhere["summary"][name] for name in EXPECTED} == EXPECTED
    with checked_history(
        tables_of(traces), Bounds(subscription_ns=2 * SECOND_NS, diffusion_ns=SECOND_NS)
    ) as here:
        assert summary(here, 10) == elsewhere["summary"]
    with checked_history(tables_of(folder), Bounds(subscription_ns=1, diffusion_ns=2)) as here:
        rows = here.ledger.collect()
    assert sorted(map(list, rows), key=str) == sorted(elsewhere["rows"], key=str)
    found = {
        (row.kind, row.event, row.subscriber, row.notified_ns): row.rows
        for row in rows
        if row.kind in VIOLATIONS
    }
    assert found == violations
    assert len(found) > 300


@pytest.fixture
def tables_of(spark):
    return lambda folder: read_traces(spark, folder).tables


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere", *BOUNDS], "wants a folder of trace tables"),
        (["TRACES", "--subscription-delay", "soon", "--diffusion-delay", "1s"], "'soon' is not"),
        (["TRACES", *BOUNDS, "--to", "TRACES"], "exists already; choose another"),
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
