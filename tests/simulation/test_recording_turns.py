"""What fails and who comes and goes, recorded: states and sessions."""

from __future__ import annotations

import numpy as np
import pytest

from tidings.model.connectivity_traces import periods_of
from tidings.model.reading import loads
from tidings.model.trace_tables import TRACE_TABLES
from tidings.simulation.recording import record, write_traces
from tidings.simulation.run import replicate, simulate

SYSTEM = """
tidings: 1
lifetime: 2s
recovery: {scheme: SCHEME, refresh: 3s}
failure_groups: {site: {members: [east, hub--east], failure: {mtbf: 60s, mttr: 6s}}}
routing: {root: hub}
brokers:
  hub: {service: {exponential: 7ms}, failure: {mtbf: 40s, mttr: 4s}}
  east: {service: {uniform: [0ms, 8ms]}}
  west: {}
links:
  - {between: [hub, east], delay: {exponential: 5ms}, reliability: 0.95}
  - {between: [hub, west], delay: 4ms, failure: {mtbf: 30s, mttr: 3s}}
  - {between: [east, west], delay: 4ms}
publishers:
  p:
    at: west
    every: {exponential: 40ms}
    connectivity: {on: {exponential: 20s}, off: {uniform: [0s, 10s]}, service: 1ms}
    content: {event: {k: 1}}
  q: {at: west, every: {exponential: 50ms}, content: {event: {k: 2}}, link: {delay: 1ms}}
subscribers:
  a: {at: hub, wants: {k: 1}}
  b:
    at: east
    wants: {}
    connectivity: {on: {exponential: 9s}, off: {exponential: 3s}, service: {exponential: 2ms}}
    processing: {exponential: 3ms}
"""
DURATION_S = 2_000.0


@pytest.fixture(scope="module", params=["periodic", "buffering", "bypass-buffering"])
def system(request):
    return loads(SYSTEM.replace("SCHEME", request.param))


@pytest.fixture(scope="module")
def recording(system):
    return record(system, seed=3, duration_s=DURATION_S, warmup_s=50.0, probes_per_s=0.1)


def frame(recording, name):
    return recording.tables[name].to_pandas()


def test_the_recorded_run_is_the_simulated_one(system, recording):
    counts = replicate(system, seed=3, replication=0, warmup_s=50.0, duration_s=DURATION_S)
    assert recording.tables["publications"].num_rows == counts.published.sum()
    assert recording.tables["deliveries"].num_rows == counts.delivered.sum()


@pytest.mark.parametrize("name", ["states", "sessions"])
def test_changes_alternate_within_the_window(recording, name):
    found = frame(recording, name)
    assert list(found.columns) == [column.name for column in TRACE_TABLES[name].columns]
    assert found["at_ns"].is_monotonic_increasing
    assert found["at_ns"].between(recording.from_ns, recording.until_ns).all()
    who = found.columns[0]
    for _, each in found.groupby(who):
        assert each["at_ns"].iloc[0] == recording.from_ns  # how it was when the window began
        assert (each["state"].to_numpy()[1:] != each["state"].to_numpy()[:-1]).all()
        assert each["at_ns"].is_unique
    wanted = {
        "states": {"hub", "east", "hub--east", "hub--west"},
        "sessions": {"p", "b"},
    }
    assert set(found[who]) == wanted[name]


def share_on(recording, found, on):
    """The share of the window in which each was ON or up."""
    shares = {}
    for who, each in found.groupby(found.columns[0]):
        ends = np.append(each["at_ns"].to_numpy()[1:], recording.until_ns)
        lasted = ends - each["at_ns"].to_numpy()
        shares[who] = lasted[(each["state"] == on).to_numpy()].sum() / lasted.sum()
    return shares


def test_times_on_and_up_are_the_systems(recording):
    # Some hundred turns each: a share is off by about (1 − share) √(2/turns).
    sessions = share_on(recording, frame(recording, "sessions"), "connected")
    assert sessions["p"] == pytest.approx(20 / 25, abs=0.09)
    assert sessions["b"] == pytest.approx(9 / 12, abs=0.09)
    states = share_on(recording, frame(recording, "states"), "up")
    assert states["hub"] == pytest.approx(40 / 44, abs=0.08)
    assert states["east"] == states["hub--east"] == pytest.approx(60 / 66, abs=0.08)


def test_nothing_happens_at_a_broker_that_is_down(recording):
    states = frame(recording, "states")
    hub = states[states["component"] == "hub"]
    hops = frame(recording, "hops")
    for column in ("arrived_ns", "left_ns"):
        inside = hops[(hops["broker"] == "hub") & (hops[column] <= recording.until_ns)][column]
        at = np.searchsorted(hub["at_ns"], inside, side="right") - 1
        on_edge = np.isin(inside, hub["at_ns"])  # what a crash sees to is done at that moment
        assert (hub["state"].to_numpy()[at][~on_edge] == "up").all()
        assert on_edge.mean() < 0.01


def test_what_arrived_had_been_sent(recording):
    hops = frame(recording, "hops")
    sent = hops.explode("sent_to").dropna(subset=["sent_to"])
    sent = sent[["event", "broker", "sent_to"]].drop_duplicates()
    arrived = hops[~hops["came_from"].isin(["p", "q"])]
    both = arrived.merge(
        sent,
        left_on=["event", "came_from", "broker"],
        right_on=["event", "broker", "sent_to"],
        how="left",
        indicator=True,
    )
    assert (both["_merge"] == "both").all()
    assert len(arrived) > 20_000


def test_a_publisher_that_is_away_sends_nothing(recording):
    sessions = frame(recording, "sessions")
    p = sessions[sessions["peer"] == "p"]
    hops = frame(recording, "hops")
    first = hops[(hops["came_from"] == "p") & (hops["arrived_ns"] < recording.until_ns)]
    at = np.searchsorted(p["at_ns"], first["arrived_ns"], side="left") - 1
    assert (p["state"].to_numpy()[np.maximum(at, 0)] == "connected").mean() > 0.9999
    waited_s = first.merge(frame(recording, "publications"), on="event")
    assert ((waited_s["arrived_ns"] - waited_s["published_ns"]) / 1e9).max() > 5.0


def test_recorded_sessions_drive_another_simulation(tmp_path):
    text = """
        tidings: 1
        brokers: {hub: {}}
        publishers: {q: {at: hub, every: {exponential: 1s}, content: {event: {k: 1}}}}
        subscribers: {b: {at: hub, wants: {}, connectivity: {PERIODS}}}
        """
    laws = text.replace("PERIODS", "on: {exponential: 9s}, off: {exponential: 3s}")
    write_traces(record(loads(laws), seed=3, duration_s=2_000.0), tmp_path / "traces")
    for replay in ("resample", "loop"):
        trace = f"trace: {tmp_path / 'traces' / 'sessions'}, replay: {replay}"
        system = loads(text.replace("PERIODS", trace))
        periods = periods_of(system.subscribers[0].connectivity, "b")
        off_s = np.array(periods.loop_s[1::2]) if periods.loop_s else np.array(periods.off.edges_s)
        away_s = (1 - periods.connected) * (off_s**2).mean() / (2 * off_s.mean())
        row = simulate(system, seed=1, replications=20, duration_s=20_000.0).subscribers.iloc[0]
        assert row["delay_mean_se_s"] < 0.02 * away_s
        assert abs(row["delay_mean_s"] - away_s) < 4.5 * row["delay_mean_se_s"]


def test_a_system_in_which_nothing_turns_has_neither_table():
    found = record(
        loads(
            """
            tidings: 1
            brokers: {hub: {}}
            publishers: {p: {at: hub, every: 1s, content: {event: {k: 1}}}}
            subscribers: {s: {at: hub, wants: {}, processing: 1ms}}
            """
        ),
        duration_s=10.0,
    )
    assert not {"states", "sessions"} & set(found.tables)
