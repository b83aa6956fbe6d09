"""Why events are late or lost: where on its way each subscriber's time goes, and on which links.

Nothing is predicted here. The mean waits, services, delays and losses that an outcome reports per
broker and link are laid along the paths that each subscriber's events take, weighted by how many
events take them. Means add up along a path, so the parts of a mean delay are exact as far as the
reported means are; that the longest part also causes the lateness is a reading, not a theorem.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tidings.model import topology
from tidings.model.behaviour import Channel
from tidings.model.causes import ARROW, Cost
from tidings.model.laws import Deterministic, Law
from tidings.model.outcome import Outcome
from tidings.model.routes import Routes, route
from tidings.model.system import System


@dataclass(frozen=True, slots=True, kw_only=True)
class DelayPart:
    """A part of a mean delay: ``kind`` is wait or service (at a broker) or link."""

    kind: str
    place: str
    mean_s: float  # over all delivered events, also those that do not come by


@dataclass(frozen=True, slots=True, kw_only=True)
class Deadline:
    """A lifetime that a share of a subscriber's wanted events has; random ones by their mean."""

    lifetime_s: float
    share: float
    random: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Where one subscriber's time goes and its events are lost, the largest first."""

    parts: tuple[DelayPart, ...] = ()
    losses: tuple[tuple[str, float], ...] = ()  # link, share of the wanted events lost on it
    deadlines: tuple[Deadline, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reasons:
    """Explanations by subscriber, and how much of all lateness and loss each place sees."""

    subscribers: Mapping[str, Explanation] = field(default_factory=dict)
    late_through: Mapping[str, float] = field(default_factory=dict)  # broker: share of all late
    lost_on: Mapping[str, float] = field(default_factory=dict)  # link: share of all wanted events
    causes: Mapping[str, Sequence[Cost]] = field(default_factory=dict)  # of each subscriber
    totals: Sequence[Cost] = ()  # of all events


_Path = tuple[tuple[int, ...], tuple[int, ...]]  # brokers and arcs in order
_Paths = dict[tuple[int, int], dict[int, _Path]]  # [home of the publisher, tree][home of the other]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Journey:
    """The path of one publisher's events to one subscriber, along one tree."""

    publisher: int
    subscriber: int
    wanted_per_s: float
    brokers: tuple[int, ...]
    arcs: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _PlaceCosts:
    """What each broker and arc costs, from the outcome where it says and the system otherwise."""

    wait_s: tuple[float, ...]
    service_s: tuple[float, ...]
    delay_s: tuple[float, ...]
    lost: tuple[float, ...]


def explain(system: System, outcome: Outcome) -> Reasons:
    """Explain why events of each subscriber are late or lost, by what an outcome says of places."""
    routes = route(system)
    costs = _costs(system, routes, outcome)
    late = _late_shares(outcome)
    rates = routes.rates(np.array([each.rate_per_s for each in system.publishers]))
    paths: _Paths = {}
    lifetimes: dict[tuple[int, Law | None], tuple[Deadline, ...]] = {}
    explanations: dict[str, Explanation] = {}
    late_through: defaultdict[str, float] = defaultdict(float)
    lost_on: defaultdict[str, float] = defaultdict(float)
    all_late = all_wanted = 0.0
    for index, subscriber in enumerate(system.subscribers):
        journeys = list(_journeys(routes, rates, index, paths))
        parts, losses = _parts_and_losses(system, journeys, costs)
        alike = (int(routes.filter_of_subscriber[index]), subscriber.lifetime)
        if alike not in lifetimes:
            lifetimes[alike] = _deadlines(routes, rates, index, subscriber.lifetime)
        explanations[subscriber.name] = Explanation(
            parts=parts, losses=losses, deadlines=lifetimes[alike]
        )
        for each in journeys:
            names = (system.publishers[each.publisher].name, subscriber.name)
            share = late.get(names, late.get(("", subscriber.name), 0.0))
            late_per_s = share * each.wanted_per_s * subscriber.count
            all_late += late_per_s
            for broker in each.brokers:
                late_through[system.brokers[broker].name] += late_per_s
        wanted = subscriber.count * sum(each.wanted_per_s for each in journeys)
        all_wanted += wanted
        for place, share in losses:
            lost_on[place] += share * wanted
    return Reasons(
        subscribers=explanations,
        late_through=_divided(late_through, all_late),
        lost_on=_divided(lost_on, all_wanted),
    )


def _journeys(
    routes: Routes,
    rates: np.ndarray,
    subscriber: int,
    paths: _Paths,
) -> Iterable[_Journey]:
    """Yield how the events that a subscriber wants reach it.

    ``paths`` remembers those walked before.
    """
    wanted = routes.wanted_by(subscriber)
    home = int(routes.home_of_subscriber[subscriber])
    for tree in range(len(routes.trees)):
        mine = rates[:, wanted & (routes.tree_of_class == tree)].sum(axis=1)
        for publisher in np.flatnonzero(mine):
            start = int(routes.home_of_publisher[publisher])
            if (start, tree) not in paths:
                paths[start, tree] = _paths_from(routes, start, tree)
            brokers, arcs = paths[start, tree][home]
            yield _Journey(
                publisher=int(publisher),
                subscriber=subscriber,
                wanted_per_s=float(mine[publisher]),
                brokers=brokers,
                arcs=arcs,
            )


def _paths_from(routes: Routes, start: int, tree: int) -> dict[int, _Path]:
    walked: dict[int, _Path] = {start: ((start,), ())}
    for broker, into in topology.walk(routes.trees[tree], routes.arcs, start):
        if into >= 0:
            brokers, arcs = walked[routes.arcs[into].source]
            walked[broker] = ((*brokers, broker), (*arcs, into))
    return walked


def _parts_and_losses(
    system: System, journeys: Iterable[_Journey], costs: _PlaceCosts
) -> tuple[tuple[DelayPart, ...], tuple[tuple[str, float], ...]]:
    """Compute the parts of the mean delay over delivered events, and the shares lost by link."""
    time: defaultdict[tuple[str, str], float] = defaultdict(float)
    lost: defaultdict[str, float] = defaultdict(float)
    wanted = delivered = 0.0
    for each in journeys:
        alive = each.wanted_per_s
        wanted += alive
        for _, lossy, place in _links(system, each, costs):
            lost[place] += alive * lossy
            alive *= 1.0 - lossy
        # Every part is counted by the events that make it to the end.
        for delay_s, _, place in _links(system, each, costs):
            time["link", place] += alive * delay_s
        for broker in each.brokers:
            name = system.brokers[broker].name
            time["wait", name] += alive * costs.wait_s[broker]
            time["service", name] += alive * costs.service_s[broker]
        delivered += alive
    parts = [
        DelayPart(kind=kind, place=place, mean_s=value / delivered)
        for (kind, place), value in time.items()
        if delivered > 0 and value > 0
    ]
    shares = _divided(lost, wanted)
    return (
        tuple(sorted(parts, key=lambda part: -part.mean_s)),
        tuple(sorted(shares.items(), key=lambda item: -item[1])),
    )


def _links(
    system: System, journey: _Journey, costs: _PlaceCosts
) -> Iterable[tuple[float, float, str]]:
    """Yield mean delay, in seconds, loss and name of each link on the path, in order.

    Client links are included.
    """
    publisher, subscriber = system.publishers[journey.publisher], journey.subscriber
    yield *_client(publisher.link), f"{publisher.name}{ARROW}{publisher.at}"
    for arc in journey.arcs:
        ends = system.links[arc // 2].between[:: -1 if arc % 2 else 1]
        yield costs.delay_s[arc], costs.lost[arc], ARROW.join(ends)
    end = system.subscribers[subscriber]
    yield *_client(end.link), f"{end.at}{ARROW}{end.name}"


def _client(channel: Channel) -> tuple[float, float]:
    return channel.delay.mean_s, 1.0 - channel.reliability


def _costs(system: System, routes: Routes, outcome: Outcome) -> _PlaceCosts:
    brokers = outcome.brokers.set_index("broker").to_dict("index")
    links = outcome.links.set_index(["source", "target"]).to_dict("index")
    names = [broker.name for broker in system.brokers]
    ends = [(names[arc.source], names[arc.target]) for arc in routes.arcs]
    seen = list(zip(ends, routes.arcs, strict=True))
    return _PlaceCosts(
        wait_s=tuple(_known(brokers.get(name, {}).get("wait_mean_s"), 0.0) for name in names),
        service_s=tuple(_known(brokers.get(name, {}).get("service_mean_s"), 0.0) for name in names),
        delay_s=tuple(
            _known(links.get(pair, {}).get("delay_mean_s"), arc.channel.delay.mean_s)
            for pair, arc in seen
        ),
        lost=tuple(
            _known(links.get(pair, {}).get("lost"), 1.0 - arc.channel.reliability)
            for pair, arc in seen
        ),
    )


def _known(value: float | None, otherwise: float) -> float:
    return otherwise if value is None or math.isnan(value) else float(value)


def _late_shares(outcome: Outcome) -> dict[tuple[str, str], float]:
    """Map each pair to its late share, and under publisher ``""`` each subscriber as a whole."""
    whole = outcome.subscribers
    shares = {
        ("", name): _known(late, 0.0)
        for name, late in zip(whole["subscriber"], whole["late"], strict=True)
    }
    pairs = outcome.pairs[outcome.pairs["late"].notna()]
    keys = zip(pairs["publisher"], pairs["subscriber"], strict=True)
    return shares | dict(zip(keys, pairs["late"].astype(float), strict=True))


def _deadlines(
    routes: Routes, rates: np.ndarray, subscriber: int, own: Law | None
) -> tuple[Deadline, ...]:
    """List the lifetimes of the events a subscriber wants, by share; its own cuts them short."""
    wanted = routes.wanted_by(subscriber)
    published = rates.sum(axis=1)  # of each publisher, all classes
    shares: defaultdict[tuple[float, bool], float] = defaultdict(float)
    for row in routes.rows:
        laws = [law for law in (row.lifetime, own) if law is not None]
        if wanted[row.content_class] and laws:
            law = min(laws, key=lambda each: each.mean_s)
            key = (law.mean_s, not all(isinstance(each, Deterministic) for each in laws))
            shares[key] += row.probability * float(published[row.publisher])
    total = sum(shares.values())
    return tuple(
        Deadline(lifetime_s=lifetime_s, share=share / total, random=random)
        for (lifetime_s, random), share in sorted(shares.items())
        if total > 0
    )


def _divided(values: Mapping[str, float], total: float) -> dict[str, float]:
    return {key: value / total for key, value in values.items()} if total > 0 else {}
