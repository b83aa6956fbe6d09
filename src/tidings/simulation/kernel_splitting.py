"""Splitting: what may lead to misses is tried again and again, and counts for less each time.

Where the backlog rises to a level, a run is split into trials that begin alike and end apart. All
but the last end where the backlog has fallen again; the last goes on below (RESTART,
Villén-Altamirano 1991). A miss counts by the weight of its trial, so that sums are right in the
mean whatever the levels are.
"""

from __future__ import annotations

from typing import Any

from tidings.kernels.compile import primitive
from tidings.kernels.memory import copy_bytes
from tidings.simulation.kernel_tables import level_at, span_at


@primitive
def move_to(world: Any, level: int) -> None:
    """Let a trial be of a level from now on."""
    world.level = level
    world.weight = 1.0
    for below in range(level):
        world.weight /= level_at(world, below).trials
    world.lower = level_at(world, level - 1).lower if level > 0 else 0
    world.upper = level_at(world, level).upper  # the last is never reached


@primitive
def split(world: Any) -> None:
    """Keep everything as it is, and begin the first trial of the next level."""
    for number in range(world.spans_length):
        span = span_at(world, number)
        copy_bytes(span.kept + world.level * world.kept_stride, span.address, span.length)
    level = level_at(world, world.level)
    level.left = level.trials - 1
    move_to(world, world.level + 1)
    world.is_retrial = 1


@primitive
def try_again(world: Any, is_over: bool) -> bool:
    """Begin the next trial after one that ends, or go on below with the last; False: all is over.

    ``is_over``: every measured event has met its end; else the backlog has fallen.
    """
    while world.level > 0:
        below = world.level - 1
        level = level_at(world, below)
        if level.left > 0:
            level.left -= 1
            for number in range(world.spans_length):
                span = span_at(world, number)
                copy_bytes(span.address, span.kept + below * world.kept_stride, span.length)
            move_to(world, below + 1)
            if level.left > 0:
                world.is_retrial = 1
            return True
        move_to(world, below)
        if not is_over:
            return True
    return False
