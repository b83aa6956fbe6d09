"""What may be wrong with a consumer group, and the same group without it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tidings.model.causes import MEMBER_OF, Cause
from tidings.model.consumers import Consumers, Member
from tidings.model.laws import Law
from tidings.model.system import Subscriber, System

_SLOW = 1.5  # times the mean of the fastest member


def without_trouble(group: Subscriber) -> Iterator[tuple[Cause, Subscriber]]:
    """Give the group without its slow member, with even keys, without crashes or redeliveries."""
    consumers = group.consumers
    if consumers is None:
        return
    without: list[tuple[Cause, Consumers]] = []
    slowest, fastest = _ends(group)
    if slowest is not None and fastest is not None:
        cause = Cause("slow member", f"{slowest.name}{MEMBER_OF}{group.name}")
        without.append((cause, consumers.with_member(slowest.name, fastest)))
    partitions = consumers.partitions
    if partitions is not None and (partitions.shares or partitions.owners):
        without.append((Cause("hot partition", group.name), consumers.with_even_keys()))
    if any(each.failure is not None for each in consumers.members):
        without.append((Cause("crashes", group.name), consumers.with_crashes(None)))
    if consumers.acknowledges:
        patient = replace(consumers, ack_wait_s=None, backoff_s=(), deliveries=None, qos=1)
        without.append((Cause("redelivery", group.name), patient))
    for cause, better in without:
        yield cause, replace(group, consumers=better)


def with_subscriber(system: System, place: int, other: Subscriber) -> System:
    """Make the system with another subscriber at an index."""
    everybody = list(system.subscribers)
    everybody[place] = other
    return replace(system, subscribers=tuple(everybody))


def _ends(group: Subscriber) -> tuple[Member | None, Law | None]:
    """Find the slowest member and the time of the fastest, where they differ by much."""
    assert group.consumers is not None
    timed = [
        (law.mean_s, member, law)
        for member in group.consumers.members
        if (law := member.processing or group.processing) is not None
    ]
    if len(timed) < 2:
        return None, None
    slowest, fastest = max(timed, key=_mean), min(timed, key=_mean)
    if slowest[0] < _SLOW * fastest[0]:
        return None, None
    return slowest[1], fastest[2]


def _mean(timed: tuple[float, Member, Law]) -> float:
    return timed[0]
