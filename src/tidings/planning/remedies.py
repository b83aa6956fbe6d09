"""Changes that may help against a cause, as sentences: what acts on it, where it acts."""

from __future__ import annotations

import json
from collections.abc import Iterator

from tidings.model.behaviour import LAW, Channel
from tidings.model.causes import ALL_PUBLISHERS, ARROW, LIKE, MEMBER_OF, Cause
from tidings.model.consumers import Consumers
from tidings.model.loads import FULL_LOAD
from tidings.model.outcome import Outcome
from tidings.model.record_tables import column
from tidings.model.system import SCHEMES, Subscriber, System
from tidings.planning.choices import ALL
from tidings.planning.selections import in_quotes

Changes = tuple[str, ...]  # made together
# What acts on a cause at a place.
CHANGES = {
    "waiting": "speed {} x2",
    "service": "speed {} x2",
    "away": "off {} x0.5",
    "own queue": "processing {} x0.5",
    "overflow": "speed {} x2",
    "batches": "batch {} none",
    "network": "bandwidth {} x2",
    "churn": "stays all x2",
    "crashes": "crashes {} none",
}
GROUP_TROUBLES = ("slow member", "hot partition", "redelivery")
_PATIENT = 4.0  # times what a member takes for all that it holds: ack waits that seldom end first
MOST_CAUSES = 8  # whose remedies are tried, the dearest
ROOM = 0.7  # load that an overloaded broker is brought to


def promising(
    system: System, outcome: Outcome, totals: list[tuple[Cause, float]]
) -> Iterator[Changes]:
    """Give changes that act on the dearest causes, in their order."""
    links = _links(system)
    for cause, _ in totals[:MOST_CAUSES]:
        if cause.kind == "overload":
            yield _relief(outcome)
        elif cause.kind in ("travel", "loss"):
            yield from _nearer(system, cause, links[cause.place])
        elif cause.kind in GROUP_TROUBLES:
            yield from _mended(system, cause)
        else:
            yield from _of_one(system, cause)


def _nearer(system: System, cause: Cause, of: str) -> Iterator[Changes]:
    """Yield changes of a link (``of``) that takes long or loses events."""
    if cause.kind == "travel" and cause.place in _narrow(system):
        yield (f"bandwidth {of} x2",)
    yield (f"delay {of} x0.5" if cause.kind == "travel" else f"reliability {of} 1",)


def _of_one(system: System, cause: Cause) -> Iterator[Changes]:
    """Yield changes of one broker, publisher or subscriber."""
    kind, place = cause
    if kind == "outages":
        yield (f"availability {_target(system, place)} 1",)
        used = system.used_recovery.scheme
        yield from ((f"scheme {one}",) for one in SCHEMES if one not in (used, "none"))
    elif kind == "bursts":
        yield (f"bursts {ALL if place == ALL_PUBLISHERS else in_quotes(place)} none",)
    elif kind == "deadline":
        yield (f"lifetime {in_quotes(place) if place else ALL} x2",)
    elif kind == "back-pressure":
        faster = "waiting" if place in system.broker_index else "own queue"
        yield (CHANGES[faster].format(_target(system, place)),)
    elif kind in CHANGES:
        if kind == "own queue":
            yield from _more_members(system, place)
        yield (CHANGES[kind].format(_target(system, place)),)


def _mended(system: System, cause: Cause) -> Iterator[Changes]:
    """Yield changes of a consumer group against what is wrong with it."""
    for own, consumers in _groups(system):
        laws = [law for each in consumers.members if (law := each.processing or own.processing)]
        target = in_quotes(own.name)
        if cause.kind == "slow member":
            fastest = min(laws, key=lambda law: law.mean_s, default=None)
            for member in consumers.members:
                if fastest and cause.place == f"{member.name}{MEMBER_OF}{own.name}":
                    yield (f"member {target} {json.dumps({member.name: LAW.write(fastest)})}",)
        elif cause.place == own.name and cause.kind == "hot partition":
            yield (f"keys {target} even",)
        elif cause.place == own.name:
            slowest_s = max(law.mean_s for law in (*laws, own.processing) if law is not None)
            yield (f"ack_wait {target} {_time(_PATIENT * max(consumers.held, 1) * slowest_s)}",)
            if consumers.held != 1:
                yield (f"prefetch {target} 1",)


def _groups(system: System) -> Iterator[tuple[Subscriber, Consumers]]:
    for index in column(system.subscribers, "consumers").where(lambda each: each is not None):
        own = system.subscribers[int(index)]
        if own.consumers is not None:
            yield own, own.consumers


def _time(seconds: float) -> str:
    return f"{seconds:.3g}s" if seconds >= 1.0 else f"{seconds * 1e3:.3g}ms"


def _more_members(system: System, name: str) -> Iterator[Changes]:
    """Yield the change to twice as many members of a consumer group whose members are alike."""
    for own, consumers in _groups(system):
        if own.name == name and not consumers.members:
            yield (f"members {_target(system, name)} {2 * consumers.count}",)


def _target(system: System, place: str) -> str:
    """Name a component as changes do; many subscribers that are alike, by their broker."""
    if place.startswith(LIKE):
        name = place.removeprefix(LIKE)
        (home,) = (each.at for each in system.subscribers if each.name == name)
        return in_quotes(f"at:{home}")
    return in_quotes(place)


def _relief(outcome: Outcome) -> Changes:
    """List changes that make all overloaded brokers fast enough for what arrives."""
    rows = outcome.brokers[outcome.brokers["utilisation"] >= FULL_LOAD]
    loads = rows["arrivals_per_s"] * rows["service_mean_s"]
    return tuple(
        f"speed {in_quotes(name)} x{max(load / ROOM, 1.1):.2g}"
        for name, load in zip(rows["broker"], loads, strict=True)
    )


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
            named[f"{one}{ARROW}{other}"] = in_quotes(link.name)
    for publisher in system.publishers:
        named[f"{publisher.name}{ARROW}{publisher.at}"] = in_quotes(publisher.name)
    for subscriber in system.subscribers:
        own = in_quotes(subscriber.name)
        named[f"{subscriber.at}{ARROW}{subscriber.name}"] = own
        like = f"{LIKE}{subscriber.name}"
        named[f"{subscriber.at}{ARROW}{like}"] = _target(system, like)
    return named
