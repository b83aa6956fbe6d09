"""Paths of events from publishers to subscribers, all that lead to one broker at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tidings.kernels.paths import carry_outwards, invert_paths
from tidings.model.arrays import Bools, Complexes, Floats, Ints
from tidings.model.routes import Routes
from tidings.theory.delay.delays import Delays, from_law, nothing, stack
from tidings.theory.delay.distributions import Distributions
from tidings.theory.delay.grids import Grid
from tidings.theory.delay.outward import Outward

_MANY = 1 << 19  # transform values of all stages from which on paths are followed compiled


@dataclass(frozen=True, kw_only=True)
class BrokerStages:
    """What events of every source meet at the broker they arrive at; a row for each source."""

    waiting: Delays
    serving: Delays
    own: Floats  # [source]: dispersion of the stream that its queue feels
    others: Floats  # [source]: dispersion of all that arrives, of the busiest station
    exact: Bools  # [source]: whether the queue is solved without approximation


@dataclass(frozen=True, kw_only=True)
class Paths:
    """The stages of a system, from which paths are put together."""

    grid: Grid
    routes: Routes
    brokers: BrokerStages
    at_broker: Delays  # [source]: wait and service at the broker it arrives at
    over_arc: Delays  # [arc]
    entry: Delays  # [publisher]: to its home broker; one row where all are alike
    publishers: int

    def with_longer_waits(self) -> Paths:
        """Stretch by one step of the grid all waits at brokers that are not known exactly."""
        waiting, exact = self.brokers.waiting, self.brokers.exact
        count = np.arange(len(waiting))
        both = stack([waiting, waiting.scaled(1)])
        longer = both.take(np.where(exact, count, count + len(waiting)))
        return replace(self, at_broker=longer.series(self.brokers.serving).on(self.grid))

    def on(self, grid: Grid) -> Paths:
        """Keep of all distributions what a part of the grid needs."""
        if grid is self.grid:
            return self
        return replace(
            self,
            grid=grid,
            at_broker=self.at_broker.on(grid),
            over_arc=self.over_arc.on(grid),
            entry=self.entry.on(grid),
        )

    @cached_property
    def _outward(self) -> Outward[Delays]:
        arcs = np.arange(len(self.routes.arcs))
        hops = nothing(self.grid)
        if arcs.size:
            hops = self.over_arc.series(self.at_broker.take(self.publishers + arcs))
        return Outward(self.routes, hops, nothing(self.grid), stack)

    @cached_property
    def _outward_bare(self) -> Outward[Delays]:
        """The same without transforms."""
        hops, none = (_bare(each) for each in (self._outward.hops, self._outward.nothing))
        return Outward(self.routes, hops, none, stack)

    def tails(self, home: int, tree: int) -> Delays:
        """Compute delays from after a broker's service to after the home's, [start].

        Starts are the brokers with publishers.
        """
        return self._outward.to(home, tree)

    def tail_rows(self, starts: Ints | Sequence[int]) -> Ints:
        """Find the rows of brokers that publishers are at among these."""
        return self._outward.rows_of(starts)

    @cached_property
    def _at_first(self) -> Delays:
        """[publisher]: until its home broker has served the event."""
        return self.entry.series(self.at_broker.take(np.arange(self.publishers)))

    def from_publishers(
        self, publishers: Ints, home: int, tree: int, grid: Grid | None = None
    ) -> Delays:
        """Compute delays from publishers to after the home's service, [publisher].

        They are known at the times of a grid.
        """
        grid = grid or self.grid
        rows = self.tail_rows(self.routes.home_of_publisher[publishers])
        tails = self.tails(home, tree).on(grid)
        return self._at_first.on(grid).take_series(publishers, tails, rows)

    def distributions(self, publishers: Ints, home: int, tree: int, grid: Grid) -> Distributions:
        """Compute delay distributions from publishers to after the home's service, [publisher].

        They are known at the times of a grid.
        """
        if len(self.brokers.own) * self.grid.z.size <= _MANY:
            return self.from_publishers(publishers, home, tree, grid).distributions
        starts = self.routes.home_of_publisher[publishers]
        tails, first = self._scratch
        begin = int(np.searchsorted(self.grid.times_s, grid.times_s[0]))
        span = begin, begin + grid.times_s.size
        hops = self._outward.hops.values.reshape(-1, *tails.shape[1:])
        carry_outwards(home, self._arcs(tree), hops, span, tails, first)
        entries = self._at_first.values.reshape(-1, *tails.shape[1:])
        inverted = np.zeros((2, publishers.size, grid.times_s.size))
        invert_paths(publishers, starts, entries, tails, first, span, grid.rules, inverted)
        rows = self.tail_rows(starts)
        bare = _bare(self._at_first).take_series(
            publishers, self._outward_bare.to(home, tree), rows
        )
        return bare.distributed(grid, *inverted)

    @cached_property
    def _scratch(self) -> tuple[Complexes, Ints]:
        """[broker, time, node] and [broker], to be filled for one home after the other."""
        brokers, nodes = len(self.routes.trees[0].outgoing), self.grid.weights.size
        tails: Complexes = np.zeros((brokers, self.grid.times_s.size, nodes), dtype=np.complex128)
        return tails, np.zeros(brokers, dtype=np.int64)

    def _arcs(self, tree: int) -> tuple[Ints, Ints, Ints]:
        """List a tree's arcs by their sources: where each broker's begin, all of them, targets."""
        if tree not in self._known_arcs:
            outgoing = self.routes.trees[tree].outgoing
            begins = np.cumsum([0, *(len(each) for each in outgoing)])
            targets = np.array([arc.target for arc in self.routes.arcs], dtype=np.int64)
            every = np.array([arc for each in outgoing for arc in each], dtype=np.int64)
            self._known_arcs[tree] = begins, every, targets
        return self._known_arcs[tree]

    @cached_property
    def _known_arcs(self) -> dict[int, tuple[Ints, Ints, Ints]]:
        return {}


def _bare(delays: Delays) -> Delays:
    return replace(delays, values=delays.values[:, :0])


def paths(routes: Routes, brokers: BrokerStages, entry: Delays) -> Paths:
    """Put together the stages of a system."""
    grid = entry.grid
    known = {}
    for arc in routes.arcs:
        if arc.channel not in known:
            channel = arc.channel
            known[channel] = from_law(grid, channel.delay, channel.reliability)
    over_arc = [known[arc.channel] for arc in routes.arcs] or [nothing(grid)]
    return Paths(
        grid=grid,
        routes=routes,
        brokers=brokers,
        at_broker=brokers.waiting.series(brokers.serving),
        over_arc=stack(over_arc),
        entry=entry,
        publishers=routes.home_of_publisher.size,
    )
