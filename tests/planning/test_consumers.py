"""How many consumers a target needs, against Erlang's formula, and settings that end redelivery."""

import math

import pytest

import tidings as td
from exact_queues import erlang_c
from tidings.errors import InvalidInputError

QUICK = {"seconds": 5.0}


def group(consumers, *, rate=40, processing="{exponential: 40ms}", more=""):
    return td.loads(f"""
        tidings: 1
        lifetime: 200ms
        brokers: {{b: {{}}}}
        publishers: {{p: {{at: b, every: {{rate: {rate}/s}}, content: {{event: {{x: 1}}}}}}}}
        subscribers:
          w: {{at: b, wants: {{x: 1}}, processing: {processing}, consumers: {consumers}}}
          {more}
    """)


def on_time_of_mmc(rate, mean_s, members, t):
    waits, mu, spare = erlang_c(members, rate * mean_s), 1 / mean_s, members / mean_s - rate
    late = math.exp(-mu * t)
    return 1.0 - late - waits * mu * (late - math.exp(-spare * t)) / (spare - mu)


@pytest.mark.parametrize("target", [0.9, 0.985])
def test_the_least_members_are_those_of_erlang(target):
    plan = td.plan_consumers(group("{count: 9}"), target=target, **QUICK)
    shares = {members: on_time_of_mmc(40, 0.04, members, 0.2) for members in range(2, 20)}
    assert plan.choice.size == min(m for m, share in shares.items() if share >= target)
    assert plan.verdict == "meets"
    assert plan.settings == ()
    assert plan.plan.subscribers[0].consumers.count == plan.choice.size


def test_a_target_that_no_number_meets_is_said_to_be_missed():
    """Handling alone takes longer than the deadline for one event in a hundred and fifty."""
    plan = td.plan_consumers(group("{count: 2}"), target=0.999, **QUICK)
    assert plan.choice is None
    assert plan.verdict == "misses"


def test_more_members_than_partitions_are_not_tried():
    plan = td.plan_consumers(group("{count: 2, partitions: {count: 3}}"), target=0.99, **QUICK)
    assert max(option.size for option in plan.options) == 3


def test_settings_that_end_redelivery_come_first():
    twice = group(
        "{count: 2, prefetch: 10, ack_wait: 30ms, deliveries: 5}",
        rate=10,
        processing="{deterministic: 28ms}",
    )
    plan = td.plan_consumers(twice, target=0.99, **QUICK)
    as_it_is, *others = plan.settings
    assert as_it_is.handled_again > 0.02
    chosen = [each for each in others if each.chosen]
    assert len(chosen) == 1
    assert chosen[0].handled_again == 0.0
    assert plan.changes[0] == chosen[0].change
    again = td.simulate(plan.plan, events=20_000).subscribers["handled_again"]
    assert again.iloc[0] == 0.0


@pytest.mark.parametrize(
    ("system", "name", "want"),
    [
        (group("2"), "x", "no consumer group 'x'"),
        (group("2", more="v: {at: b, wants: {}, processing: 1ms, consumers: 2}"), None, "w, v"),
        (group("{members: {a: {}, b: {processing: 1ms}}}"), None, "not alike"),
    ],
)
def test_a_group_must_be_one_of_members_that_are_alike(system, name, want):
    with pytest.raises(InvalidInputError, match=want):
        td.plan_consumers(system, group=name, target=0.9)


def test_changes_say_how_a_group_shares_its_events():
    changed = td.changed(
        group("{members: {a: {count: 2}}, ack_wait: 1s}"),
        ["members w 5", "prefetch w 3", "ack_wait w 2s", "deliveries w 4"],
    )
    consumers = changed.subscribers[0].consumers
    assert consumers.members[0].count == 5
    assert (consumers.prefetch, consumers.ack_wait_s, consumers.deliveries) == (3, 2.0, 4)
