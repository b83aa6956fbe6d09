"""A Kafka cluster as the beginning of a system, from two readings of its offsets.

Between two readings the ends of logs grow: that is the rate of a topic and the share of each
partition. Groups become consumer groups with partitions and their owners. The cluster is one
broker: clients speak to the leader of a partition themselves, so nothing passes from one broker to
another on its way. What Kafka does not report, and is assumed: who produces, how long brokers and
handlers take.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tidings.errors import EngineError
from tidings.model.naming import few
from tidings.running.kafka_rounds import KafkaGroup, KafkaRound, Partition, two_rounds
from tidings.running.network import (
    SeenBroker,
    SeenNetwork,
    SeenPublisher,
    SeenSubscriber,
    SeenValue,
    assumed,
    every,
    flow,
    reported,
    seconds,
    text_of,
)

_CLUSTER = "kafka"
_SERVICE = assumed("1us", "Kafka does not tell what one message takes")
_LIFETIME = assumed("1s", "how long a message is of use is for you to say")
_LONGEST_HANDLING_S = 1e-3
_LOAD = 0.5  # of the busiest member, where nobody knows how long it takes for a message
_ANYBODY = SeenSubscriber(
    name="consumers",
    at=_CLUSTER,
    wants=({},),
    remark="assumed: no consumer group is known; wants everything",
)
_SIGMAS = 3.0  # by which partitions must differ from equal ones


def read_kafka(
    urls: Sequence[str], seconds_apart: float, settings: Path | None, groups: Sequence[str]
) -> tuple[SeenNetwork, tuple[str, ...]]:
    """Ask a cluster twice; gives what was learnt, and what was asked for it."""
    first, second = two_rounds(urls, seconds_apart, settings, groups)
    return kafka_network(first, second), (*first.asked, *second.asked)


def kafka_network(first: KafkaRound, second: KafkaRound) -> SeenNetwork:
    """Give the network that two readings describe."""
    elapsed_s = second.at_s - first.at_s
    both = sorted(first.ends.keys() & second.ends.keys())
    grown = {each: max(0, second.ends[each] - first.ends[each]) for each in both}
    topics = dict.fromkeys(topic for topic, _ in both)
    counts = {name: sum(n for (topic, _), n in grown.items() if topic == name) for name in topics}
    earlier = {group.name: group for group in first.groups}
    notes = list(dict.fromkeys((*first.refused, *second.refused)))
    groups = [group for group in second.groups if _topics(group)]
    subscribers = [
        _subscriber(group, earlier.get(group.name, group), second.ends, grown, elapsed_s)
        for group in groups
    ]
    if not counts:
        raise EngineError("the cluster has no topics but Kafka's own, so there is nothing to write")
    read = {topic for group in groups for topic in _topics(group)}
    shown = [topic for topic, count in counts.items() if count or topic in read] or list(counts)
    notes += _notes(first, second, groups, counts)
    return SeenNetwork(
        description=f"Kafka cluster of {second.brokers}, by its offsets",
        lifetime=_LIFETIME,
        brokers=(SeenBroker(name=_CLUSTER, service=_SERVICE),),
        publishers=tuple(_publisher(topic, counts[topic], elapsed_s) for topic in shown),
        subscribers=tuple(subscribers) or (_ANYBODY,),
        notes=tuple(notes),
    )


def _publisher(topic: str, count: int, elapsed_s: float) -> SeenPublisher:
    """Make the one producer of a topic that stands for all: Kafka does not tell who produces."""
    said = f"{count} messages in {elapsed_s:.3g} s; at random times, as far as known"
    none = f"no message came in {elapsed_s:.3g} s (--for), so it is about this or less"
    return SeenPublisher(
        name=f"producers of {topic}",
        at=_CLUSTER,
        every=reported(every(count / elapsed_s), said)
        if count
        else assumed(every(1 / elapsed_s), none),
        events=((1.0, {"topic": topic}),),
        events_from=assumed("", "one publisher for all producers, whom Kafka does not tell"),
    )


def _subscriber(
    group: KafkaGroup,
    before: KafkaGroup,
    ends: Mapping[Partition, int],
    grown: Mapping[Partition, int],
    elapsed_s: float,
) -> SeenSubscriber:
    owned = {each: member.name for member in group.members for each in member.partitions}
    topics = _topics(group)
    partitions = [each for each in grown if each[0] in topics]
    rates = {each: grown[each] / elapsed_s for each in partitions}
    moved = sum(at - before.committed.get(each, at) for each, at in group.committed.items())
    return SeenSubscriber(
        name=group.name,
        at=_CLUSTER,
        wants=tuple({"topic": topic} for topic in topics),
        remark=f"{group.state or 'consumer'} group, gets {sum(rates.values()):.4g}/s, is "
        f"{_behind(group, ends)} behind, committed {moved / elapsed_s:.4g}/s",
        processing=_processing(rates, owned),
        settings=tuple(_settings(group, partitions, grown, owned)),
    )


def _processing(rates: Mapping[Partition, float], owned: Mapping[Partition, str]) -> SeenValue:
    """Assume a handling time with which the busiest member keeps up."""
    busy: dict[str, float] = {}
    for partition, rate in rates.items():
        busy[owned.get(partition, "")] = busy.get(owned.get(partition, ""), 0.0) + rate
    most = max(busy.values(), default=0.0)
    mean_s = min(_LONGEST_HANDLING_S, _LOAD / most) if most else _LONGEST_HANDLING_S
    why = "Kafka does not know how long handlers take"
    if most:
        why += f"; a member that gets {most:.4g}/s keeps up below {seconds(1 / most)}"
    return assumed(f"{{exponential: {seconds(mean_s)}}}", why)


def _settings(
    group: KafkaGroup,
    partitions: Sequence[Partition],
    grown: Mapping[Partition, int],
    owned: Mapping[Partition, str],
) -> Iterator[tuple[str, SeenValue]]:
    if group.members:
        names = {member.name: dict[str, str]() for member in group.members}
        yield "members", reported(flow(names), "as its coordinator tells")
    else:
        why = "the group has no members now"
        if group.untold:
            why = f"members could not be read ({group.untold})"
        yield "count", assumed("1", why)
    if not partitions:
        return
    parts = [f"count: {len(partitions)}"]
    counts = [grown[each] for each in partitions]
    total = sum(counts)
    uneven = _differ(counts)
    if uneven:
        parts.append(f"shares: [{', '.join(_shares(counts))}]")
    all_owned = all(each in owned for each in partitions)
    if all_owned:
        parts.append(f"owners: [{', '.join(text_of(owned[each]) for each in partitions)}]")
    kept = "{" + ", ".join(parts) + "}"
    if not total:
        yield "partitions", assumed(kept, "no message came meanwhile: equal shares")
    elif group.members and not all_owned:
        yield "partitions", assumed(kept, "some have no owner now: members in turn")
    else:
        how = "shares of" if uneven else "equal, as far as is told by"
        yield "partitions", reported(kept, f"{how} {total} messages")


def _differ(counts: Sequence[int]) -> bool:
    """Tell whether messages fall into partitions unevenly, by a chi-square statistic.

    >>> _differ([10, 12, 9]), _differ([100, 5, 5])
    (False, True)
    """
    total, free = sum(counts), len(counts) - 1
    if not total or not free:
        return False
    mean = total / len(counts)
    statistic = sum((count - mean) ** 2 for count in counts) / mean
    return statistic > free + _SIGMAS * math.sqrt(2 * free)


def _shares(counts: Sequence[int]) -> list[str]:
    """Compute shares with five digits, of which the largest takes what rounding leaves.

    >>> _shares([1, 1, 1])
    ['0.33334', '0.33333', '0.33333']
    """
    shares = [round(count / sum(counts), 5) for count in counts]
    largest = shares.index(max(shares))
    shares[largest] = round(1 - sum(shares) + shares[largest], 5)
    return [f"{share:.5g}" for share in shares]


def _notes(
    first: KafkaRound, second: KafkaRound, groups: Sequence[KafkaGroup], counts: Mapping[str, int]
) -> Iterator[str]:
    """Yield what to know beside the file."""
    read = {topic for group in groups for topic in _topics(group)}
    idle = [topic for topic, count in counts.items() if not count and topic not in read]
    if idle and len(idle) < len(counts):
        yield f"nobody published to {few(idle)} meanwhile, and no group reads it: left out"
    unread = [topic for topic, count in counts.items() if count and topic not in read]
    if unread and groups:
        yield f"no consumer group reads {few(unread)}"
    if not groups:
        yield "no consumer group is known; one subscriber that wants everything stands for them"
    for group in groups:
        if group.untold:
            yield (
                f"group '{group.name}': members could not be read ({group.untold}); one is assumed"
            )
        elif not group.members:
            yield f"group '{group.name}' has no member now; the file gives it one"
    earlier = {group.name: group for group in first.groups}
    for group in groups:
        then = _behind(earlier.get(group.name), first.ends)
        now = _behind(group, second.ends)
        if now > then > 0:
            yield (
                f"group '{group.name}' falls behind, from {then} to {now} messages; offsets are "
                "committed every few seconds, so look for longer (--for) before you believe it"
            )


def _topics(group: KafkaGroup) -> list[str]:
    """List the topics that a group reads, or has read."""
    owned = (each for member in group.members for each in member.partitions)
    return sorted({topic for topic, _ in (*owned, *group.committed)})


def _behind(group: KafkaGroup | None, ends: Mapping[Partition, int]) -> int:
    """Count the messages that a group has not committed yet."""
    committed = {} if group is None else group.committed
    return sum(max(0, ends[each] - done) for each, done in committed.items() if each in ends)
