"""The paths that events take round what is down, and bounds of whether there is one.

All states of the processes are cut into cells, in each of which some are known to be up and some to
be down (Dotson and Gobien). In the likeliest cell the path that an event takes, given what is down,
is used where all it needs is up; otherwise the first of its processes that is down makes a new
cell. What the cells with a path, and those without any, add up to bounds the truth from both sides.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from tidings.theory.repairs.components import Components, Path

_CLOSE, _MOST_CELLS = 1e-4, 2_000  # cells are cut until so little is open, or so many are
# Which paths are taken most is known from fewer cells: of all pairs of brokers together so many.
_CELLS_OF_PAIRS, _LEAST_CELLS = 60_000, 50
_MOST_PATHS = 24  # that are looked at, each with its own delay
_RARE = 1e-4  # share of a path that is not looked at

Down = frozenset[int]  # processes


@dataclass(frozen=True, slots=True)
class Detours:
    """Paths with the probability that each is taken, and how likely it is that there is none."""

    shares: Mapping[Path, float]
    none: float

    @property
    def bounds(self) -> tuple[float, float]:
        """Between which P[there is a path] lies."""
        return min(sum(self.shares.values()), 1.0), max(1.0 - self.none, 0.0)

    def likeliest(self) -> list[tuple[float, Path]]:
        """List the paths taken most, with shares that sum to 1."""
        ordered = sorted(self.shares.items(), key=lambda each: -each[1])[:_MOST_PATHS]
        often = [(path, share) for path, share in ordered if share > _RARE * ordered[0][1]]
        total = sum(share for _, share in often)
        return [(share / total, path) for path, share in often]


@dataclass(frozen=True, kw_only=True)
class Detouring:
    """Brokers and links as a graph in which events go round what is down."""

    components: Components

    @cached_property
    def _neighbours(self) -> list[list[tuple[int, int]]]:
        """Of each broker: neighbours by position, and the arcs to them."""
        beside: list[list[tuple[int, int]]] = [[] for _ in self.components.of_broker]
        for link, (first, second) in enumerate(self.components.ends):
            beside[first].append((second, 2 * link))
            beside[second].append((first, 2 * link + 1))
        return [sorted(each) for each in beside]

    def is_up(self, broker: int, down: Down) -> bool:
        """Test whether a broker is up while these processes are down."""
        return down.isdisjoint(self.components.of_broker[broker])

    def is_open(self, arc: int, broker: int, down: Down) -> bool:
        """Test whether an arc, and the broker that it leads to, are up."""
        return down.isdisjoint(self.components.of_link[arc >> 1]) and self.is_up(broker, down)

    def shortest(self, source: int, target: int, down: Down) -> Path | None:
        """Find the path of fewest hops over what is not down; ties by position."""
        came: dict[int, tuple[int, int]] = {source: (-1, -1)}
        waiting = deque([source])
        while waiting and target not in came:
            here = waiting.popleft()
            for there, arc in self._neighbours[here]:
                if there not in came and self.is_open(arc, there, down):
                    came[there] = (here, arc)
                    waiting.append(there)
        if target not in came:
            return None
        brokers, arcs = [target], []
        while brokers[-1] != source:
            broker, arc = came[brokers[-1]]
            brokers.append(broker)
            arcs.append(arc)
        return Path(tuple(reversed(brokers)), tuple(reversed(arcs)))

    def taken(self, usual: Path, down: Down) -> Path | None:
        """Follow an event: its usual path, and round what is down to the next broker of that."""
        if not self.is_up(usual.brokers[0], down):
            return None
        brokers, arcs = usual.brokers[:1], usual.arcs[:0]
        place, last = 0, len(usual.arcs)
        while place < last:
            arc, following = usual.arcs[place], usual.brokers[place + 1]
            if self.is_open(arc, following, down):
                brokers, arcs, place = (*brokers, following), (*arcs, arc), place + 1
                continue
            goals = range(place + 1, last + 1)
            rounds = (
                (goal, self.shortest(brokers[-1], usual.brokers[goal], down)) for goal in goals
            )
            place, detour = next(((goal, each) for goal, each in rounds if each), (place, None))
            if detour is None:
                return None
            brokers, arcs = brokers + detour.brokers[1:], arcs + detour.arcs
        return Path(brokers, arcs)

    def likely_detours(self, usual: Path) -> Detours:
        """List the paths that events take, those taken most at least."""
        brokers = len(self.components.of_broker)
        cells = _CELLS_OF_PAIRS // max(brokers * (brokers - 1), 1)
        return self.detours(usual, min(max(cells, _LEAST_CELLS), _MOST_CELLS))

    def detours(self, usual: Path, most_cells: int = _MOST_CELLS) -> Detours:
        """List the paths that events take, as far as is worth it."""
        shares: dict[Path, float] = {}
        none, left, number = 0.0, 1.0, 0
        cells: list[tuple[float, int, Down, Down]] = [(-1.0, 0, frozenset(), frozenset())]
        while cells and left > _CLOSE and number < most_cells:
            negative, _, up, down = heapq.heappop(cells)
            share = -negative
            path = self.taken(usual, down)
            if path is None:
                none += share
                left -= share
                continue
            needed = {each for element in self.components.of_path(path) for each in element}
            for process in sorted(needed - up):
                available = self.components.processes[process].availability
                number += 1
                heapq.heappush(cells, (-share * (1.0 - available), number, up, down | {process}))
                up = up | {process}
                share *= available
            shares[path] = shares.get(path, 0.0) + share
            left -= share
        return Detours(shares, none)
