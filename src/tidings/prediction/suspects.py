"""Systems without a cause of late events: what each would be if one thing in it cost no time.

Those causes that are likelier to matter come first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from tidings.model.behaviour import Channel
from tidings.model.causes import ALL_PUBLISHERS, ARROW, Cause, usual_s
from tidings.model.laws import Deterministic, Exponential, Law
from tidings.model.outcome import Outcome
from tidings.model.record_tables import column
from tidings.model.system import (
    WHEN_FULL,
    Broker,
    FailureGroup,
    Link,
    Publisher,
    Subscriber,
    System,
)
from tidings.prediction.group_troubles import with_subscriber, without_trouble

_BROKERS, _LINKS, _CLIENTS = 8, 8, 3  # of each kind that are asked
_MANY = 2_000  # subscribers: of more, the clients' own causes are not asked
_EMPTY = 1_000.0  # times the intervals between events: nobody meets another
_FAILING = 4  # components whose outages are asked


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspect:
    """What a system would be without a cause; that of what is lost may have another name."""

    cause: Cause
    system: System
    when_lost: tuple[str, Cause] | None = None  # a column of losses, and the cause of those


def beyond_theory(system: System, before: Outcome) -> Iterator[Suspect]:
    """Give the causes that theory has no answer for."""
    yield from _bursts(system)
    yield from _groups(system, before)
    yield from _full(system)
    yield from _outages(system)


def all_suspects(system: System, before: Outcome) -> Iterator[Suspect]:
    """Yield causes that may matter, likelier ones first, each with the system without it."""
    yield from _brokers(system, before)
    yield from _links(system, before)
    yield from _bursts(system)
    yield from _outages(system)
    for network in system.networks:
        bare = _each_channel(system, partial(_off_network, network=network.name))
        kept = tuple(each for each in system.networks if each.name != network.name)
        yield Suspect(cause=Cause("network", network.name), system=replace(bare, networks=kept))
    yield from _publishers(system)
    if len(system.subscribers) <= _MANY:
        yield from _groups(system, before)
        yield from _queues(system, before)
        yield from _subscribers(system, before)
    yield from _full(system)
    yield Suspect(cause=Cause("deadline"), system=_emptied(system))


def _emptied(system: System) -> System:
    """Remove queueing (rates near 0), and what is slower than others of its kind."""
    slow = [
        replace(each.evenly(), every=Exponential(mean_s=_EMPTY / each.rate_per_s), batch=None)
        for each in system.publishers
    ]
    empty = _none_slower(replace(system, publishers=tuple(slow)))
    for place in _grouped(system):
        for cause, other in without_trouble(system.subscribers[place]):
            if cause.kind == "slow member":
                empty = with_subscriber(empty, place, other)
    return empty


def _none_slower(system: System) -> System:
    """Make brokers and links that are slower than usual as fast as is usual."""
    served_s = [each.service.law.mean_s if each.service else 0.0 for each in system.brokers]
    links_s = [side.delay.mean_s for each in system.links for side in (each.there, each.back)]
    own_s = [each.link.delay.mean_s for each in system.publishers]
    own_s += [each.link.delay.mean_s for each in system.subscribers]
    served, links, own = (
        dict(zip(means_s, usual_s(np.array(means_s)).tolist(), strict=True))
        for means_s in (served_s, links_s, own_s)
    )
    brokers = tuple(
        replace(each, service=replace(each.service, law=_no_slower(each.service.law, served)))
        if each.service
        else each
        for each in system.brokers
    )
    joined, near = (_each_channel(system, partial(_nearer, usual=usual)) for usual in (links, own))
    return replace(near, brokers=brokers, links=joined.links)


def _nearer(channel: Channel, usual: dict[float, float]) -> Channel:
    return replace(channel, delay=_no_slower(channel.delay, usual))


def _no_slower(law: Law, usual: dict[float, float]) -> Law:
    """Scale a law to what is usual, which is known by its mean in seconds."""
    at_most_s = usual.get(law.mean_s, law.mean_s)
    if at_most_s >= law.mean_s:
        return law
    return law.scaled(at_most_s / law.mean_s) if at_most_s > 0.0 else Deterministic(value_s=0.0)


def _brokers(system: System, before: Outcome) -> Iterator[Suspect]:
    """Yield systems in which one broker takes no time, the one that delays most first."""
    rows = before.brokers
    taken_s = (rows["wait_mean_s"] + rows["service_mean_s"]).fillna(0.0) * rows["arrivals_per_s"]
    for place in np.argsort(-taken_s.to_numpy(), kind="stable")[:_BROKERS]:
        row, broker = rows.iloc[place], system.brokers[place]
        if not broker.stations:
            continue
        waits = row["wait_mean_s"] >= row["service_mean_s"] or broker.blocks
        at_once = Broker(name=broker.name, failure=broker.failure)
        yield Suspect(
            cause=Cause("waiting" if waits else "service", broker.name),
            system=replace(system, brokers=_put(system.brokers, place, at_once)),
            when_lost=("lost_overflow", Cause("overflow", broker.name)),
        )


def _links(system: System, before: Outcome) -> Iterator[Suspect]:
    """Yield suspects: a link between brokers takes no time and loses nothing.

    First come the links that take most.
    """
    rows = before.links.copy()
    # Times and losses have no common unit: of each, the part that a link has of what all take.
    parts = rows[["delay_mean_s", "lost"]].mul(rows["events_per_s"], axis=0).fillna(0.0)
    rows["taken"] = (parts / parts.sum().replace(0.0, 1.0)).sum(axis=1)
    worst = rows[rows["taken"] > 0.0].nlargest(_LINKS, "taken")
    for source, target in worst[["source", "target"]].itertuples(index=False, name=None):
        for place, link in enumerate(system.links):
            if source in link.between and target in link.between:
                side = "there" if link.between == (source, target) else "back"
                channel: Channel = getattr(link, side)
                changed: dict[str, Any] = {side: _quick(channel)}
                direction = f"{source}{ARROW}{target}"
                yield Suspect(
                    cause=Cause("travel", direction),
                    system=replace(
                        system, links=_put(system.links, place, replace(link, **changed))
                    ),
                    when_lost=("lost_link", Cause("loss", direction)),
                )


def _bursts(system: System) -> Iterator[Suspect]:
    """Yield suspects: publishers publish evenly, those that publish most, and all together."""
    uneven = [place for place, each in enumerate(system.publishers) if each.is_uneven]
    uneven = [place for place in uneven if system.publishers[place].connectivity is None]
    even = list(system.publishers)
    for place in uneven:
        even[place] = system.publishers[place].evenly()
    if len(uneven) > 1:
        together = replace(system, publishers=tuple(even))
        yield Suspect(cause=Cause("bursts", ALL_PUBLISHERS), system=together)
    rates = {place: system.publishers[place].rate_per_s for place in uneven}
    for place in sorted(uneven, key=lambda each: -rates[each])[:_CLIENTS]:
        name = system.publishers[place].name
        yield _with_publisher(system, place, Cause("bursts", name), even[place])


def _outages(system: System) -> Iterator[Suspect]:
    """Yield suspects: brokers, links and groups of both that are down for longest never fail."""
    failing: list[tuple[float, Suspect]] = []
    for section in ("brokers", "links", "failure_groups"):
        records = getattr(system, section)
        for place, each in enumerate(records):
            down = _down(each)
            if down > 0.0:
                others = (
                    (*records[:place], *records[place + 1 :])
                    if isinstance(each, FailureGroup)
                    else _put(records, place, _steady(each))
                )
                changed: dict[str, Any] = {section: others}
                without = replace(system, **changed)
                failing.append((down, Suspect(cause=Cause("outages", each.name), system=without)))
    failing.sort(key=lambda item: -item[0])
    yield from (suspect for _, suspect in failing[:_FAILING])


def _down(record: Broker | Link | FailureGroup) -> float:
    """Give the share of the time in which something is down."""
    if isinstance(record, Link):
        both = (record.there.failure, record.back.failure)
        return max(1.0 - each.availability if each is not None else 0.0 for each in both)
    return 0.0 if record.failure is None else 1.0 - record.failure.availability


def has_failures(system: System) -> bool:
    """Say whether a broker or link fails at times."""
    fails = [_down(each) > 0.0 for each in system.brokers]
    fails += [_down(each) > 0.0 for each in system.links]
    return any(fails) or bool(system.failure_groups)


def _steady(record: Broker | Link) -> Broker | Link:
    if isinstance(record, Broker):
        return replace(record, failure=None)
    there, back = (replace(each, failure=None) for each in (record.there, record.back))
    return replace(record, there=there, back=back)


def _full(system: System) -> Iterator[Suspect]:
    """Yield suspects: buffers of brokers and groups hold nobody back, however full they are."""
    for place, broker in enumerate(system.brokers):
        if broker.blocks:
            without = replace(broker, buffer=None, when_full=WHEN_FULL[0])
            yield Suspect(
                cause=Cause("back-pressure", broker.name),
                system=replace(system, brokers=_put(system.brokers, place, without)),
            )
    for place in _grouped(system):
        own = system.subscribers[place]
        if own.consumers is not None and own.consumers.blocks:
            unbounded = replace(own.consumers, buffer=None, when_full=WHEN_FULL[0])
            other = with_subscriber(system, place, replace(own, consumers=unbounded))
            yield Suspect(cause=Cause("back-pressure", own.name), system=other)


def _publishers(system: System) -> Iterator[Suspect]:
    """Yield suspects: publishers send at once, are always there, and near."""
    for place, each in _first(system.publishers, lambda one: one.batch):
        changed = replace(each, batch=None)
        yield _with_publisher(system, place, Cause("batches", each.name), changed)
    for place, each in _first(system.publishers, lambda one: one.connectivity):
        changed = replace(each, connectivity=None)
        yield _with_publisher(system, place, Cause("away", each.name), changed)
    for place, each in _first(system.publishers, lambda one: _takes_time(one.link)):
        changed = replace(each, link=_quick(each.link))
        cause = Cause("travel", f"{each.name}{ARROW}{each.at}")
        yield _with_publisher(system, place, cause, changed)


def _groups(system: System, before: Outcome) -> Iterator[Suspect]:
    """Yield suspects: the worst consumer groups without a slow member, uneven keys or redeliveries.

    Each suspect is without one of these.
    """
    for place in _worst(system, before, lambda one: one.consumers):
        for cause, other in without_trouble(system.subscribers[place]):
            yield Suspect(cause=cause, system=with_subscriber(system, place, other))


def _grouped(system: System) -> list[int]:
    groups = column(system.subscribers, "consumers").where(lambda each: each is not None)
    return [int(each) for each in groups]


def _queues(system: System, before: Outcome) -> Iterator[Suspect]:
    """Yield suspects: subscribers and groups take no time; the worst of them."""
    for place in _worst(system, before, lambda one: one.consumers or one.processing):
        one = system.subscribers[place]
        at_once = with_subscriber(system, place, replace(one, processing=None, consumers=None))
        yield Suspect(cause=Cause("own queue", one.name), system=at_once)


def _subscribers(system: System, before: Outcome) -> Iterator[Suspect]:
    """Yield suspects: subscribers are always there, stay, and are near; the worst of them."""
    for place in _worst(system, before, lambda one: one.connectivity):
        one = system.subscribers[place]
        there = with_subscriber(system, place, replace(one, connectivity=None))
        yield Suspect(cause=Cause("away", one.name), system=there)
    for place in _worst(system, before, lambda one: _takes_time(one.link)):
        one = system.subscribers[place]
        name = f"{one.at}{ARROW}{one.name}"
        yield Suspect(
            cause=Cause("travel", name),
            system=with_subscriber(system, place, replace(one, link=_quick(one.link))),
            when_lost=("lost_link", Cause("loss", name)),
        )
    if any(each.stays is not None for each in system.subscribers):
        stay = tuple(replace(each, stays=None, away=None) for each in system.subscribers)
        yield Suspect(cause=Cause("churn"), system=replace(system, subscribers=stay))


def _worst(system: System, before: Outcome, has: Callable[[Subscriber], Any]) -> list[int]:
    """List the indices of those subscribers of which ``has`` holds that miss most events a second.

    A row that stands for many is counted as often.
    """
    rows = before.subscribers
    missed_per_s = (1.0 - rows["on_time"]) * rows["wanted_per_s"] * rows["count"]
    order = np.argsort(-missed_per_s.fillna(0.0).to_numpy(), kind="stable")
    return [int(each) for each in order if has(system.subscribers[int(each)])][:_CLIENTS]


def _with_publisher(system: System, place: int, cause: Cause, changed: Publisher) -> Suspect:
    publishers = _put(system.publishers, place, changed)
    return Suspect(cause=cause, system=replace(system, publishers=publishers))


def _first(
    publishers: Sequence[Publisher], has: Callable[[Publisher], Any]
) -> list[tuple[int, Publisher]]:
    """Find the busiest publishers that satisfy ``has``, with their indices."""
    having = [(place, each) for place, each in enumerate(publishers) if has(each)]
    return sorted(having, key=lambda item: -item[1].rate_per_s)[:_CLIENTS]


def _takes_time(channel: Channel) -> bool:
    return channel.delay.mean_s > 0.0 or channel.bandwidth_bytes_per_s is not None


def _quick(channel: Channel) -> Channel:
    """Remove a channel's own delays and losses; what it shares and when it fails stays."""
    return Channel(failure=channel.failure, network=channel.network)


def _off_network(channel: Channel, network: str) -> Channel:
    return replace(channel, network=None) if channel.network == network else channel


def _each_channel(system: System, change: Callable[[Channel], Channel]) -> System:
    """Change every channel of a system."""
    return replace(
        system,
        links=tuple(
            replace(each, there=change(each.there), back=change(each.back)) for each in system.links
        ),
        publishers=tuple(replace(each, link=change(each.link)) for each in system.publishers),
        subscribers=tuple(replace(each, link=change(each.link)) for each in system.subscribers),
    )


def _put(records: Sequence[Any], place: int, record: Any) -> tuple[Any, ...]:
    return (*records[:place], record, *records[place + 1 :])
