"""Whether two brokers can reach each other over any path, failure groups included.

Failure groups are looked at one state of theirs after the other: given that, everything is
independent.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np

from tidings.model.arrays import Bools, Floats
from tidings.theory.repairs.components import Components, Path
from tidings.theory.repairs.frontier import Graph, Labels, TooWideError, connected, joined

MOST_GROUPS = 8  # whose states are gone through one by one
MOST_STATES = 1 << 11  # of the processes of one path

Up = Mapping[int, bool]  # state of some processes


@dataclass(frozen=True, kw_only=True)
class Reachability:
    """Answers for one network, each worked out once."""

    components: Components

    @cached_property
    def _bridges(self) -> set[frozenset[int]]:
        import networkx as nx  # a fifth of a second to load, which few systems need

        links = nx.Graph(self.components.ends)
        return {frozenset(ends) for ends in nx.bridges(links)} if self.components.ends else set()

    def is_only_path(self, path: Path) -> bool:
        """Tell whether there is no other path between the ends of one."""
        return all(frozenset(ends) in self._bridges for ends in itertools.pairwise(path.brokers))

    @cached_property
    def _connected(self) -> Floats | None:
        """[broker, broker]: P[up and joined]; None where that is too large to be followed."""
        try:
            parts = [share * connected(graph) for _, share, graph in self._graphs()]
            joins: Floats = np.sum(parts, axis=0)
            return joins
        except TooWideError:
            return None

    def connected(self, path: Path) -> float | None:
        """Compute P[the ends of a path are up and joined]; None where that is too large."""
        exact = self._connected
        return None if exact is None else float(exact[path.brokers[0], path.brokers[-1]])

    def _graphs(self) -> Iterator[tuple[Up, float, Graph]]:
        """Yield every state of the failure groups, its probability, and the graph given it."""
        groups = sorted(self.components.shared)
        if len(groups) > MOST_GROUPS:
            raise TooWideError
        for works in itertools.product((True, False), repeat=len(groups)):
            state = dict(zip(groups, works, strict=True))
            share = math.prod(self._share(each, up) for each, up in state.items())
            yield state, share, self.graph(state)

    def _share(self, process: int, up: bool) -> float:
        available = self.components.processes[process].availability
        return available if up else 1.0 - available

    def graph(self, state: Up) -> Graph:
        """Build the graph of availabilities given the state of some processes."""
        parts = self.components

        def up(needed: tuple[int, ...]) -> float:
            own = (
                float(state[each]) if each in state else self._share(each, True) for each in needed
            )
            return math.prod(own)

        return Graph(
            brokers={broker: up(needed) for broker, needed in enumerate(parts.of_broker)},
            links={
                ends: up(needed) for ends, needed in zip(parts.ends, parts.of_link, strict=True)
            },
        )

    # ---- given the state of a path ---------------------------------------------------------------

    def cut_off(self, path: Path, survives: float) -> tuple[tuple[int, ...], Floats] | None:
        """Compute the joint phases in which an event must wait for its usual path.

        That is when its first broker is up and no path is, or the copy sent round is lost by chance
        (it ``survives`` with a probability). Shares are of the time in which the first broker is
        up; the processes come with them, the last varying fastest. None: too large to be followed.
        """
        parts = self.components
        needs = parts.of_path(path)
        order = tuple(sorted({each for needed in needs for each in needed}))
        sizes = [parts.processes[each].up.size for each in order]
        if math.prod(sizes) > MOST_STATES:
            return None
        phase = np.unravel_index(np.arange(math.prod(sizes)), sizes)
        up = {each: parts.processes[each].up[at] for each, at in zip(order, phase, strict=True)}
        stationary = [parts.processes[each].stationary for each in order]
        shares: Floats = reduce(np.multiply.outer, stationary, np.ones(())).ravel()
        works = [_all([up[each] for each in needed], shares.size) for needed in needs]
        try:
            reached = self._reached_given(path, up, works)
        except TooWideError:
            return None
        through = np.where(_all(works, shares.size), 1.0, reached * survives)
        waiting = shares * works[0] * (1.0 - through) / parts.all_up(needs[0])
        return order, waiting

    def _reached_given(self, path: Path, up: Mapping[int, Bools], works: list[Bools]) -> Floats:
        """Compute P[the ends of a path reach each other], in many states of its processes."""
        reached = np.zeros(works[0].size)
        for state, share, graph in self._graphs():
            chosen = np.ones(reached.size, np.bool_)
            for each in up.keys() & state.keys():
                chosen &= up[each] == state[each]
                share /= self._share(each, state[each])
            table = _table(_beside(graph, path), path)
            brokers, links = (_coded(each) for each in (works[::2], works[1::2]))
            reached[chosen] += share * table[brokers, links][chosen]
        return reached


def _all(works: list[Bools], count: int) -> Bools:
    return reduce(np.logical_and, works, np.ones(count, np.bool_))


def _coded(works: list[Bools]) -> Floats:
    """Encode which of some elements work, as a number with a bit for each."""
    return np.asarray(np.array(works).T @ (1 << np.arange(len(works))))


def _beside(graph: Graph, path: Path) -> Graph:
    """Make the graph beside a path: its brokers as often up as down, its links never up."""
    own = {frozenset(pair) for pair in itertools.pairwise(path.brokers)}
    return Graph(
        brokers={b: 0.5 if b in path.brokers else share for b, share in graph.brokers.items()},
        links={
            ends: 0.0 if frozenset(ends) in own else share for ends, share in graph.links.items()
        },
    )


def _table(beside: Graph, path: Path) -> Floats:
    """Compute P[the ends are joined] by which brokers of the path are up, and which links.

    The array is [which brokers of the path are up, which links of it are].
    """
    count = len(path.brokers)
    labels, shares = joined(beside, path.brokers, {path.brokers[0], path.brokers[-1]})
    of_labels = (labels > 0) @ (1 << np.arange(count))
    table = np.zeros((1 << count, 1 << (count - 1)))
    for links in range(table.shape[1]):
        together = _ends_joined(labels, links)
        np.add.at(table[:, links], of_labels[together], shares[together] * 2.0**count)
    return table


def _ends_joined(labels: Labels, links: int) -> Bools:
    """Test whether first and last broker are joined once the path's links that are up are added."""
    merged = labels.copy()
    for link in range(labels.shape[1] - 1):
        if links >> link & 1:
            here, there = merged[:, link], merged[:, link + 1]
            joins = (here > 0) & (there > 0)
            low, high = np.minimum(here, there)[:, None], np.maximum(here, there)[:, None]
            merged = np.where(joins[:, None] & (merged == high), low, merged)
    ends: Bools = merged[:, 0] == merged[:, -1]
    return ends
