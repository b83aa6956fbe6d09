"""Changes that may help against a cause: what acts on it, where it acts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache

from tidings.errors import TidingsError
from tidings.model.behaviour import Channel
from tidings.model.causes import ALL_PUBLISHERS, ARROW, LIKE, MEMBER_OF, Cause, Cost, in_order
from tidings.model.consumers import Consumers
from tidings.model.loads import FULL_LOAD
from tidings.model.outcome import Outcome
from tidings.model.record_tables import column
from tidings.model.system import SCHEMES, Subscriber, System
from tidings.planning.adjustments import faster
from tidings.planning.change_kinds import Change, Factor, times
from tidings.planning.choices import ALL
from tidings.planning.selections import AT
from tidings.prediction.predict import predict

Changes = tuple[Change, ...]  # made together
# What acts on a cause at its place.
CHANGES = {
    "waiting": times("speed", "", 2.0),
    "service": times("speed", "", 2.0),
    "away": times("off", "", 0.5),
    "own queue": times("processing", "", 0.5),
    "overflow": times("speed", "", 2.0),
    "batches": Change("batch"),
    "network": times("bandwidth", "", 2.0),
    "crashes": Change("crashes"),
}
GROUP_TROUBLES = ("slow member", "hot partition", "redelivery")
_PATIENT = 4.0  # times what a member takes for all that it holds: ack waits that seldom end first
MOST_CAUSES = 8  # whose remedies are tried, the dearest
_MOST_LOOKED_AT = 4 * MOST_CAUSES  # for what the same changes act on
ROOM = 0.7  # load that an overloaded broker is brought to


def promising(
    system: System, outcome: Outcome, totals: list[Cost], most: int = MOST_CAUSES
) -> Iterator[Changes]:
    """Give changes that act on the dearest causes, in their order.

    Causes that the same changes act on, such as both directions of a link, are one. To promise less
    is a change only where the deadline itself is what costs most.
    """
    links = _links(system)
    together: dict[tuple[Changes, ...], Cost] = {}
    relief = cache(lambda: _relief(system, outcome))  # is predicted, and acts on every overload
    for each in totals[:_MOST_LOOKED_AT]:
        against = tuple(_against(system, each.cause, links, relief))
        if not against:
            continue
        known = together.get(against, each._replace(cost=0.0))
        together[against] = known._replace(cost=known.cost + each.cost)
    changes_of = {each.cause: against for against, each in together.items()}
    for number, (cause, *_) in enumerate(in_order(together.values())[:most]):
        if number == 0 or cause.kind != "deadline":
            yield from changes_of[cause]


def _against(
    system: System, cause: Cause, links: dict[str, str], relief: Callable[[], Changes]
) -> Iterator[Changes]:
    """Yield changes that act on one cause."""
    if cause.kind == "overload":
        yield relief()
    elif cause.kind in ("travel", "loss"):
        alike = cause.place.partition(ARROW)[2]  # all subscribers like one, under its name
        of = _target(system, alike) if alike.startswith(LIKE) else links[cause.place]
        yield from _nearer(system, cause, of)
    elif cause.kind in GROUP_TROUBLES:
        yield from _mended(system, cause)
    else:
        yield from _of_one(system, cause)


def _nearer(system: System, cause: Cause, of: str) -> Iterator[Changes]:
    """Yield changes of a link (``of``) that takes long or loses events."""
    if cause.kind == "travel" and cause.place in _narrow(system):
        yield (times("bandwidth", of, 2.0),)
    yield (times("delay", of, 0.5) if cause.kind == "travel" else Change("reliability", of, 1.0),)


def _of_one(system: System, cause: Cause) -> Iterator[Changes]:
    """Yield changes of one broker, publisher or subscriber."""
    kind, place = cause
    if kind == "outages":
        yield (Change("availability", place, 1.0),)
        used = system.used_recovery.scheme
        others = [each for each in SCHEMES if each not in (used, "none")]
        yield from ((Change("scheme", value=each),) for each in others)
    elif kind == "bursts":
        yield (Change("bursts", ALL if place == ALL_PUBLISHERS else place),)
    elif kind == "deadline":
        yield (times("lifetime", place or ALL, 2.0),)
    elif kind == "churn":
        yield (times("stays", ALL, 2.0),)
    elif kind == "back-pressure":
        faster = "waiting" if place in system.broker_index else "own queue"
        yield (CHANGES[faster]._replace(target=place),)
    elif kind in CHANGES:
        if kind == "own queue":
            yield from _more_members(system, place)
        yield (CHANGES[kind]._replace(target=_target(system, place)),)


def _mended(system: System, cause: Cause) -> Iterator[Changes]:
    """Yield changes of a consumer group against what is wrong with it."""
    for own, consumers in _groups(system):
        laws = [law for each in consumers.members if (law := each.processing or own.processing)]
        if cause.kind == "slow member":
            fastest = min(laws, key=lambda law: law.mean_s, default=None)
            for member in consumers.members:
                if fastest and cause.place == f"{member.name}{MEMBER_OF}{own.name}":
                    yield (Change("member", own.name, (member.name, fastest)),)
        elif cause.place == own.name and cause.kind == "hot partition":
            yield (Change("keys", own.name, "even"),)
        elif cause.place == own.name:
            slowest_s = max(law.mean_s for law in (*laws, own.processing) if law is not None)
            wait_s = _PATIENT * max(consumers.held, 1) * slowest_s
            yield (Change("ack_wait", own.name, float(f"{wait_s:.3g}")),)
            if consumers.held != 1:
                yield (Change("prefetch", own.name, 1),)


def _groups(system: System) -> Iterator[tuple[Subscriber, Consumers]]:
    for index in column(system.subscribers, "consumers").where(lambda each: each is not None):
        own = system.subscribers[int(index)]
        if own.consumers is not None:
            yield own, own.consumers


def _more_members(system: System, name: str) -> Iterator[Changes]:
    """Yield the change to twice as many members of a consumer group whose members are alike."""
    for own, consumers in _groups(system):
        if own.name == name and not consumers.members:
            yield (Change("members", name, 2 * consumers.count),)


def _target(system: System, place: str) -> str:
    """Name a component as changes do; many subscribers that are alike, by their broker."""
    if place.startswith(LIKE):
        name = place.removeprefix(LIKE)
        (home,) = (each.at for each in system.subscribers if each.name == name)
        return f"{AT}{home}"
    return place


def _relief(system: System, outcome: Outcome) -> Changes:
    """List changes that make all overloaded brokers fast enough for what arrives.

    Where more gets through one, more arrives at the next: theory says how much, if it can.
    """
    speeds: dict[str, float] = {}
    rows = outcome.brokers
    for _ in system.brokers:
        rows = rows[rows["utilisation"] >= FULL_LOAD]
        if rows.empty:
            break
        loads = rows["arrivals_per_s"] * rows["service_mean_s"]
        for name, load in zip(rows["broker"], loads, strict=True):
            speeds[name] = float(f"{speeds.get(name, 1.0) * max(load / ROOM, 1.1):.2g}")
        brokers = tuple(faster(each, speeds.get(each.name, 1.0)) for each in system.brokers)
        relieved = replace(system, brokers=brokers)
        try:
            rows = predict(
                relieved, by="theory", delays=False, error_bars=False, causes=False
            ).brokers
        except TidingsError:
            break
    return tuple(times("speed", name, factor) for name, factor in speeds.items())


def _narrow(system: System) -> set[str]:
    """List the directions of links that have a bandwidth, as causes name them."""
    narrow = {
        direction
        for link in system.links
        for channel, (one, other) in ((link.there, link.between), (link.back, link.between[::-1]))
        if _is_narrow(channel)
        for direction in (f"{one}{ARROW}{other}",)
    }
    for each in system.publishers:
        if _is_narrow(each.link):
            narrow.add(f"{each.name}{ARROW}{each.at}")
    for index in column(system.subscribers, "link").where(_is_narrow):
        own = system.subscribers[int(index)]
        narrow.add(f"{own.at}{ARROW}{own.name}")
    return narrow


def _is_narrow(channel: Channel) -> bool:
    return channel.bandwidth_bytes_per_s is not None


def _links(system: System) -> dict[str, str]:
    """Map each link's direction, as causes name it, to how changes name the link."""
    named = {}
    for link in system.links:
        for one, other in (link.between, link.between[::-1]):
            named[f"{one}{ARROW}{other}"] = link.name
    for publisher in system.publishers:
        named[f"{publisher.name}{ARROW}{publisher.at}"] = publisher.name
    for subscriber in system.subscribers:
        named[f"{subscriber.at}{ARROW}{subscriber.name}"] = subscriber.name
    return named


def factors(changes: Changes) -> list[float]:
    """List the factors of changes; empty where one of them has none."""
    known = [each.value.times for each in changes if isinstance(each.value, Factor)]
    return known if len(known) == len(changes) else []


def scaled(changes: Changes, power: float) -> Changes:
    """Raise the factors of changes to a power."""
    return tuple(each.scaled(power) for each in changes)


def size(changes: Changes) -> float:
    """Measure how large changes are: the sum of absolute logs of their factors.

    Changes without a factor count as log 3.
    """
    known = factors(changes)
    return sum(abs(math.log(each)) for each in known) if known else math.log(3.0)
