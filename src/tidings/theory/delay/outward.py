"""What multiplies along paths, carried from a home broker outwards to all that events start at.

The paths to a home broker are a tree with the home as its root, so that a broker costs one step and
not a path. From one home to the next hardly anything changes: all that does not lie behind the
second, seen from the first, comes over the link between them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Generic, Protocol, Self, TypeVar

import numpy as np

from tidings.model.arrays import Ints
from tidings.model.routes import Routes

_KEPT = 12  # homes whose neighbours may come soon


class Rows(Protocol):
    """Rows of anything that can be put in series."""

    def take(self, rows: Ints | Sequence[int]) -> Self:
        """Select some rows, in the order asked for."""

    def series(self, then: Self) -> Self:
        """Let every row be followed by another; one row may serve all."""

    def overwritten(self, rows: Ints, part: Self) -> Self:
        """Put other rows in the place of some; what was there is gone."""


Part = TypeVar("Part", bound=Rows)


class Outward(Generic[Part]):
    """Rows for all brokers with publishers, from behind each to behind a home, home after home."""

    def __init__(
        self, routes: Routes, hops: Part, nothing: Part, stack: Callable[[Sequence[Part]], Part]
    ) -> None:
        self.routes = routes
        self.hops = hops  # [arc]: over the arc, and at the broker behind it
        self.nothing = nothing  # one row
        self.stack = stack
        self.starts = np.unique(routes.home_of_publisher)
        self._known: OrderedDict[tuple[int, int], Part] = OrderedDict()

    def to(self, home: int, tree: int) -> Part:
        """Compute the rows from after a broker's own service to after that of the home, [start]."""
        key = (home, tree)
        if key not in self._known:
            self._known[key] = self._carried(home, tree)
            if len(self._known) > _KEPT:
                self._known.popitem(last=False)
        self._known.move_to_end(key)
        return self._known[key]

    def rows_of(self, brokers: Ints | Sequence[int]) -> Ints:
        """Find the rows of brokers that publishers are at."""
        return np.searchsorted(self.starts, brokers)

    def _carried(self, home: int, tree: int) -> Part:
        arcs, outgoing = self.routes.arcs, self.routes.trees[tree].outgoing
        for arc in outgoing[home]:
            near = self._known.get((arcs[arc].target, tree))
            if near is not None:
                brokers, own = self._behind(home, tree, arc)
                beyond = near.series(self.hops.take([arc ^ 1]))
                fresh = beyond.take(np.arange(self.starts.size)) if beyond is near else beyond
                chosen = np.flatnonzero(np.isin(brokers, self.starts))
                return fresh.overwritten(self.rows_of(brokers[chosen]), own.take(chosen))
        brokers, own = self._behind(home, tree, -1)
        return own.take(np.argsort(brokers)[self.starts])

    def _behind(self, home: int, tree: int, away: int) -> tuple[Ints, Part]:
        """Compute rows of the home and all brokers behind it, but for those over the arc ``away``.

        All brokers at one distance together.
        """
        arcs, outgoing = self.routes.arcs, self.routes.trees[tree].outgoing
        parts, order = [self.nothing], [home]
        level = [(home, away)]
        while True:
            # For each broker further out: where it is, and the arc from it towards home.
            further = [
                (place, arc)
                for place, (broker, towards) in enumerate(level)
                for arc in outgoing[broker]
                if arc != towards
            ]
            if not further:
                return np.array(order, dtype=np.int64), self.stack(parts)
            back = np.array([arc ^ 1 for _, arc in further], dtype=np.int64)
            onwards = parts[-1].take([place for place, _ in further])
            parts.append(self.hops.take(back).series(onwards))
            level = [(arcs[arc].target, arc ^ 1) for _, arc in further]
            order += [broker for broker, _ in level]
