"""The loop of the simulator of nets: whatever is due next, and all that follows at once.

Queues of places serve under every discipline. Tokens in service lie in a skew heap through the
tokens themselves; with one server it is just that token. A queue has one slot in the calendar, due
when the first of the heap is done.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings.kernels.calendar import merge, set_key
from tidings.kernels.compile import apart, inlined, merged, primitive
from tidings.kernels.sampling import draw
from tidings.petri.kernel_firing import choose_mode_of, fire_held, hold, leave, put, settle, strike
from tidings.petri.kernel_layout import (
    DONE,
    ENDLESS,
    INFINITE,
    NEEDS_ROOM,
    PRIORITY,
    SHARING,
    arrays,
    tables,
    world_at,
)


@primitive
def draw_service(world: Any, cell: Any, token: Any) -> float:
    """The service time of a token, in seconds.

    What is in an infinite server in the beginning has been there for ever: it needs what is left.
    """
    first = token.order < world.initial and tables.queues(world, cell.queue).kind == INFINITE
    kind = cell.first_kind if first else cell.kind
    offset = cell.first_offset if first else cell.offset
    return draw(kind, offset, arrays.law_params(world), arrays.streams(world), cell.stream)


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
        due = tables.tokens(world, queue.root).key
        if queue.kind == SHARING:
            each = queue.active / min(queue.active, queue.servers)
            due = world.now + max(due - queue.work, 0.0) * each
    set_key(arrays.nodes(world), number, due)


@inlined
def _serve(world: Any, queue: Any, index: int) -> None:
    """Begin to work on a token."""
    token = tables.tokens(world, index)
    work = draw_service(world, tables.cells(world, token.cell), token)
    token.key = work + (queue.work if queue.kind == SHARING else world.now)
    token.left = -1
    token.right = -1
    queue.active += 1
    queue.root = index if queue.root < 0 else merge(arrays.tokens(world), queue.root, index)


@inlined
def join(world: Any, number: int, index: int) -> None:
    """A token comes to a queue: it is served at once, or waits."""
    queue = tables.queues(world, number)
    token = tables.tokens(world, index)
    token.order = world.order
    world.order += 1
    pass_time(world, queue)
    if queue.active < queue.servers or queue.kind == SHARING:
        _serve(world, queue, index)
        if queue.root == index or queue.kind == SHARING:
            set_due(world, number, queue)
    elif queue.kind == PRIORITY:
        token.key = -tables.cells(world, token.cell).priority
        token.left = -1
        token.right = -1
        queue.line = merge(arrays.tokens(world), queue.line, index)
    else:
        token.next = -1
        if queue.head < 0:
            queue.head = index
        else:
            tables.tokens(world, queue.tail).next = index
        queue.tail = index


@inlined
def complete(world: Any, number: int) -> int:
    """The token that a queue is done with; the next one is begun."""
    queue = tables.queues(world, number)
    pass_time(world, queue)
    index = queue.root
    done = tables.tokens(world, index)
    queue.root = merge(arrays.tokens(world), done.left, done.right)
    queue.active -= 1
    if queue.kind == SHARING:
        if queue.active == 0:
            queue.work = 0.0  # so that it never grows large
    elif queue.kind == PRIORITY:
        if queue.line >= 0:
            first = queue.line
            top = tables.tokens(world, first)
            queue.line = merge(arrays.tokens(world), top.left, top.right)
            _serve(world, queue, first)
    elif queue.head >= 0:
        first = queue.head
        queue.head = tables.tokens(world, first).next
        _serve(world, queue, first)
    set_due(world, number, queue)
    return index


@apart
def run(address: Any, one: int, other: int) -> int:
    """Simulate on to the world's end; why it came back.

    ``DONE``; ``NEEDS_ROOM`` when tokens run short (nothing is half done then, and the caller makes
    room and calls again); ``ENDLESS`` when transitions fire for ever without any time passing.
    """
    world = world_at(address)
    while True:
        if world.free_tokens <= world.most_put:
            return NEEDS_ROOM
        ready, mode, born = -1, -1, world.now
        index = world.agenda_head
        if index >= 0:
            world.agenda_head = tables.tokens(world, index).next
            ready = arrive(world, index)
        elif world.candidates_listed > 0:
            mode = fire_held(world)
            born = world.inherited
        elif world.touched_listed > 0:
            settle(world)
        else:
            now = tables.nodes(world, 1).key
            while world.next_sample <= min(now, world.end):
                sample(world)
            if now > world.end:
                world.now = world.end
                return DONE
            world.firings = 0 if now > world.now else world.firings
            world.now = now
            slot = tables.nodes(world, 1).slot
            if slot < world.queue_count:
                ready = complete(world, slot)
            else:
                mode = strike(world, slot - world.queue_count)
                born = world.inherited
        if ready >= 0:
            cell = tables.cells(world, tables.tokens(world, ready).cell)
            if cell.plain:
                mode = choose_mode_of(world, cell)
                born = tables.tokens(world, ready).born
                leave(world, ready)
            else:
                hold(world, ready)
        if mode >= 0:
            put(world, mode, born)
            world.firings += 1
            if world.firings > world.most_firings:
                return ENDLESS


@merged
def arrive(world: Any, index: int) -> int:
    """A token comes to its place; its position if it can be taken at once, else −1."""
    token = tables.tokens(world, index)
    token.entered = world.now
    cell = tables.cells(world, token.cell)
    cell.arrivals += 1
    if cell.queue < 0:
        return index
    join(world, cell.queue, index)
    return -1


@merged
def sample(world: Any) -> None:
    """Note how many tokens there are at a regular moment."""
    tables.samples(world, world.samples_taken).value = world.tokens_length - world.free_tokens
    world.samples_taken += 1
    world.next_sample = (world.samples_taken + 1) * world.sample_every
    if world.samples_taken >= world.samples_length:
        world.next_sample = np.inf
