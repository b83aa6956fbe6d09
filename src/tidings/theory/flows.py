"""Which events flow where, per second: over every arc, through every broker, by class of content.

Each publisher's events enter at its home broker, less what it cannot send and its link loses. From
there a class goes over an arc while somebody behind the arc is subscribed to it, and each arc
passes on its reliability. A broker that is offered more than it can do passes on what it can, the
same share of everything.

Where subscriptions come and go these are means over time. An event that goes over an arc finds more
than that: it is there because somebody is subscribed, and so is all else that they draw.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tidings.model import topology
from tidings.model.laws import Law
from tidings.model.routes import Routes
from tidings.model.system import System
from tidings.theory.mobility.publishing import reaching_shares
from tidings.theory.presence import open_shares, same_audience
from tidings.theory.queues import FULL_LOAD

Floats = NDArray[np.float64]

_MOST_ROUNDS = 10_000
_SETTLED = 1e-13
_MOST_MET = 0.98  # load up to which what events find is more than the mean


@dataclass(frozen=True, slots=True, kw_only=True)
class Flows:
    """Events per second; indices are positions in the system and in its routes."""

    entering: Floats  # [broker, class]: from publishers, their link's losses taken off
    offered: Floats  # [arc, class]: sent into the arc, before its losses
    arrivals: Floats  # [broker]
    passes: Floats  # [broker]: share of what arrives that leaves; below 1 where overloaded
    services: tuple[tuple[Law, ...], ...]  # of each broker's stations, in order
    open_to: Floats  # [arc, class]: the share of time in which it goes over the arc
    settled: bool = True  # whether overloaded brokers that feed each other came to rest

    @property
    def loads(self) -> Floats:
        """Work offered to each broker's busiest station, in seconds per second.

        A station behind a busier one is offered no more than that one lets through.
        """
        means = [max((law.mean_s for law in laws), default=0.0) for laws in self.services]
        load: Floats = self.arrivals * np.array(means)
        return load

    @property
    def overloaded(self) -> NDArray[np.bool_]:
        """Brokers that are offered all they can do, or more."""
        return self.loads >= FULL_LOAD


def flows(system: System, routes: Routes) -> Flows:
    """The rates in a system, overloaded brokers included."""
    stored = system.stored_subscriptions
    services = tuple(
        tuple(
            station.service.with_stored(stored)
            for station in broker.stations
            if station.service is not None
        )
        for broker in system.brokers
    )
    published = routes.rates(np.array([each.rate_per_s for each in system.publishers]))
    kept = reaching_shares(system.publishers)
    open_to = open_shares(system, routes)
    entering = np.zeros((len(system.brokers), routes.class_count))
    np.add.at(entering, routes.home_of_publisher, published * kept[:, None])
    passes = np.ones(len(system.brokers))
    for _ in range(_MOST_ROUNDS):
        offered = open_to * _offered(routes, entering, passes)
        found = Flows(
            entering=entering,
            offered=offered,
            arrivals=_arrivals(routes, entering, offered),
            passes=passes,
            services=services,
            open_to=open_to,
        )
        wanted = 1.0 / np.maximum(found.loads, 1.0)
        if np.all(np.abs(wanted - passes) <= _SETTLED * passes):
            break
        # Overloaded brokers that feed each other would swing to and fro: go half of the way.
        first = np.all(passes == 1.0)
        passes = wanted if first else np.sqrt(wanted * passes)
    else:
        return replace(found, settled=False)
    return found


def met_flows(system: System, routes: Routes, found: Flows, *, by_guests: bool = False) -> Flows:
    """The rates as events find them where subscriptions come and go; else the same.

    Of all that arrives at a broker the share w is of classes that the same come for as for class c;
    these find c open, others find it so for its share p of the time: p + (1 − p) w. What is drawn
    by those who come and go alone (``by_guests``) finds more of that. Brokers are taken to settle
    sooner than subscribers come and go, and are not overloaded by this alone.
    """
    if np.all((found.open_to == 0.0) | (found.open_to == 1.0)):
        return found
    audience = same_audience(system, routes)
    raw = np.divide(
        found.offered, found.open_to, out=np.zeros_like(found.offered), where=found.open_to > 0.0
    )
    counted = found.offered * (found.open_to < 1.0) if by_guests else found.offered
    entering = np.zeros_like(found.entering) if by_guests else found.entering
    arrivals = _arrivals(routes, entering, counted)
    more = np.zeros_like(raw)
    for arc, each in enumerate(routes.arcs):
        _, group = np.unique(audience[arc], return_inverse=True)
        alike = np.bincount(group, weights=found.offered[arc])[group]
        arriving = max(float(arrivals[each.target]), 1e-300)
        share = np.minimum(each.channel.reliability * alike / arriving, 1.0)
        more[arc] = (1.0 - found.open_to[arc]) * share * (raw[arc] > 0.0)
    full = _with_open(routes, found, raw, found.open_to + more)
    spare = np.maximum(_MOST_MET - found.loads, 0.0)
    part = np.minimum(spare / np.maximum(full.loads - found.loads, 1e-300), 1.0)
    targets = np.array([arc.target for arc in routes.arcs], dtype=np.int64)
    return _with_open(routes, found, raw, found.open_to + part[targets, None] * more)


def _with_open(routes: Routes, found: Flows, raw: Floats, open_to: Floats) -> Flows:
    """The rates where arcs are open to classes for other shares of what would go over them."""
    offered: Floats = open_to * raw
    arrivals = _arrivals(routes, found.entering, offered)
    return replace(found, offered=offered, arrivals=arrivals, open_to=open_to)


def _arrivals(routes: Routes, entering: Floats, offered: Floats) -> Floats:
    arrivals: Floats = entering.sum(axis=1)
    for arc, sent in zip(routes.arcs, offered.sum(axis=1), strict=True):
        arrivals[arc.target] += arc.channel.reliability * sent
    return arrivals


def _offered(routes: Routes, entering: Floats, passes: Floats) -> Floats:
    """What is sent into each arc, [arc, class]: two sweeps over each tree.

    From the leaves inwards every broker hands on what entered behind it; then from the root
    outwards every broker hands to each neighbour what came from all the others.
    """
    offered = np.zeros((len(routes.arcs), routes.class_count))
    reliability = np.array([arc.channel.reliability for arc in routes.arcs])
    for index, tree in enumerate(routes.trees):
        mine = np.flatnonzero(routes.tree_of_class == index)
        open_to = routes.interest[:, mine] > 0
        local = entering[:, mine]
        carried = np.zeros((len(routes.arcs), mine.size))
        order = list(topology.walk(tree, routes.arcs, 0))
        behind = local.copy()
        for broker, into in reversed(order):
            if into >= 0:
                back = into ^ 1
                sent = passes[broker] * behind[broker] * open_to[back]
                offered[back, mine] = sent
                carried[back] = reliability[back] * sent
                behind[routes.arcs[into].source] += carried[back]
        for broker, into in order:
            onwards = np.array(
                [arc for arc in tree.outgoing[broker] if into < 0 or arc != into ^ 1],
                dtype=np.int64,
            )
            if not onwards.size:
                continue
            came = local[broker] + (carried[into] if into >= 0 else 0.0)
            others = _sums_of_others(carried[onwards ^ 1])
            sent = passes[broker] * (came + others) * open_to[onwards]
            offered[np.ix_(onwards, mine)] = sent
            carried[onwards] = reliability[onwards, None] * sent
    return offered


def _sums_of_others(rows: Floats) -> Floats:
    """For each row the sum of all the other rows, without subtracting (which leaves rounding)."""
    before, after = np.zeros_like(rows), np.zeros_like(rows)
    np.cumsum(rows[:-1], axis=0, out=before[1:])
    after[:-1] = np.cumsum(rows[:0:-1], axis=0)[::-1]
    total: Floats = before + after
    return total
