"""Which brokers can reach each other while brokers and links fail: exactly, vertex by vertex.

Brokers are taken up one after the other, each with its links to those before it. Of all that has
been settled only this matters for the rest: which brokers on the *frontier* (those with links still
to come) are up, and which of them are joined. States that agree in that are added up, so the work
grows with the frontier and not with the number of components.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from tidings.theory.faults.processes import Floats

Labels = NDArray[np.uint8]  # [state, broker]: 0 is down, equal numbers are joined

MOST_STATES = 60_000
_MOST_FRONTIER = 15  # so that the labels of a state fit into 64 bits

States = tuple[Labels, Floats]  # and the probability of each


class TooWideError(Exception):
    """The frontier has more states than are worth following."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """Brokers and links with the probability that each is up, all independent."""

    brokers: Mapping[int, float]
    links: Mapping[tuple[int, int], float]

    def between(self, source: int, target: int) -> Graph:
        """What lies on some way between two brokers; nothing else can matter for them.

        These are the brokers of the biconnected part in which a link between the two would lie.
        """
        found = nx.Graph()
        found.add_edges_from(ends for ends, share in self.links.items() if share > 0.0)
        found.add_edge(source, target)
        kept: set[int] = next(
            part for part in nx.biconnected_components(found) if {source, target} <= part
        )
        return Graph(
            brokers={broker: share for broker, share in self.brokers.items() if broker in kept},
            links={ends: share for ends, share in self.links.items() if kept.issuperset(ends)},
        )


def connected(graph: Graph, source: int, target: int) -> float:
    """P[two brokers are up and joined by brokers and links that are up], exactly.

    >>> square = {(0, 1): 0.9, (1, 3): 0.9, (0, 2): 0.8, (2, 3): 0.8}
    >>> round(connected(Graph(brokers=dict.fromkeys(range(4), 1.0), links=square), 0, 3), 12)
    0.9316
    """
    if source == target:
        return graph.brokers[source]
    labels, shares = joined(graph.between(source, target), (source, target))
    return float(shares[labels[:, 0] == labels[:, 1]].sum())


def joined(graph: Graph, kept: Sequence[int], up: Collection[int] = ()) -> tuple[Labels, Floats]:
    """The ways in which the kept brokers can be up and joined, and how likely each is.

    A broker's label is 1 plus the position of the first broker it is joined with, or 0 if it is
    down. Only with some of them ``up``: by default the first and the last, since else there is no
    way between these two.
    """
    ends = set(up) or {kept[0], kept[-1]}
    if any(graph.brokers[broker] == 0.0 for broker in ends):
        return np.zeros((0, len(kept)), np.uint8), np.zeros(0)
    neighbours = _neighbours(graph)
    order = _order(neighbours, kept[0])
    if _width(neighbours, order, kept) > _MOST_FRONTIER:
        raise TooWideError
    left = {broker: len(each) for broker, each in neighbours.items()}
    frontier: list[int] = []
    states: States = np.zeros((1, 0), np.uint8), np.ones(1)
    for broker in order:
        states = _with_broker(states, graph.brokers[broker], needed=broker in ends)
        frontier.append(broker)
        for other, share in neighbours[broker].items():
            if other in frontier[:-1]:
                states = _with_link(states, frontier.index(other), share)
                left[broker] -= 1
                left[other] -= 1
        gone = [b for b in frontier if left[b] == 0 and b not in kept]
        for each in gone:
            states = _without(states, frontier.index(each))
            frontier.remove(each)
        if gone:
            states = _merged(states)
        if states[1].size > MOST_STATES:
            raise TooWideError
    return _reordered(states, [frontier.index(broker) for broker in kept])


def _neighbours(graph: Graph) -> dict[int, dict[int, float]]:
    found: dict[int, dict[int, float]] = {broker: {} for broker in graph.brokers}
    for (first, second), share in graph.links.items():
        if share > 0.0 and first in found and second in found:
            found[first][second] = found[second][first] = share
    return found


def _order(neighbours: Mapping[int, Mapping[int, float]], first: int) -> list[int]:
    """An order that keeps the frontier small: always the broker that adds least to it."""
    order, placed = [first], {first}
    beside = set(neighbours[first])
    while len(order) < len(neighbours):
        candidates = beside or (neighbours.keys() - placed)

        def growth(broker: int) -> tuple[int, int]:
            closed = [b for b in (*neighbours[broker], broker) if b in placed or b == broker]
            ended = sum(neighbours[b].keys() <= placed | {broker} for b in closed)
            return len(neighbours[broker].keys() - placed) - 2 * ended, broker

        chosen = min(candidates, key=growth)
        order.append(chosen)
        placed.add(chosen)
        beside |= neighbours[chosen].keys()
        beside -= placed
    return order


def _width(
    neighbours: Mapping[int, Mapping[int, float]], order: Sequence[int], kept: Sequence[int]
) -> int:
    """How many brokers are on the frontier at most."""
    placed: set[int] = set()
    frontier: set[int] = set()
    widest = 0
    for broker in order:
        placed.add(broker)
        frontier.add(broker)
        widest = max(widest, len(frontier))
        frontier = {b for b in frontier if b in kept or not neighbours[b].keys() <= placed}
    return widest


def _with_broker(states: States, share: float, *, needed: bool) -> States:
    """Every state with one more broker, down or up and joined to none."""
    labels, shares = states
    parts = []
    if share > 0.0:
        parts.append((labels.shape[1] + 1, share))
    if share < 1.0 and not needed:
        parts.append((0, 1.0 - share))
    columns = [np.full((shares.size, 1), label, np.uint8) for label, _ in parts]
    return (
        np.concatenate([np.hstack([labels, column]) for column in columns]),
        np.concatenate([shares * weight for _, weight in parts]),
    )


def _with_link(states: States, place: int, share: float) -> States:
    """Every state with one more link, from the last broker to the one at ``place``."""
    labels, shares = states
    here, there = labels[:, -1], labels[:, place]
    joins = np.flatnonzero((here > 0) & (there > 0) & (here != there))
    first, second = np.minimum(here, there)[joins, None], np.maximum(here, there)[joins, None]
    merged = np.where(labels[joins] == second, first, labels[joins])
    stay = shares.copy()
    stay[joins] *= 1.0 - share
    kept = stay > 0.0
    return _merged(
        (
            np.concatenate([labels[kept], merged]),
            np.concatenate([stay[kept], shares[joins] * share]),
        )
    )


def _without(states: States, place: int) -> States:
    """The states of all brokers but one; whom it was joined with are named by the next of them."""
    labels, shares = states
    rest = np.delete(labels, place, axis=1)
    if place < rest.shape[1]:
        own = place + 1  # its label, where it names those it is joined with
        heirs = (labels[:, own:] == own).argmax(axis=1) + own
        rest = np.where(rest > own, rest - 1, np.where(rest == own, heirs[:, None], rest))
    return rest.astype(np.uint8), shares


def _merged(states: States) -> States:
    """States with the same labels added up."""
    labels, shares = states
    code = labels.astype(np.uint64) @ (np.uint64(16) ** np.arange(labels.shape[1], dtype=np.uint64))
    _, first, which = np.unique(code, return_index=True, return_inverse=True)
    total: Floats = np.bincount(which, shares, first.size).astype(np.float64)
    return labels[first], total


def _reordered(states: States, places: Sequence[int]) -> States:
    """The brokers of every state in another order, labelled anew."""
    labels, shares = states
    chosen = labels[:, places]
    first = (chosen[:, :, None] == chosen[:, None, :]).argmax(axis=2) + 1
    return np.where(chosen > 0, first, 0).astype(np.uint8), shares
