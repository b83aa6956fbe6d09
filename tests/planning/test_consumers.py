"""How many consumers a target needs, against Erlang's formula, and settings that end redelivery."""

import math

import pytest

import tidings as td
from exact_queues import erlang_c
from tidings.errors import InvalidInputError
from tidings.planning.group_work import GroupWork

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


def test_settings_that_end_a_collapse_come_first():
    """Of a group that has collapsed it is not known which share is handled again."""
    collapsed = group(
        "{count: 2, prefetch: 10, ack_wait: 40ms, deliveries: 3}",
        rate=30,
        processing="{deterministic: 28ms}",
    )
    plan = td.plan_consumers(collapsed, target=0.99, **QUICK)
    as_it_is, *others = plan.settings
    assert (as_it_is.handled_again, as_it_is.on_time) == (1.0, 0.0)
    assert [each.handled_again for each in others if each.chosen] == [0.0]
    assert plan.choice.size <= 2  # busy .84 when nothing is done twice


def test_a_limit_is_tried_where_members_hold_whatever_there_is():
    """28 of the 30 ms that there are to acknowledge: only who holds one event makes it."""
    hasty = group(
        "{count: 2, prefetch: 0, ack_wait: 30ms}", rate=30, processing="{deterministic: 28ms}"
    )
    plan = td.plan_consumers(hasty, target=0.99, **QUICK)
    assert [each.change.value for each in plan.settings if each.chosen] == [1]
    assert plan.choice.size <= 2


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


def partitioned(members, shares, rate):
    """M/M/1 of each partition: 50 events/s at most, 200 ms."""
    count = shares if isinstance(shares, int) else f"{len(shares)}, shares: {list(shares)}"
    consumers = f"{{count: {members}, partitions: {{count: {count}}}}}"
    return group(consumers, rate=rate, processing="{exponential: 20ms}")


def on_time_of_owners(shares, rate, per_s=50.0, t=0.2):
    """Share on time where every partition has a member of its own."""
    return sum(s * max(1.0 - math.exp(-(per_s - s * rate) * t), 0.0) for s in shares)


@pytest.mark.parametrize("rate", [150, 220])
def test_more_partitions_than_there_are_let_more_members_help(rate):
    """Four partitions over six members: two have nothing to do, and the plan gives them some."""
    plan = td.plan_consumers(partitioned(6, 4, rate), target=0.99, **QUICK)
    least = next(n for n in range(1, 40) if on_time_of_owners([1 / n] * n, rate) >= 0.99)
    assert plan.choice.size == least > 4
    assert plan.bound.load == pytest.approx(rate / 4 / 50)
    assert not plan.bound.is_alone
    own = plan.plan.subscribers[0].consumers
    assert (own.count, own.partitions.count) == (least, least)
    played = td.simulate(plan.plan, events=40_000, seed=9).subscribers.iloc[0]
    assert played["on_time"] > 0.99 - 4 * played["on_time_se"]


def test_a_hot_key_is_bound_by_its_member_and_what_helps_is_proven():
    """Half of all events have one key: neither more members nor more partitions do."""
    shares = (0.5, *[0.1] * 5)
    plan = td.plan_consumers(partitioned(3, shares, 150), target=0.99, **QUICK)
    assert plan.choice is None
    assert plan.verdict == "misses"
    assert (plan.bound.partition, plan.bound.share) == (1, 0.5)
    assert plan.bound.load == pytest.approx(1.5)
    even, faster = plan.helps
    assert even.words == "keys 'w' even; members 'w' 6"
    stands = even.evidence.simulated
    exact = on_time_of_owners([1 / 6] * 6, 150)
    assert abs(stands.on_time - exact) < 2.0 * stands.error < 0.01  # four standard errors
    times = faster.changes[0].value.times
    assert on_time_of_owners(shares, 150, 50 / times) >= 0.99
    assert on_time_of_owners(shares, 150, 50 / times / 1.1) < 0.99
    assert faster.evidence.simulated.meets
    document = plan.to_document()
    assert document["helps"][0]["changes"] == ["keys 'w' even", "members 'w' 6"]
    assert document["bound"]["load"] == pytest.approx(1.5)


def test_where_members_are_not_the_trouble_nothing_about_them_is_advised():
    late = td.changed(partitioned(2, 4, 10), ["broker b {service: {exponential: 60ms}}"])
    plan = td.plan_consumers(late, target=0.99, **QUICK)
    assert plan.verdict == "misses"
    assert plan.helps == ()
    assert plan.bound is None


def work(members, shares, rate):
    return GroupWork.of(partitioned(members, shares, rate), "w")


def test_members_whose_turns_bring_hot_partitions_together_are_not_tried():
    """Three members: the first has both hot partitions; two have one of them each."""
    assert work(4, [0.4, 0.1, 0.1, 0.4], 80).sizes() == [2, 4]
    assert work(4, 4, 80).sizes() == [2, 3, 4]
    assert work(4, 4, 180).sizes() == [4]
    assert work(4, 4, 500).sizes() == [4]  # none is able: the best, to show how far off it is


def test_more_partitions_are_worth_a_try_unless_a_single_key_is_too_much():
    assert work(4, 4, 220).sizes_with_partitions()[0] == 5
    assert work(4, 4, 420).sizes_with_partitions()[0] == 9
    assert work(3, (0.5, *[0.1] * 5), 150).sizes_with_partitions() == []
    assert work(3, (0.3, *[0.14] * 5), 200).sizes_with_partitions()[0] > 8
    assert GroupWork.of(group("{count: 2}"), "w").sizes_with_partitions() == []


def test_more_partitions_leave_hot_keys_as_hot_as_they_are():
    spread = td.changed(partitioned(3, (0.5, *[0.1] * 5), 40), ["partitions w 12"])
    shares = spread.subscribers[0].consumers.partitions.used_shares
    assert shares == pytest.approx((0.45, *[0.05] * 11))
    even = td.changed(partitioned(3, 4, 40), ["partitions w 12"])
    assert even.subscribers[0].consumers.partitions.used_shares == pytest.approx([1 / 12] * 12)
    with pytest.raises(InvalidInputError, match="nothing that this change applies to"):
        td.changed(group("3"), ["partitions w 12"])
