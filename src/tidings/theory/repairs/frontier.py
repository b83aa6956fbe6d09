"""Which brokers are joined while brokers and links fail: exactly, broker by broker.

Brokers are taken up one after the other, each with its links to those before it. Of all that has
been settled only this matters for the rest: which brokers on the *frontier* (those with links still
to come) are up, and which of them are joined. States that agree in that are one state, so the work
grows with the width of the frontier and not with the number of components.

A state has one label for each broker on the frontier: 0 if it is down, else 1 plus the place of the
first broker that it is joined with; brokers with the same label are one *block*.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidings.model.arrays import Bools, Floats, Ints

Labels = NDArray[np.uint8]  # [state, place on the frontier]

MOST_STATES = 60_000
_MOST_WIDE = 15  # so that the labels of a state fit into 64 bits
_TRIED = 30**3  # brokers looked at, over all orders that are tried


class TooWideError(Exception):
    """The frontier has more states than are worth following."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """Brokers and links with the probability that each is up, all independent."""

    brokers: Mapping[int, float]
    links: Mapping[tuple[int, int], float]

    def neighbours(self) -> dict[int, dict[int, float]]:
        """List the links of every broker that are ever up."""
        beside: dict[int, dict[int, float]] = {broker: {} for broker in self.brokers}
        for (first, second), share in self.links.items():
            if share > 0.0:
                beside[first][second] = beside[second][first] = share
        return beside


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """From the states before a step to those after it."""

    entering: int  # the broker that comes in with this step; −1: none
    labels: Labels  # of the states after it
    source: Ints  # [transition]: the state before
    target: Ints  # [transition]: the state after
    share: Floats  # [transition]: its probability
    block: Labels  # [transition, label before]: the label that the block has after; 0: gone


_Move = tuple[Ints, Floats, Labels, Labels]  # states before, probabilities, labels after, blocks


def steps(graph: Graph, kept: Sequence[int] = (), needed: Collection[int] = ()) -> list[Step]:
    """List all steps; brokers ``kept`` stay on the frontier, and those ``needed`` must be up.

    At the end only the kept ones are there, in the order in which they are given.
    """
    neighbours = graph.neighbours()
    order = _order(neighbours, kept)
    left = {broker: len(each) for broker, each in neighbours.items()}
    frontier: list[int] = []
    taken: list[Step] = []
    labels: Labels = np.zeros((1, 0), np.uint8)

    def take(move: _Move, entering: int = -1) -> None:
        nonlocal labels
        taken.append(_merged(move, entering))
        labels = taken[-1].labels
        if len(labels) > MOST_STATES or labels.shape[1] > _MOST_WIDE:
            raise TooWideError

    for broker in order:
        take(_with_broker(labels, graph.brokers[broker], needed=broker in needed), broker)
        frontier.append(broker)
        for place, other in enumerate(frontier[:-1]):
            if other in neighbours[broker]:
                take(_with_link(labels, place, neighbours[broker][other]))
                left[broker] -= 1
                left[other] -= 1
        for each in [b for b in frontier if left[b] == 0 and b not in kept]:
            take(_without(labels, frontier.index(each)))
            frontier.remove(each)
    take(_reordered(labels, [frontier.index(broker) for broker in kept]))
    return taken


def _order(neighbours: Mapping[int, Mapping[int, float]], kept: Collection[int]) -> list[int]:
    """Find an order that keeps the frontier small: greedily, from the best of some beginnings."""
    starts = sorted(neighbours)[:: max(len(neighbours) ** 3 // _TRIED, 1)]
    return min(_from(neighbours, start, set(kept)) for start in starts)[1]


def _from(
    neighbours: Mapping[int, Mapping[int, float]], start: int, kept: set[int]
) -> tuple[int, list[int]]:
    """Order the brokers from one on, always taking what adds least; and its rough cost."""
    order: list[int] = []
    placed: set[int] = set()
    frontier: set[int] = set()
    cost = 0
    beside = {start}

    def growth(broker: int) -> tuple[int, int]:
        """Compute how much a broker adds to the frontier, less what it takes from it."""
        closed = (*(b for b in neighbours[broker] if b in placed), broker)
        over = [b for b in closed if b not in kept and neighbours[b].keys() <= placed | {broker}]
        return len(neighbours[broker].keys() - placed) - 2 * len(over), broker

    while len(order) < len(neighbours):
        chosen = min(beside or neighbours.keys() - placed, key=growth)
        order.append(chosen)
        placed.add(chosen)
        frontier.add(chosen)
        cost += 4 ** len(frontier)
        frontier = {b for b in frontier if b in kept or not neighbours[b].keys() <= placed}
        beside = (beside | neighbours[chosen].keys()) - placed
    return cost, order


def _same(labels: Labels) -> Labels:
    """Map every label to itself, so that every block keeps its label."""
    return np.tile(np.arange(labels.shape[1] + 1, dtype=np.uint8), (len(labels), 1))


def _with_broker(labels: Labels, share: float, *, needed: bool) -> _Move:
    """Add one more broker to every state, up and joined to none, or down."""
    outcomes = [(labels.shape[1] + 1, share)] if share > 0.0 else []
    if share < 1.0 and not needed:
        outcomes.append((0, 1.0 - share))
    states = np.arange(len(labels))
    columns = [np.full((len(labels), 1), label, np.uint8) for label, _ in outcomes]
    after = [np.hstack([labels, column]) for column in columns]
    empty: Labels = np.zeros((0, labels.shape[1] + 1), np.uint8)
    return (
        np.tile(states, len(outcomes)),
        np.repeat([each for _, each in outcomes], len(labels)).astype(np.float64),
        np.concatenate([empty, *after]),
        np.tile(_same(labels), (len(outcomes), 1)),
    )


def _with_link(labels: Labels, place: int, share: float) -> _Move:
    """Add one more link to every state, from the last broker to the one at index ``place``."""
    here, there = labels[:, -1], labels[:, place]
    joins = np.flatnonzero((here > 0) & (there > 0) & (here != there))
    first, second = np.minimum(here, there)[joins, None], np.maximum(here, there)[joins, None]
    stay = np.ones(len(labels))
    stay[joins] -= share
    rest = np.flatnonzero(stay > 0.0)
    same = _same(labels)
    return (
        np.concatenate([rest, joins]),
        np.concatenate([stay[rest], np.full(joins.size, share)]),
        np.concatenate([labels[rest], np.where(labels[joins] == second, first, labels[joins])]),
        np.concatenate([same[rest], np.where(same[joins] == second, first, same[joins])]),
    )


def _without(labels: Labels, place: int) -> _Move:
    """Remove one broker from every state; the next of those it is joined with names the block."""
    own = place + 1
    later = labels[:, own:] == own
    heirs = np.where(later.any(axis=1), later.argmax(axis=1) + own, 0) if later.size else 0
    heir = np.broadcast_to(heirs, len(labels))[:, None]

    def renamed(each: Labels) -> Labels:
        values = np.where(each > own, each - 1, np.where(each == own, heir, each))
        return values.astype(np.uint8)

    return (
        np.arange(len(labels)),
        np.ones(len(labels)),
        renamed(np.delete(labels, place, axis=1)),
        renamed(_same(labels)),
    )


def _reordered(labels: Labels, places: Sequence[int]) -> _Move:
    """Put the brokers of every state in another order."""
    chosen = labels[:, places] if places else labels[:, :0]
    first = (chosen[:, :, None] == chosen[:, None, :]).argmax(axis=2) + 1 if places else chosen
    after = np.where(chosen > 0, first, 0).astype(np.uint8)
    return np.arange(len(labels)), np.ones(len(labels)), after, _same(labels)


def _merged(move: _Move, entering: int) -> Step:
    """Merge states with the same labels into one."""
    source, share, labels, block = move
    code = labels.astype(np.uint64) @ (np.uint64(16) ** np.arange(labels.shape[1], dtype=np.uint64))
    _, first, target = np.unique(code, return_index=True, return_inverse=True)
    return Step(
        entering=entering,
        labels=labels[first],
        source=source,
        target=target,
        share=share,
        block=block,
    )


# ---- what is joined ------------------------------------------------------------------------------


def joined(
    graph: Graph, kept: Sequence[int], needed: Collection[int] = ()
) -> tuple[Labels, Floats]:
    """Compute how the kept brokers can be up and joined, and how likely each state is."""
    shares = np.ones(1)
    for step in steps(graph, kept, needed):
        moved = shares[step.source] * step.share
        shares = np.bincount(step.target, moved, len(step.labels)).astype(np.float64)
    return step.labels, shares


def connected(graph: Graph) -> Floats:
    """Compute P[two brokers are up and joined] of all pairs, [broker, broker], exactly.

    Backwards: P[two blocks of a state will be joined by what is still to come]. Forwards: P[a state
    and that some broker is in a block of it]. When a broker comes in, both together tell with whom
    of the earlier ones it will be joined.

    >>> square = {(0, 1): 0.9, (1, 3): 0.9, (0, 2): 0.8, (2, 3): 0.8}
    >>> joins = connected(Graph(brokers=dict.fromkeys(range(4), 1.0), links=square))
    >>> round(float(joins[0, 3]), 12)
    0.9316
    """
    taken = steps(graph)
    later = _joined_later(taken)
    count = max(graph.brokers) + 1
    joins = np.zeros((count, count))
    shares, inside = np.ones(1), np.zeros((count, 1, 1))
    for step in taken:
        states, labels = len(step.labels), step.labels.shape[1] + 1
        moved = shares[step.source] * step.share
        shares = np.bincount(step.target, moved, states).astype(np.float64)
        inside = _moved(inside, step)
        if step.entering >= 0:
            up = np.flatnonzero(step.labels[:, -1] == labels - 1)
            joins[:, step.entering] = inside.reshape(count, -1) @ later[step.entering].ravel()
            joins[step.entering] = joins[:, step.entering]
            joins[step.entering, step.entering] = shares[up].sum()
            inside[step.entering, up, labels - 1] = shares[up]
    return joins


def _moved(inside: Floats, step: Step) -> Floats:
    """Compute P[state, and the broker is in the block] after a step, [broker, state, label]."""
    states, labels = len(step.labels), step.labels.shape[1] + 1
    present: Bools = np.asarray(inside.any(axis=0), np.bool_)[step.source] & (step.block > 0)
    rows, before = np.nonzero(present)
    goal = step.target[rows] * labels + step.block[rows, before]
    after = np.zeros((len(inside), states * labels))
    for broker in np.flatnonzero(inside.any(axis=(1, 2))):
        mass = inside[broker, step.source[rows], before] * step.share[rows]
        after[broker] = np.bincount(goal, mass, states * labels)
    after = after.reshape(len(inside), states, labels)
    after[:, :, 0] = 0.0  # gone, and joined with nobody to come
    return after


def _joined_later(taken: Sequence[Step]) -> dict[int, Floats]:
    """Compute P[a block will be joined with a broker] for every broker, when it has come in.

    Of each broker the array is [state, label].
    """
    later: dict[int, Floats] = {}
    ahead = np.zeros((1, 1, 1))  # [state, label, label]
    for number in range(len(taken) - 1, -1, -1):
        step = taken[number]
        if step.entering >= 0:
            later[step.entering] = ahead[:, :, -1].copy()
        before = len(taken[number - 1].labels) if number else 1
        ahead = _ahead_of(step, ahead, before)
    return later


def _ahead_of(step: Step, ahead: Floats, states: int) -> Floats:
    """Compute P[two blocks will be joined] before a step, from that after it.

    Both are [state, label, label].
    """
    labels = step.block.shape[1]
    table = np.zeros((states, labels, labels))
    for one in range(1, labels):
        for other in range(one + 1, labels):
            first, second = step.block[:, one], step.block[:, other]
            low, high = np.minimum(first, second), np.maximum(first, second)
            joins = np.where(low == high, 1.0, ahead[step.target, low, high])
            joins[low == 0] = 0.0
            table[:, one, other] = np.bincount(step.source, joins * step.share, states)
    return table
