"""What happens next: a tournament over fixed slots, and a heap of copies in flight.

Everything that has one next moment of its own (a publisher, a server, later a component or a timer)
is a *slot* of the tournament and can be re-keyed or cancelled (key +inf) at any time. Copies under
way on links are many and never re-keyed: they lie in a heap. *Ties*: of slots due at the same
moment the lowest goes first, of landings the one sent first, and slots go before landings.

Whatever else is served by turns lies in a skew heap (Sleator and Tarjan, 1986) through the records
themselves, by their ``left`` and ``right``: it needs no room of its own.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings.kernels.compile import inlined, primitive

# A game of the tournament: when the winner is due, and which slot it is.
NODE = np.dtype([("key", "f8"), ("slot", "i8")], align=True)
# A copy under way: when it lands, in which order it was sent (breaks ties), and which it is.
LANDING = np.dtype([("time", "f8"), ("order", "i8"), ("cargo", "i8")], align=True)
_SIGN = 63  # the bit of a whole number that says that it is negative
CHILDREN = 4  # of a node in the heap: shallower than two, and four landings lie close together


def tournament(slots: int) -> Any:
    """An empty tournament of NODEs: the winner of all at 1, the slots' own in the second half.

    >>> nodes = tournament(3)
    >>> set_key(nodes, 2, 5.0)
    >>> set_key(nodes, 1, 7.0)
    >>> float(nodes[1].key), int(nodes[1].slot)
    (5.0, 2)
    """
    leaves = 1
    while leaves < max(slots, 2):
        leaves *= 2
    nodes = np.zeros(2 * leaves, dtype=NODE).view(np.recarray)
    nodes.key = np.inf
    nodes.slot[leaves:] = np.arange(leaves)
    for node in range(leaves - 1, 0, -1):
        nodes[node].slot = nodes[2 * node].slot
    return nodes


@inlined
def set_key(nodes: Any, slot: int, key: float) -> None:
    """Let a slot be due at ``key`` (+inf: never), and replay its games up to the root.

    Who wins a game is a coin's toss to the processor, and a jump that it guesses wrong costs as
    much as several games. So nothing is asked: the winner is chosen by arithmetic on the bits of
    times, which from 0 on are in the order of the times, and all games are played.
    """
    at = nodes.size // 2 + slot
    nodes[at].key = key
    due, winner = np.float64(key).view(np.int64), np.int64(slot)
    while at > 1:
        rival = nodes[at ^ 1]
        rival_due = np.float64(rival.key).view(np.int64)
        # All ones if the rival wins, else 0. An odd node is a right one, and loses ties: its slots
        # are higher than its rival's.
        is_lost = (rival_due - due - (at & 1)) >> _SIGN
        due ^= (due ^ rival_due) & is_lost
        winner ^= (winner ^ rival.slot) & is_lost
        at >>= 1
        node = nodes[at]
        node.key = np.int64(due).view(np.float64)
        node.slot = winner


@inlined
def key_of(nodes: Any, slot: int) -> float:
    """When a slot is due."""
    return nodes[nodes.size // 2 + slot].key


@inlined
def _before(time: float, order: int, other: Any) -> bool:
    return time < other.time or (time == other.time and order < other.order)


@inlined
def push(heap: Any, size: int, time: float, order: int, cargo: int) -> None:
    """Put a landing into a heap of ``size`` landings (the caller counts)."""
    hole = size
    while hole > 0:
        parent = (hole - 1) // CHILDREN
        if not _before(time, order, heap[parent]):
            break
        heap[hole] = heap[parent]
        hole = parent
    heap[hole].time = time
    heap[hole].order = order
    heap[hole].cargo = cargo


@inlined
def pop(heap: Any, size: int) -> None:
    """Take the first landing, ``heap[0]``, out of a heap of ``size`` landings."""
    last = heap[size - 1]
    time, order, cargo = last.time, last.order, last.cargo
    count = size - 1
    hole = 0
    while True:
        first = CHILDREN * hole + 1
        if first >= count:
            break
        best = first
        for child in range(first + 1, min(first + CHILDREN, count)):
            if _before(heap[child].time, heap[child].order, heap[best]):
                best = child
        if not _before(heap[best].time, heap[best].order, last):
            break
        heap[hole] = heap[best]
        hole = best
    heap[hole].time = time
    heap[hole].order = order
    heap[hole].cargo = cargo


@inlined
def _comes_before(one: Any, other: Any) -> bool:
    return one.key < other.key or (one.key == other.key and one.order < other.order)


@primitive
def merge(records: Any, one: int, other: int) -> int:
    """Make one skew heap of two, and give its root; −1 is an empty heap."""
    if one < 0:
        return other
    if other < 0:
        return one
    if _comes_before(records[other], records[one]):
        one, other = other, one
    root = one
    while True:
        top = records[one]
        rest = top.right
        top.right = top.left
        if rest < 0:
            top.left = other
            return root
        if _comes_before(records[other], records[rest]):
            rest, other = other, rest
        top.left = rest
        one = rest
