"""Peers that come and go on real servers: what is kept for them, and when they get it."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from real_servers import latest_s
from tidings.errors import UnsupportedError
from tidings.model.behaviour import Connectivity
from tidings.model.laws import Deterministic, Exponential
from tidings.model.reading import loads
from tidings.testbed.running import run_testbed
from tidings.testbed.runs import TestbedOptions
from tidings.testbed.stations import PeerGate, gate, periods
from tidings.testbed.tables import lateness, trace_tables

pytestmark = pytest.mark.slow

MOBILE = """
tidings: 1
lifetime: 300ms
brokers: {a: {service: 2ms}, '../b "x"': {service: 2ms}}
links: [{between: [a, '../b "x"'], delay: 3ms}]
publishers:
  p: {at: a, every: {rate: 40/s}, content: [{p: 1, event: {topic: x}}]}
  q:
    {at: '../b "x"', every: {rate: 10/s}, content: [{p: 1, event: {topic: y}}],
     connectivity: {on: {exponential: 500ms}, off: {exponential: 400ms}, service: 5ms}}
subscribers:
  near: {at: a, wants: {}}
  roams:
    {at: '../b "x"', wants: {topic: x}, link: {delay: 4ms},
     connectivity: {on: {exponential: 500ms}, off: {exponential: 400ms}, service: 5ms}}
  forgets:
    {at: '../b "x"', wants: {topic: x},
     connectivity: {on: {exponential: 500ms}, off: {exponential: 400ms}, service: 5ms, buffer: 4}}
"""


@pytest.fixture(scope="module")
def run():
    return run_testbed(loads(MOBILE), TestbedOptions(duration_s=4.5, warmup_s=0.0, seed=4))


def received(run, name):
    names = [each.name for each in run.system.subscribers]
    mine = [each for each in run.deliveries if names[each.subscriber] == name]
    assert len(mine) == len({each.event for each in mine})  # each once, whatever was repeated
    return {each.event: each.received_s - run.start_s for each in mine}


def spans(run, name):
    """When a peer was connected."""
    changes = [each for each in run.sessions if each.peer == name]
    times_s = [each.at_s - run.start_s for each in changes]
    assert [each.is_connected for each in changes] == [True, False] * (len(changes) // 2) + (
        [True] * (len(changes) % 2)
    )
    return list(zip(times_s[::2], [*times_s[1::2], math.inf], strict=False))


def absences(run, name):
    return [(end, begin) for (_, end), (begin, _) in itertools.pairwise(spans(run, name))]


def test_everything_is_kept_for_a_subscriber_that_is_away(run):
    assert run.incomplete is None
    at_s = {each.event: each.at_s for each in run.publications}
    wanted = {event for event in at_s if event.startswith("p/")}
    got = received(run, "roams")
    assert set(got) == wanted
    order = sorted(wanted, key=at_s.__getitem__)
    times_s = np.array([got[event] for event in order])
    late_s = 2.0 * latest_s(run)  # after handing over, and after the link
    apart_s = times_s[10:] - times_s[:-10]
    assert (apart_s >= 10 * 0.005 - late_s).all()  # one after the other, 5 ms each
    assert absences(run, "roams")
    for begin_s, end_s in absences(run, "roams"):  # what left before may still be on the link
        assert not ((times_s > begin_s + 0.004 + late_s) & (times_s < end_s)).any()


def test_brokers_may_be_called_anything(run):
    hops = trace_tables(run)["hops"].to_pandas()
    sent = {(at, *to) for at, to in zip(hops["broker"], hops["sent_to"], strict=True)}
    odd = '../b "x"'
    assert sent == {("a", odd), (odd,), (odd, "a"), ("a",)}


def test_a_bounded_buffer_refuses_what_is_too_much(run):
    wanted = {each.event for each in run.publications if each.event.startswith("p/")}
    got = received(run, "forgets")
    assert set(got) < wanted
    assert len(wanted) - len(got) == run.layout.journal.overflowed["forgets"]


def test_a_publisher_that_is_away_keeps_its_events_itself(run):
    at_s = {each.event: each.at_s for each in run.publications if each.event.startswith("q/")}
    got = {event: at for event, at in received(run, "near").items() if event in at_s}
    assert set(got) == set(at_s)
    assert absences(run, "q")
    for begin_s, end_s in absences(run, "q"):
        held = [event for event in at_s if begin_s < at_s[event] < end_s]
        assert all(got[event] >= end_s for event in held)


def test_sessions_are_in_the_traces_and_coming_back_is_timed(run):
    sessions = trace_tables(run)["sessions"].to_pandas()
    assert set(sessions["peer"]) == {"q", "roams", "forgets"}
    assert set(sessions["state"]) == {"connected", "disconnected"}
    assert lateness(run)["connecting_p50_s"] > 0.0


def test_a_gate_hands_over_only_while_it_is_open():
    own = PeerGate(service=lambda: 2.0, periods=iter([(1.0, 4.0), (10.0, 13.0), (20.0, 99.0)]))
    assert [own.serve(at) for at in (0.0, 0.0, 2.0, 30.0)] == [3.0, 11.0, 13.0, 32.0]


@pytest.mark.statistical
def test_periods_begin_in_no_special_state():
    on, off, runs = Exponential(mean_s=3.0), Deterministic(value_s=1.0), 4_000
    open_at_0 = [
        next(periods(on, off, np.random.default_rng(seed)))[0] == 0.0 for seed in range(runs)
    ]
    assert abs(np.mean(open_at_0) - 0.75) < 4.0 * math.sqrt(0.75 * 0.25 / runs)
    same = Connectivity(on=on, off=off)
    assert gate(same, (1, 2)).period(5) == gate(same, (1, 2)).period(5)


def test_peers_that_come_and_go_do_not_meet_failures():
    failing = MOBILE.replace(
        "a: {service: 2ms}", "a: {service: 2ms, failure: {mtbf: 9s, mttr: 1s}}"
    )
    failing += "recovery: {scheme: periodic, refresh: 0s}\n"
    with pytest.raises(UnsupportedError, match=r"connectivity on brokers that fail.*publishers\.q"):
        run_testbed(loads(failing))
