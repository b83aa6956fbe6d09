"""The ways that an event takes while things fail, and rigorous bounds of whether there is one.

All states of the processes are cut into cells, in each of which some are known to be up and some to
be down (Dotson and Gobien). In the likeliest cell the way that an event takes, given what is down,
is found: it is the way used where all it needs is up; otherwise the first of its processes that is
down makes a new cell. What the cells with a way, and those without any, add up to bounds the truth
from both sides at any time, whether or not components fail together.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from tidings.theory.faults.components import Components, Path

Ends = tuple[tuple[int, int], ...]  # the two brokers of each link


@dataclass(slots=True, kw_only=True)
class WaysUsed:
    """Ways with the probability that each is used, and how likely it is that there is none."""

    shares: dict[Path, float] = field(default_factory=dict)
    none: float = 0.0

    @property
    def bounds(self) -> tuple[float, float]:
        """Between which P[there is a way] lies."""
        return min(sum(self.shares.values()), 1.0), max(1.0 - self.none, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """Brokers and links as a graph, with the processes that each depends on."""

    components: Components
    ends: Ends
    neighbours: tuple[tuple[tuple[int, int], ...], ...]  # of each broker: (broker, link)

    def shortest(self, source: int, target: int, down: frozenset[int]) -> Path | None:
        """The way of fewest hops without any process that is down; ties by position."""
        of_broker, of_link = self.components.of_broker, self.components.of_link
        if not (down.isdisjoint(of_broker[source]) and down.isdisjoint(of_broker[target])):
            return None
        came: dict[int, tuple[int, int]] = {source: (-1, -1)}
        waiting = deque([source])
        while waiting and target not in came:
            here = waiting.popleft()
            for there, link in self.neighbours[here]:
                if (
                    there not in came
                    and down.isdisjoint(of_broker[there])
                    and down.isdisjoint(of_link[link])
                ):
                    came[there] = (here, link)
                    waiting.append(there)
        return _traced(came, target) if target in came else None

    def taken(self, usual: Path, down: frozenset[int]) -> Path | None:
        """The way an event takes: its usual one, round what is down to the next broker that it
        can reach.
        """
        if not down:
            return usual
        of_broker, of_link = self.components.of_broker, self.components.of_link
        if not down.isdisjoint(of_broker[usual.brokers[0]]):
            return None
        brokers = usual.brokers[:1]
        links: tuple[int, ...] = ()
        place, last = 0, len(usual.links)
        while place < last:
            link, following = usual.links[place], usual.brokers[place + 1]
            if down.isdisjoint(of_link[link]) and down.isdisjoint(of_broker[following]):
                brokers, links, place = (*brokers, following), (*links, link), place + 1
                continue
            ways = (
                (goal, self.shortest(brokers[-1], usual.brokers[goal], down))
                for goal in range(place + 1, last + 1)
            )
            place, way = next(((goal, each) for goal, each in ways if each), (place, None))
            if way is None:
                return None
            brokers, links = brokers + way.brokers[1:], links + way.links
        return Path(brokers=brokers, links=links)


def network(components: Components, ends: Iterable[tuple[int, int]]) -> Network:
    """The graph of a system's links."""
    links = tuple(ends)
    beside: list[list[tuple[int, int]]] = [[] for _ in components.of_broker]
    for link, (first, second) in enumerate(links):
        beside[first].append((second, link))
        beside[second].append((first, link))
    return Network(
        components=components,
        ends=links,
        neighbours=tuple(tuple(sorted(each)) for each in beside),
    )


def _traced(came: dict[int, tuple[int, int]], target: int) -> Path:
    brokers, links = [target], []
    while came[brokers[-1]][0] >= 0:
        broker, link = came[brokers[-1]]
        brokers.append(broker)
        links.append(link)
    return Path(brokers=tuple(brokers[::-1]), links=tuple(links[::-1]))


def ways_used(
    known: Network, usual: Path, *, gap: float, most_cells: int, shortest: bool = False
) -> WaysUsed:
    """The ways that events take, as far as is needed to bring the bounds this close.

    The ``shortest`` ways instead give the same bounds, sooner.
    """
    ends = usual.brokers[0], usual.brokers[-1]
    processes = known.components.processes
    found = WaysUsed()
    left = 1.0
    number = 0
    cells: list[tuple[float, int, frozenset[int], frozenset[int]]] = [
        (-1.0, 0, frozenset(), frozenset())
    ]
    while cells and left > gap and number < most_cells:
        negative, _, up, down = heapq.heappop(cells)
        share = -negative
        way = known.shortest(*ends, down) if shortest and down else known.taken(usual, down)
        if way is None:
            found.none += share
            left -= share
            continue
        needed = {each for element in known.components.of_path(way) for each in element}
        for process in sorted(needed - up):
            available = processes[process].availability
            number += 1
            if available < 1.0:
                cell = (-share * (1.0 - available), number, up, down | {process})
                heapq.heappush(cells, cell)
            up = up | {process}
            share *= available
        found.shares[way] = found.shares.get(way, 0.0) + share
        left -= share
    return found
