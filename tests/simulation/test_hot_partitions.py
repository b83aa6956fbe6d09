"""Partitions that are offered more than they can handle are late; others are as they are."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tidings as td
from tidings.errors import UnstableError
from tidings.simulation.hot_partitions import compile_steady
from tidings.simulation.network import compile_system
from tidings.simulation.recording import record
from tidings.simulation.run import replications
from tidings.simulation.world import Window

SYSTEM = """
tidings: 1
lifetime: 100ms
brokers: {{hub: {broker}}}
publishers: {{p: {{at: hub, every: {{rate: {rate}/s}}, content: {{event: {{}}}}}}}}
subscribers:
  group: {{at: hub, wants: {{}}, processing: {{exponential: 20ms}}, {link}consumers: {{{group}}}}}
"""
SKEWED = "partitions: {count: 4, shares: [0.7, 0.1, 0.1, 0.1]}"
CRASHES = "failure: {mtbf: 60s, mttr: 5s}"


def _system(group: str, link: str = "", broker: str = "{}", rate: int = 100) -> td.System:
    return td.loads(SYSTEM.format(group=group, link=link, broker=broker, rate=rate))


@pytest.mark.statistical
def test_the_others_of_a_group_are_on_time_as_queues_of_their_own():
    outcome = td.simulate(_system(f"count: 4, {SKEWED}"))
    row = outcome.subscribers.iloc[0]
    in_time = 0.3 * -math.expm1(-(50.0 - 10.0) * 0.1)  # three of four, each M/M/1
    assert abs(row["on_time"] - in_time) < 4.0 * row["on_time_se"]
    assert row["on_time_se"] < 0.002
    assert row["lost_overload"] == pytest.approx(0.7, abs=0.005)
    assert row["on_time"] + row["late"] + row["lost_overload"] == pytest.approx(1.0)


@pytest.mark.parametrize("group", [SKEWED, f"prefetch: 3, in_flight: 8, ack_wait: 5s, {SKEWED}"])
@pytest.mark.statistical
def test_the_same_becomes_of_them_if_the_queue_is_let_grow(group):
    system = _system(f"count: 4, {group}", broker="{service: {exponential: 4ms}}")
    window = Window(warmup_s=200.0, end_s=700.0)
    played = replications(compile_system(system), window, 5, range(8))
    shares = [each.on_time.sum() / each.wanted.sum() for each in played]
    row = td.simulate(system).subscribers.iloc[0]
    se = math.hypot(row["on_time_se"], np.std(shares, ddof=1) / math.sqrt(8))
    assert abs(np.mean(shares) - row["on_time"]) < 4.0 * se


def test_it_is_said_which_member_is_offered_too_much_and_what_helps():
    alone, several = (
        td.simulate(_system(group), events=2_000).remarks
        for group in (
            f"members: {{a: {{}}, b: {{}}, c: {{}}, d: {{}}}}, {SKEWED}",
            "count: 2, partitions: {count: 5, owners: ['1', '1', '1', '1', '2']}",
        )
    )
    (first,), (second,) = alone, several
    assert (first.kind, first.where) == ("overload", ("a of group",))
    assert first.size == pytest.approx(0.7 * 100 / 50)
    assert "costs 70 % of the group's events" in first.unit
    assert "spread the keys over more partitions" in first.do
    assert "other members" in second.do


@pytest.mark.parametrize(
    ("group", "link"),
    [
        (f"count: 4, prefetch: 0, in_flight: 20, {SKEWED}", ""),  # it takes all places in flight
        (f"count: 4, prefetch: 5, in_flight: 5, {SKEWED}", ""),
        ("count: 3, partitions: {count: 3}", "link: {delay: 10ms}, "),  # all, by the way back
        ("count: 3", "link: {delay: 10ms}, "),
        ("count: 3, in_flight: 1", ""),
        ("count: 3, fetch: {size: 2}", "link: {delay: 25ms}, "),
        ("count: 1, ack_wait: 5s, deliveries: 3", ""),  # what waits for its first is not given up
        ("count: 1, prefetch: 0, buffer: 5", ""),  # nothing waits where it is bounded
    ],
)
def test_a_group_that_has_no_steady_state_as_a_whole_is_refused(group, link):
    with pytest.raises(UnstableError, match="would grow without limit"):
        td.simulate(_system(group, link))


def test_lossy_links_spare_members_what_nobody_sends_again():
    link = "link: {reliability: 0.4}, "
    assert td.simulate(_system("count: 1", link), events=1_000).subscribers["on_time"].iloc[0] > 0.1
    with pytest.raises(UnstableError):
        td.simulate(_system("count: 1, ack_wait: 5s", link))


def test_events_are_not_given_up_where_they_may_be_dropped_or_recorded():
    bounded = _system(f"count: 4, buffer: 50, {SKEWED}")
    assert not compile_steady(bounded).tables["group_queues"]["given_up"].any()
    with pytest.raises(UnstableError):
        record(_system(f"count: 4, {SKEWED}"))


def test_who_may_take_over_such_a_partition_may_get_nothing_in_time():
    group = f"members: {{a: {{{CRASHES}}}, b: {{}}, c: {{}}, d: {{}}}}, {SKEWED}"
    outcome = td.predict(_system(group), seconds=1.0, causes=False)
    row = outcome.subscribers.iloc[0]
    assert row["error"] == row["on_time"] > 0.2
    assert "long run" in row["why"]
    assert [each.kind for each in outcome.remarks if each.kind != "few cycles"] == [
        "overload", "no steady state",
    ]  # fmt: skip


def test_where_too_many_copies_wait_for_a_member_the_group_is_named():
    system = _system("count: 2, prefetch: 0, ack_wait: 25ms", rate=90)
    with pytest.raises(UnstableError, match="the consumer group 'group'"):
        td.simulate(system, replications=2, duration_s=400.0, warmup_s=0.0, max_copies=20_000)


@pytest.mark.parametrize(
    ("group", "link", "do"),
    [
        ("count: 1", "", "add members"),
        ("count: 3", "link: {delay: 10ms}, ", "hold more events"),
        ("count: 3, in_flight: 1", "", "more events in flight"),
        (f"count: 4, prefetch: 5, in_flight: 5, {SKEWED}", "", "spread the keys"),
    ],
)
def test_what_helps_is_said_of_what_is_short(group, link, do):
    with pytest.raises(UnstableError, match=do):
        td.simulate(_system(group, link))
