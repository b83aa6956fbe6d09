"""Rates of events: over every arc, through every broker, and which stream feeds which.

Each publisher's events enter at its home broker, less what its link loses. From there a class of
content goes over an arc if somebody behind the arc wants it, and each arc passes on its
reliability. A broker that is offered more than it can do passes on what it can, the same share of
everything.

The *sources* of a system are its publishers and then its arcs, each seen where it arrives.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import sparse

from tidings.model import topology
from tidings.model.arrays import Bools, Floats, Ints
from tidings.model.laws import Law
from tidings.model.loads import FULL_LOAD
from tidings.model.routes import Routes
from tidings.model.system import System

_MOST_ROUNDS = 10_000
_SETTLED = 1e-13


@dataclass(frozen=True, kw_only=True)
class Flows:
    """Events per second; indices are positions in the system and in its routes."""

    routes: Routes
    entering: Floats  # [publisher, class]: what reaches the home broker
    offered: Floats  # [arc, class]: sent into the arc, before its losses
    arrivals: Floats  # [broker]
    passes: Floats  # [broker]: share of what arrives that leaves; below 1 where overloaded
    services: tuple[tuple[Law, ...], ...]  # of each broker's stations, in order
    open_to: Floats  # [arc, class]: the share of time in which the class goes over the arc
    settled: bool = True  # whether overloaded brokers that feed each other came to rest

    @property
    def loads(self) -> Floats:
        """Work offered to each broker's busiest station, in seconds per second."""
        means = [max((law.mean_s for law in laws), default=0.0) for laws in self.services]
        load: Floats = self.arrivals * np.array(means)
        return load

    @property
    def overloaded(self) -> Bools:
        """Brokers that are offered all they can do, or more."""
        return self.loads >= FULL_LOAD

    @cached_property
    def brought(self) -> Floats:
        """[source, class]: what every source brings to the broker it arrives at."""
        reliability = np.array([arc.channel.reliability for arc in self.routes.arcs])
        arcs = self.offered * reliability[:, None]
        return np.vstack([self.entering, arcs]) if len(arcs) else self.entering

    @cached_property
    def source_rates(self) -> Floats:
        """[source]: events per second that arrive."""
        rates: Floats = self.brought.sum(axis=1)
        return rates

    @cached_property
    def into(self) -> Ints:
        """[source]: the broker it arrives at."""
        targets = np.array([arc.target for arc in self.routes.arcs], dtype=np.int64)
        return np.concatenate([self.routes.home_of_publisher, targets])

    @cached_property
    def handed(self) -> sparse.csr_array:
        """[arc, source]: events per second that arrive over the arc and that the source brought."""
        arcs = self.routes.arcs
        first_arc = len(self.entering)
        rows, columns, rates = [], [], []
        out_of = np.array([arc.source for arc in arcs], dtype=np.int64)
        for broker in np.unique(out_of):
            sources = np.flatnonzero(self.into == broker)
            leaving = np.flatnonzero(out_of == broker)
            wanted = (self.routes.interest[leaving] > 0).astype(np.float64)
            kept = np.array([arcs[arc].channel.reliability for arc in leaving])
            block = (wanted @ self.brought[sources].T) * (self.passes[broker] * kept[:, None])
            block[sources[None, :] - first_arc == (leaving ^ 1)[:, None]] = 0.0  # never back
            if np.any(self.open_to[leaving] % 1.0):  # subscriptions come and go
                carried = self.source_rates[first_arc + leaving]
                total = block.sum(axis=1)
                block *= np.divide(carried, total, out=np.zeros_like(total), where=total > 0)[
                    :, None
                ]
            row, column = np.nonzero(block)
            rows.append(leaving[row])
            columns.append(sources[column])
            rates.append(block[row, column])
        shape = (len(arcs), self.into.size)
        if not rows:
            return sparse.csr_array(shape)
        places = (np.concatenate(rows), np.concatenate(columns))
        return sparse.coo_array((np.concatenate(rates), places), shape=shape).tocsr()


def flows(system: System, routes: Routes, open_to: Floats | None = None) -> Flows:
    """Compute the rates of a system in events per second, overloaded brokers included.

    ``open_to`` [arc, class] is the share of time in which a class goes over an arc, where
    subscriptions come and go; by default always if anybody behind the arc wants it.
    """
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
    links = np.array([each.link.reliability for each in system.publishers])
    entering = published * links[:, None]
    at_broker = np.zeros((len(system.brokers), routes.class_count))
    np.add.at(at_broker, routes.home_of_publisher, entering)
    rates = Flows(
        routes=routes,
        entering=entering,
        offered=np.empty(0),
        arrivals=np.empty(0),
        passes=np.ones(len(system.brokers)),
        services=services,
        open_to=(routes.interest > 0).astype(np.float64) if open_to is None else open_to,
    )
    for _ in range(_MOST_ROUNDS):
        offered = rates.open_to * offered_to_arcs(routes, at_broker, rates.passes)
        arrivals = _arrivals(routes, at_broker, offered)
        rates = replace(rates, offered=offered, arrivals=arrivals)
        wanted = 1.0 / np.maximum(rates.loads, 1.0)
        if np.all(np.abs(wanted - rates.passes) <= _SETTLED * rates.passes):
            return rates
        # Overloaded brokers that feed each other would swing to and fro: go half of the way.
        first = bool(np.all(rates.passes == 1.0))
        rates = replace(rates, passes=wanted if first else np.sqrt(wanted * rates.passes))
    return replace(rates, settled=False)


def _arrivals(routes: Routes, at_broker: Floats, offered: Floats) -> Floats:
    arrivals: Floats = at_broker.sum(axis=1)
    for arc, sent in zip(routes.arcs, offered.sum(axis=1), strict=True):
        arrivals[arc.target] += arc.channel.reliability * sent
    return arrivals


def offered_to_arcs(routes: Routes, at_broker: Floats, passes: Floats) -> Floats:
    """Compute what is sent into each arc, [arc, class], in events per second.

    ``at_broker`` is what enters at brokers, [broker, class]. Two sweeps over each tree: from the
    leaves inwards every broker hands on what entered behind it; then from the root outwards every
    broker hands to each neighbour what came from all the others.
    """
    offered = np.zeros((len(routes.arcs), routes.class_count))
    reliability = np.array([arc.channel.reliability for arc in routes.arcs])
    for index, tree in enumerate(routes.trees):
        mine = np.flatnonzero(routes.tree_of_class == index)
        wanted = routes.interest[:, mine] > 0
        local = at_broker[:, mine]
        carried = np.zeros((len(routes.arcs), mine.size))
        order = list(topology.walk(tree, routes.arcs, 0))
        behind = local.copy()
        for broker, into in reversed(order):
            if into >= 0:
                back = into ^ 1
                offered[back, mine] = sent = passes[broker] * behind[broker] * wanted[back]
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
            sent = passes[broker] * (came + others) * wanted[onwards]
            offered[np.ix_(onwards, mine)] = sent
            carried[onwards] = reliability[onwards, None] * sent
    return offered


def _sums_of_others(rows: Floats) -> Floats:
    """Sum, for each row, all the other rows, without subtracting (which leaves rounding)."""
    before, after = np.zeros_like(rows), np.zeros_like(rows)
    np.cumsum(rows[:-1], axis=0, out=before[1:])
    after[:-1] = np.cumsum(rows[:0:-1], axis=0)[::-1]
    total: Floats = before + after
    return total
