"""Paths of events from publishers to subscribers, all that lead to one broker at a time.

The paths to a home broker are a tree with the home as its root. Whatever multiplies along a path is
carried outwards from the home, so that a broker costs one step and not a path.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from tidings.model import topology
from tidings.model.arrays import Ints
from tidings.model.routes import Routes
from tidings.prediction.brokers import BrokerStages
from tidings.prediction.delays import Delays, Grid, from_law, nothing, stack


@dataclass(frozen=True, kw_only=True)
class Paths:
    """The stages of a system, from which paths are put together."""

    grid: Grid
    routes: Routes
    brokers: BrokerStages
    at_broker: Delays  # [source]: wait and service at the broker it arrives at
    over_arc: Delays  # [arc]
    publishers: int
    _tails: dict[tuple[int, int], Delays] = field(default_factory=dict)

    def with_longer_waits(self) -> Paths:
        """Stretch by one step of the grid all waits at brokers that are not known exactly."""
        waiting, exact = self.brokers.waiting, self.brokers.exact
        count = np.arange(len(waiting))
        both = stack([waiting, waiting.scaled(1)])
        longer = both.take(np.where(exact, count, count + len(waiting)))
        return replace(self, at_broker=longer.series(self.brokers.serving), _tails={})

    def tails(self, home: int, tree: int) -> Delays:
        """[broker]: from after a broker's own service to after that of the home."""
        key = (home, tree)
        if key not in self._tails:
            self._tails.clear()  # homes are asked for one after the other
            self._tails[key] = self._carried(home, tree)
        return self._tails[key]

    def _carried(self, home: int, tree: int) -> Delays:
        """Carry delays outwards from the home, all brokers at one distance together."""
        arcs = self.routes.arcs
        levels: list[list[tuple[int, int]]] = []  # broker, and the arc from it towards home
        distance = {home: 0}
        for broker, into in topology.walk(self.routes.trees[tree], arcs, home):
            if into >= 0:  # the walk leads away from home, the event comes the other way
                distance[broker] = distance[arcs[into].source] + 1
                if distance[broker] > len(levels):
                    levels.append([])
                levels[-1].append((broker, into ^ 1))
        parts, order = [nothing(self.grid)], [home]
        place = {home: 0}
        for level in levels:
            chosen = np.array([arc for _, arc in level], dtype=np.int64)
            onwards = parts[-1].take([place[arcs[arc].target] for arc in chosen])
            hop = self.over_arc.take(chosen).series(self.at_broker.take(self.publishers + chosen))
            parts.append(hop.series(onwards))
            place = {broker: index for index, (broker, _) in enumerate(level)}
            order += [broker for broker, _ in level]
        return stack(parts).take(np.argsort(order))

    def from_publishers(self, publishers: Ints, home: int, tree: int) -> Delays:
        """[publisher]: from its home broker, its wait there included, to after that of the home."""
        starts = self.routes.home_of_publisher[publishers]
        return self.at_broker.take(publishers).series(self.tails(home, tree).take(starts))


def paths(grid: Grid, routes: Routes, brokers: BrokerStages) -> Paths:
    """Put together the stages of a system."""
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
        publishers=routes.home_of_publisher.size,
    )
