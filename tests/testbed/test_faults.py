"""Servers that are killed and links that are cut: what is lost, and what is kept, is as it should.

Outages are given, so that the fate of almost every event is certain. Around a change it depends on
how busy this machine is; what was published less than a margin from one is not looked at.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from real_servers import skip_if_later
from tidings.errors import UnsupportedError
from tidings.model.reading import loads
from tidings.testbed.breaking import rejoinings, usable_changes
from tidings.testbed.outages import Outage
from tidings.testbed.running import run_testbed
from tidings.testbed.runs import StateChange, TestbedOptions
from tidings.testbed.tables import manifest, trace_tables

pytestmark = pytest.mark.slow

CHAIN = """
tidings: 1
recovery: {scheme: SCHEME, refresh: 0s}
brokers:
  a: {service: 2ms}
  b: {service: 2ms, failure: {mtbf: 3s, mttr: 800ms}}
  c: {service: 2ms}
links:
  - {between: [b, a], delay: 3ms, failure: {mtbf: 4s, mttr: 600ms}}
  - {between: [b, c], delay: 3ms}
publishers:
  p:
    {at: a, every: {rate: 40/s},
     content: [{p: 0.6, event: {topic: x}}, {p: 0.4, event: {topic: y}, lifetime: 450ms}]}
subscribers:
  near: {at: a, wants: {}}
  mid: {at: b, wants: {topic: x}, link: {delay: 4ms}}
  far: {at: c, wants: {}}
"""
KILLED, CUT = (0.7, 1.8), (3.0, 3.9)
OUTAGES = [
    Outage(component="b", begin_s=KILLED[0], end_s=KILLED[1]),
    Outage(component="b--a", begin_s=CUT[0], end_s=CUT[1]),
]
MARGIN_S = 0.3
OPTIONS = TestbedOptions(duration_s=5.2, warmup_s=0.0, seed=2)


class Told:
    """A run, and of every event when it was published (from the start) and who got it when."""

    def __init__(self, scheme):
        self.run = run_testbed(loads(CHAIN.replace("SCHEME", scheme)), OPTIONS, outages=OUTAGES)
        skip_if_later(self.run, MARGIN_S / 3)
        self.tables = {name: each.to_pandas() for name, each in trace_tables(self.run).items()}
        self.at_s = {each.event: each.at_s for each in self.run.publications}
        self.topic = {each.event: each.content.event["topic"] for each in self.run.publications}

    def got(self, subscriber):
        names = [each.name for each in self.run.system.subscribers]
        return {
            each.event: each.received_s - self.run.start_s
            for each in self.run.deliveries
            if names[each.subscriber] == subscriber
        }

    def published(self, begin_s, end_s, topics=("x", "y")):
        return {
            event
            for event, at_s in self.at_s.items()
            if begin_s + MARGIN_S <= at_s < end_s - MARGIN_S and self.topic[event] in topics
        }


@pytest.fixture(scope="module")
def plain():
    return Told("periodic")


@pytest.fixture(scope="module")
def stored():
    return Told("buffering")


def test_plain_servers_lose_what_meets_a_failure_and_nothing_else(plain):
    assert plain.run.incomplete is None
    far, mid = plain.got("far"), plain.got("mid")
    assert set(plain.got("near")) == set(plain.at_s)
    for begin_s, end_s in (KILLED, CUT):
        assert plain.published(begin_s - MARGIN_S, end_s + MARGIN_S)
        assert not plain.published(begin_s, end_s) & set(far)
        assert not plain.published(begin_s, end_s) & set(mid)
    # What was asked for before is asked for again by itself, soon after.
    again_s = max(each.took_s for each in rejoinings(plain.run))
    for begin_s, end_s in (
        (0.0, KILLED[0]),
        (KILLED[1] + again_s, CUT[0]),
        (CUT[1] + again_s, 5.2),
    ):
        assert plain.published(begin_s, end_s, ["x"]) <= set(mid)
        assert plain.published(begin_s, end_s) <= set(far)


def test_stores_keep_what_meets_a_failure_until_it_is_over(stored):
    assert stored.run.incomplete is None
    assert set(stored.got("near")) == set(stored.at_s)
    for who in ("mid", "far"):
        got = stored.got(who)
        names = [each.event for each in stored.run.deliveries]
        wanted = {event for event in stored.at_s if stored.topic[event] == "x"}
        assert wanted <= set(got)  # none lost, whatever was killed
        for begin_s, end_s in (KILLED, CUT):
            held = stored.published(begin_s, end_s, ["x"])
            assert held
            assert min(got[event] for event in held) >= end_s
        assert len(names) == len({(each.event, each.subscriber) for each in stored.run.deliveries})


def test_what_expires_in_a_buffer_is_dropped_there(stored):
    far = stored.got("far")
    for event in (each for each in stored.at_s if stored.topic[each] == "y"):
        at_s = stored.at_s[event]
        if KILLED[0] < at_s < KILLED[1] - 0.45:
            assert event not in far  # it could not leave its buffer in time
        # Nor is it handed over too late, once it has waited.
        assert event not in far or not KILLED[0] < at_s < KILLED[1] or far[event] <= at_s + 0.451
    kept = stored.published(CUT[1], 5.2 + MARGIN_S, ["y"])
    assert kept <= set(far)


def test_repairs_are_written_down_and_joining_again_is_measured(plain, stored):
    for told in (plain, stored):
        states = told.tables["states"]
        assert states["component"].tolist() == ["b", "b", "b--a", "b--a"]
        assert states["state"].tolist() == ["down", "up", "down", "up"]
        changes_s = states["at_ns"].to_numpy() / 1e9 - told.run.nanoseconds(told.run.start_s) / 1e9
        assert (changes_s >= np.array([*KILLED, *CUT]) - 1e-4).all()
        assert manifest(told.run)["outages"] == 2
        took_s = [each.took_s for each in rejoinings(told.run) if each.component == "b"]
        assert len(took_s) == 1
        assert 0.0 < took_s[0] < CUT[0] - KILLED[1]
        joined_s = changes_s[1] - KILLED[1]  # what is stored is not lost while they join
        assert joined_s == pytest.approx(took_s[0] if told is plain else 0.0, abs=0.05)


def test_what_fails_again_before_it_has_joined_was_down_all_the_time():
    """Two brokers and a link; the link's lanes are not ready while broker b is down."""

    def lane(name):
        source, target = name.split("→")
        return SimpleNamespace(name=name, source=source, target=target)

    relay = SimpleNamespace(lanes=(lane("a→b"), lane("b→a")))
    readiness = [
        SimpleNamespace(lane=each.name, at_s=at_s, ready=ready)
        for at_s, ready in ((0.0, True), (1.0, False), (4.5, True), (5.0, False), (9.0, True))
        for each in relay.lanes
    ]
    layout = SimpleNamespace(
        links={"a--b": (relay,)}, relays=[relay], journal=SimpleNamespace(readiness=readiness)
    )
    states = [
        StateChange(component=component, is_up=is_up, at_s=at_s)
        for component, is_up, at_s in (
            ("b", False, 1.0), ("b", True, 2.0), ("b", False, 3.0), ("b", True, 4.0),
            ("b", False, 5.0), ("a--b", False, 5.5), ("a--b", True, 6.0), ("b", True, 8.0),
        )
    ]  # fmt: skip
    changes = usable_changes(SimpleNamespace(rejoined=[], states=states, layout=layout))
    assert [(each.component, each.is_up, each.at_s) for each in changes] == [
        ("b", False, 1.0), ("b", True, 4.5), ("b", False, 5.0),
        ("a--b", False, 5.5), ("a--b", True, 6.0), ("b", True, 9.0),
    ]  # fmt: skip


def test_hops_say_where_events_went(plain, stored):
    for told in (plain, stored):
        hops = told.tables["hops"]
        ways = set(zip(hops["came_from"], hops["broker"], strict=True))
        assert ways == {("p", "a"), ("a", "b"), ("b", "c")}
        assert not hops.duplicated(["event", "broker"]).any()
        left = hops[(hops["broker"] == "a") & hops["event"].isin(told.published(0.0, KILLED[0]))]
        assert {tuple(to) for to in left["sent_to"]} == {("b",)}


@pytest.mark.parametrize("recovery", ["{scheme: bypass}", "{scheme: periodic, refresh: 5s}"])
def test_schemes_that_servers_do_not_have_are_refused(recovery):
    system = loads(CHAIN.replace("{scheme: SCHEME, refresh: 0s}", recovery))
    with pytest.raises(UnsupportedError, match="periodic or buffering, and refresh: 0s"):
        run_testbed(system, OPTIONS)
