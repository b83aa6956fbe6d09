"""The loop of the simulator of nets: whatever is due next, and all that follows at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings.kernels.compile import merged, primitive
from tidings.petri.kernel_firing import choose, fire_held, hold, leave, put, settle, strike
from tidings.petri.kernel_layout import (
    DONE,
    ENDLESS,
    NEEDS_ROOM,
    cell_at,
    node_at,
    sample_at,
    token_at,
)
from tidings.petri.kernel_queues import complete, join


@primitive
def run(worlds: Any) -> int:
    """Simulate on to the world's end; why it came back.

    ``DONE``; ``NEEDS_ROOM`` when tokens run short (nothing is half done then, and the caller makes
    room and calls again); ``ENDLESS`` when transitions fire for ever without any time passing.
    """
    world = worlds[0]
    while True:
        if world.free_tokens <= world.most_put:
            return NEEDS_ROOM
        ready, mode, born = -1, -1, world.now
        index = world.agenda_head
        if index >= 0:
            world.agenda_head = token_at(world, index).next
            ready = arrive(world, index)
        elif world.candidates_listed > 0:
            mode = fire_held(world)
            born = world.inherited
        elif world.touched_listed > 0:
            settle(world)
        else:
            now = node_at(world, 1).key
            while world.next_sample <= min(now, world.end):
                sample(world)
            if now > world.end:
                world.now = world.end
                return DONE
            world.firings = 0 if now > world.now else world.firings
            world.now = now
            slot = node_at(world, 1).slot
            if slot < world.queue_count:
                ready = complete(world, slot)
            else:
                mode = strike(world, slot - world.queue_count)
                born = world.inherited
        if ready >= 0:
            cell = cell_at(world, token_at(world, ready).cell)
            if cell.plain:
                mode = choose(world, cell)
                born = token_at(world, ready).born
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
    token = token_at(world, index)
    token.entered = world.now
    cell = cell_at(world, token.cell)
    cell.arrivals += 1
    if cell.queue < 0:
        return index
    join(world, cell.queue, index)
    return -1


@merged
def sample(world: Any) -> None:
    """Note how many tokens there are at a regular moment."""
    sample_at(world, world.samples_taken).value = world.tokens_length - world.free_tokens
    world.samples_taken += 1
    world.next_sample = (world.samples_taken + 1) * world.sample_every
    if world.samples_taken >= world.samples_length:
        world.next_sample = np.inf
