"""Queues of places: joining, serving, leaving, under every discipline.

Tokens in service lie in a skew heap (Sleator and Tarjan, 1986) through the tokens themselves: it
needs no room of its own, and with one server it is just that token. A queue has one slot in the
calendar, due when the first of the heap is done.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings.kernels.calendar import set_key
from tidings.kernels.compile import inlined, primitive
from tidings.kernels.sampling import draw
from tidings.petri.kernel_layout import (
    INFINITE,
    PRIORITY,
    SHARING,
    cell_at,
    law_params_of,
    nodes_of,
    queue_at,
    streams_of,
    token_at,
)


@inlined
def _before(one: Any, other: Any) -> bool:
    return one.key < other.key or (one.key == other.key and one.order < other.order)


@primitive
def merge(world: Any, one: int, other: int) -> int:
    """The root of the heap of two heaps' tokens; −1 is an empty heap."""
    if one < 0:
        return other
    if other < 0:
        return one
    if _before(token_at(world, other), token_at(world, one)):
        one, other = other, one
    root = one
    while True:
        top = token_at(world, one)
        rest = top.right
        top.right = top.left
        if rest < 0:
            top.left = other
            return root
        if _before(token_at(world, other), token_at(world, rest)):
            rest, other = other, rest
        top.left = rest
        one = rest


@primitive
def draw_service(world: Any, cell: Any, token: Any) -> float:
    """The service time of a token, in seconds.

    What is in an infinite server in the beginning has been there for ever: it needs what is left.
    """
    first = token.order < world.initial and queue_at(world, cell.queue).kind == INFINITE
    kind = cell.first_kind if first else cell.kind
    offset = cell.first_offset if first else cell.offset
    return draw(kind, offset, law_params_of(world), streams_of(world), cell.stream)


@inlined
def pass_time(world: Any, queue: Any) -> None:
    """Let a queue's servers have worked until now."""
    passed = world.now - queue.changed
    queue.changed = world.now
    working = min(queue.active, queue.servers)
    queue.busy += passed * working
    if queue.kind == SHARING and queue.active > 0:
        queue.work += passed * working / queue.active


@inlined
def set_due(world: Any, number: int, queue: Any) -> None:
    """Tell the calendar when the first of a queue's tokens will be done."""
    due = np.inf
    if queue.root >= 0:
        due = token_at(world, queue.root).key
        if queue.kind == SHARING:
            each = queue.active / min(queue.active, queue.servers)
            due = world.now + max(due - queue.work, 0.0) * each
    set_key(nodes_of(world), number, due)


@inlined
def _serve(world: Any, queue: Any, index: int) -> None:
    """Begin to work on a token."""
    token = token_at(world, index)
    work = draw_service(world, cell_at(world, token.cell), token)
    token.key = work + (queue.work if queue.kind == SHARING else world.now)
    token.left = -1
    token.right = -1
    queue.active += 1
    queue.root = index if queue.root < 0 else merge(world, queue.root, index)


@inlined
def join(world: Any, number: int, index: int) -> None:
    """A token comes to a queue: it is served at once, or waits."""
    queue = queue_at(world, number)
    token = token_at(world, index)
    token.order = world.order
    world.order += 1
    pass_time(world, queue)
    if queue.active < queue.servers or queue.kind == SHARING:
        _serve(world, queue, index)
        if queue.root == index or queue.kind == SHARING:
            set_due(world, number, queue)
    elif queue.kind == PRIORITY:
        token.key = -cell_at(world, token.cell).priority
        token.left = -1
        token.right = -1
        queue.line = merge(world, queue.line, index)
    else:
        token.next = -1
        if queue.head < 0:
            queue.head = index
        else:
            token_at(world, queue.tail).next = index
        queue.tail = index


@inlined
def complete(world: Any, number: int) -> int:
    """The token that a queue is done with; the next one is begun."""
    queue = queue_at(world, number)
    pass_time(world, queue)
    index = queue.root
    done = token_at(world, index)
    queue.root = merge(world, done.left, done.right)
    queue.active -= 1
    if queue.kind == SHARING:
        if queue.active == 0:
            queue.work = 0.0  # so that it never grows large
    elif queue.kind == PRIORITY:
        if queue.line >= 0:
            first = queue.line
            top = token_at(world, first)
            queue.line = merge(world, top.left, top.right)
            _serve(world, queue, first)
    elif queue.head >= 0:
        first = queue.head
        queue.head = token_at(world, first).next
        _serve(world, queue, first)
    set_due(world, number, queue)
    return index
