"""``tidings spread`` on a simulated history: what was put in comes out, and no rule is broken."""

from __future__ import annotations

import contextlib
import json

import pytest

from tidings.cli.commands import run
from tidings.model import reading
from tidings.simulation.recording import record, write_traces

SYSTEM = """
tidings: 1
brokers: {a: {}, b: {}, c: {}}
links:
  - {between: [a, b], delay: 1s}
  - {between: [b, c], delay: 2s}
publishers:
  p: {at: a, every: {exponential: 200ms}, content: {event: {x: 1}}}
subscribers:
  s: {at: c, wants: {x: 1}, stays: {uniform: [4s, 40s]}, away: 9s}
"""


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    found = record(reading.loads(SYSTEM), duration_s=1_500.0, warmup_s=100.0, seed=2)
    folder = tmp_path_factory.mktemp("history") / "traces"
    write_traces(found, folder)
    return found, folder


@pytest.fixture
def shared(spark, few_rows, monkeypatch):
    """Commands use the session of the tests."""
    monkeypatch.setattr("tidings.cli.spark.started", lambda *_, **__: contextlib.nullcontext(spark))


def counted(found):
    """Events published in stays that were seen from end to end, and those told meanwhile."""
    steps, published, received = (
        found.tables[name].to_pandas() for name in ("subscriptions", "publications", "deliveries")
    )
    told = received.set_index("event")["received_ns"]
    began = steps[steps["action"] == "subscribe"].set_index("subscription")["at_ns"]
    ended = steps[steps["action"] == "unsubscribe"].set_index("subscription")["at_ns"]
    wanted, notified = 0, 0
    for stay in ended.index:
        if began[stay] > found.from_ns:
            mine = published[published["published_ns"].between(began[stay], ended[stay])]
            wanted += len(mine)
            notified += int((told.reindex(mine["event"]) < ended[stay]).sum())
    return wanted, notified


@pytest.mark.spark
@pytest.mark.slow
def test_what_a_simulated_history_tells(recording, shared, capsys):
    found, folder = recording
    assert run(["spread", str(folder), "--bins", "3", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    # Subscriptions at c reach b and a after 2 and 3 s, events at a reach b and c after 1 and 3 s,
    # or nobody while nobody is there.
    for what in ("subscriptions", "publications"):
        assert said[what]["worst_s"] == pytest.approx(3.0, abs=1e-6)
        assert said[what]["brokers"] == 2.0
    assert said["subscriptions"]["mean_s"] == pytest.approx(2.5, abs=1e-6)
    assert said["publications"]["mean_s"] == pytest.approx(2.0, abs=1e-6)
    assert said["publications"]["nowhere"] > 1_000
    points = said["subscriptions"]["points"]
    assert [row["reached"] for row in points] == [0.5, 1.0]  # every moment once
    for fit in ("worst", "typical"):
        assert said["rapidity"][fit]["within_s"] == pytest.approx(6.0, abs=1e-6)
        assert said["rapidity"][fit]["value"] == pytest.approx(1 / 3, abs=1e-6)
    # f and g are steps at the margins: nothing in them is notified.
    assert [row["notified"] for row in said["curves"]] == [0.0] * 6
    # Stays of mean length T are told of T − 6 s, but for those who stay for less.
    longest = said["shares"][-1]
    exact = 1.0 - 6.0 / longest["stay_mean_s"]
    assert longest["notified"] == pytest.approx(exact, abs=4 * longest["notified_se"] + 0.01)
    assert said["couples"] == 1  # the subscriber's broker and the publisher's, 3 s either way
    for row in said["shares"]:
        assert row["by_couples"] == pytest.approx(max(1.0 - 6.0 / row["stay_mean_s"], 0.0))
    # All of it, and nothing else, by hand.
    wanted, notified = counted(found)
    assert sum(share["events"] for share in said["shares"]) == wanted
    told = sum(share["events"] * share["notified"] for share in said["shares"])
    assert told == pytest.approx(notified, abs=1e-6)
    bounds = ["--subscription-delay", "3s", "--diffusion-delay", "3.1s"]
    assert run(["audit", str(folder), *bounds]) == 0
    assert "0 violations" in capsys.readouterr().out
