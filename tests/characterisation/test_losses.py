"""Measured losses by cause: exactly those of the run that was recorded."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from tidings.characterisation.fit.contents import read_contents
from tidings.characterisation.fit.fitting import fit
from tidings.characterisation.fit.losses import own_losses, reach_by_publisher
from tidings.characterisation.fit.measured import Tally
from tidings.characterisation.job import collect, observed_in
from tidings.characterisation.statistics import LOST, REACHED
from tidings.model.outcome import KEYS, LOSSES
from tidings.model.reading import loads
from tidings.model.trace_tables import TRACE_TABLES
from tidings.simulation.recording import record
from tidings.traces.reading import Traces, read_rows
from tidings.traces.window import TraceWindow

# Publishers at both ends and subscribers everywhere, so that every link loses in both directions;
# two trees over a cycle, so that what is behind a link depends on the content.
SYSTEM = """
tidings: 1
lifetime: 60ms
brokers:
  a: {service: {exponential: 4ms}}
  b: {service: {exponential: 3ms}}
  c: {service: {exponential: 5ms}}
  d: {service: {exponential: 2ms}}
links:
  - {between: [a, b], delay: {exponential: 10ms}, reliability: 0.95}
  - {between: [b, c], delay: {exponential: 10ms}, reliability: 0.9}
  - {between: [c, d], delay: {exponential: 10ms}, reliability: 0.92}
  - {between: [d, b], delay: {exponential: 10ms}, reliability: 0.97}
routing: {by: x, roots: {"1": b, "2": d}, root: c}
publishers:
  p:
    at: a
    every: {exponential: 20ms}
    link: {reliability: 0.96, delay: 1ms}
    content: [{p: 0.6, event: {x: 1}}, {p: 0.4, event: {x: 2}}]
  q:
    at: c
    every: {exponential: 30ms}
    link: {reliability: 0.98}
    content: [{p: 0.5, event: {x: 2}}, {p: 0.5, event: {x: 3}}]
subscribers:
  s: {at: c, wants: {x: 1}, link: {reliability: 0.9}}
  t: {at: d, wants: {}, link: {delay: {exponential: 5ms}}}
  u: {at: a, wants: {x: {above: 1}}, link: {reliability: 0.8}}
  v: {at: a, wants: {x: 2}}
"""


@pytest.fixture(scope="module")
def recording():
    return record(loads(SYSTEM), seed=3, duration_s=30.0)


@pytest.fixture(scope="module")
def traces(spark, recording):
    tables = {
        name: read_rows(spark.createDataFrame(table), TRACE_TABLES[name])
        for name, table in recording.tables.items()
    }
    window = TraceWindow(from_ns=recording.from_ns, until_ns=recording.until_ns)
    return Traces(tables=tables, window=window)


@pytest.fixture(scope="module")
def seen(traces):
    return collect(traces, traces.window, lambda _: None)


def losses(traces, seen, base) -> pd.DataFrame:
    found = fit(observed_in(traces), seen, traces.window, base).measured.subscribers
    return found.set_index("subscriber")


@pytest.mark.parametrize("table", ["subscribers", "pairs"])
def test_losses_by_cause_are_exactly_those_of_the_recorded_run(recording, traces, seen, table):
    measured = fit(observed_in(traces), seen, traces.window, loads(SYSTEM)).measured
    keys = list(KEYS[table])
    found, truth = (
        getattr(each, table).set_index(keys).sort_index() for each in (measured, recording.outcome)
    )
    same = ["events", "on_time", "delivered", "late", *LOSSES]
    pd.testing.assert_frame_equal(found[same], truth[same], check_exact=True)
    assert (found["lost_link"] > 0.03).all()


def test_what_is_sent_where_events_may_be_dropped_stays_unexplained(recording, traces, seen):
    base = loads(SYSTEM)
    truth = recording.outcome.subscribers.set_index("subscriber")
    small = [replace(each, buffer=1000 if each.name == "d" else None) for each in base.brokers]
    limited = replace(base, brokers=tuple(small))
    found = losses(traces, seen, limited)
    lost = found["lost_link"] + found["lost_unexplained"]
    assert lost.to_numpy() == pytest.approx(truth.loc[found.index, "lost_link"], rel=1e-12)
    assert found.loc["t", "lost_unexplained"] > 0.05  # t lives behind every link into d
    failed = losses(traces, replace(seen, states=seen_down("d")), base)  # the same, for a reason
    pd.testing.assert_frame_equal(failed[list(LOSSES)], found[list(LOSSES)])
    cut = losses(traces, replace(seen, states=seen_down("c--b")), base)["lost_unexplained"]
    assert cut["s"] > 0.05  # behind the link from b to c, one way or the other
    elsewhere = losses(traces, replace(seen, states=seen_down("a--d")), base)["lost_unexplained"]
    assert (elsewhere == 0).all()
    away = replace(traces, tables={**traces.tables, "sessions": traces.tables["probes"]})
    uncertain = losses(away, seen, base)["lost_unexplained"]
    assert set(uncertain.index[uncertain > 0]) == {"s", "u"}
    assert uncertain["u"] > 0.05


def seen_down(component):
    """The statistic of a component of which is only known that it went down."""
    names = ["reason", "component", "up", "begun", "ended", "bin", "rows", "count", "total_s"]
    return pd.DataFrame([(None, component, False, None, None, np.nan, 1, 0, np.nan)], columns=names)


def test_without_a_word_of_where_events_were_sent_nothing_is_explained(traces, seen):
    silent = seen.sightings[seen.sightings["statistic"] == "published"]
    found = losses(traces, replace(seen, sightings=silent), loads(SYSTEM))
    assert (found["lost_link"] == 0).all()
    assert found["lost_unexplained"].to_numpy() == pytest.approx(1.0 - found["delivered"])
    assert np.all(found["lost_unexplained"] > 0.01)


def test_events_of_nameless_hops_were_where_these_say():
    """All of 10,000 events come to both brokers, and one hop in fifty says of none."""
    system = loads(
        "tidings: 1\nbrokers: {a: {}, b: {}}\nlinks: [{between: [a, b]}]\n"
        "publishers: {p: {at: a, every: 1s, content: {event: {x: 1}}}}\n"
        "subscribers: {near: {at: a, wants: {}}, far: {at: b, wants: {}}}\n"
    )
    text = '{"x": 1}'
    rows = [  # what b has seen was at a, whether that says so or not; of 4 nobody says anything
        (REACHED, None, "a", 9996),
        (REACHED, None, "b", 9800),
        (LOST, "a", "b", 196),
        (LOST, "p", None, 4),
    ]
    sightings = pd.DataFrame(rows, columns=["statistic", "source", "target", "events"])
    sightings = sightings.assign(publisher="p", content=text)
    known = sightings, read_contents([text]), system, frozenset()
    assert reach_by_publisher(*known)["p"].not_at_home.tolist() == [4.0, 200.0]
    corrected = reach_by_publisher(*known, nameless=0.02)["p"].not_at_home
    assert corrected == pytest.approx([0.0, 0.0], abs=0.1)


def test_what_a_neighbour_that_was_down_was_never_sent_is_no_loss_of_own_links():
    """Of 100 events 30 were not sent on, as nobody was known behind the link; 7 were lost."""
    system = loads(
        "tidings: 1\nbrokers: {a: {}, b: {}}\nlinks: [{between: [a, b]}]\n"
        "publishers: {p: {at: a, every: 1s, content: {event: {x: 1}}}}\n"
        "subscribers: {far: {at: b, wants: {}}}\n"
    )
    text = '{"x": 1}'
    rows = [(REACHED, None, "a", 100), (REACHED, None, "b", 70)]
    sightings = pd.DataFrame(rows, columns=["statistic", "source", "target", "events"])
    sightings = sightings.assign(publisher="p", content=text)
    nothing, wanted, came = (np.array([[each]]) for each in (0.0, 100.0, 63.0))
    tally = Tally(
        wanted=wanted, delivered=came, on_time=came, delay_s=nothing, lost_link=nothing[0]
    )

    def own(seen):
        reach = reach_by_publisher(seen, read_contents([text]), system, frozenset({"b"}))
        found = own_losses(system, {"p": tally}, reach, np.array([False]))
        return found.tried.tolist(), found.lost.tolist()

    assert own(sightings) == ([70.0], [7.0])
    silent = sightings[sightings["target"] == "a"]  # where b records nothing, nobody can tell
    assert own(silent) == ([100.0], [37.0])
