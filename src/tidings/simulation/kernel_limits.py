"""Limits: buffers that block publishers, and the places that events have in them.

An event takes a place in every such buffer on its way before it leaves its publisher, and gives it
back when it leaves the buffer. Of an event that is lost all places are free again when no copy of
it is left.
"""

from __future__ import annotations

from typing import Any

from tidings.kernels.compile import inlined, primitive
from tidings.simulation.kernel_layout import HAS_PLACES
from tidings.simulation.kernel_tables import (
    copy_at,
    hold_at,
    limit_at,
    limit_of_at,
    limits_first_at,
    publication_at,
)


@inlined
def pass_by(world: Any, index: int) -> None:
    """Let a copy enter its place at this very moment, after those that do so already."""
    copy_at(world, index).next = -1
    if world.passing_head < 0:
        world.passing_head = index
    else:
        copy_at(world, world.passing_tail).next = index
    world.passing_tail = index


@inlined
def full_limit(world: Any, row: int) -> int:
    """Find a limit that has no place for an event of this row; −1: all have one."""
    for position in range(limits_first_at(world, row).value, limits_first_at(world, row + 1).value):
        number = limit_of_at(world, position).value
        if limit_at(world, number).taken >= limit_at(world, number).capacity:
            return number
    return -1


@inlined
def take_places(world: Any, index: int) -> None:
    """Take a place for a publication in every limit on its way; all of them have one."""
    publication = publication_at(world, index)
    row = publication.row
    for position in range(limits_first_at(world, row).value, limits_first_at(world, row + 1).value):
        number = limit_of_at(world, position).value
        limit_at(world, number).taken += 1
        hold_at(world, index * world.limits_length + number).value = 1
        publication.noted |= HAS_PLACES


@primitive
def vacate(world: Any, index: int, number: int) -> None:
    """Give back the place of a publication in a limit, if it has one."""
    hold = hold_at(world, index * world.limits_length + number)
    if hold.value:
        hold.value = 0
        limit_at(world, number).taken -= 1
        wake(world)


@primitive
def vacate_all(world: Any, index: int) -> None:
    """Give back all places of a publication of which there are no copies any more."""
    row = publication_at(world, index).row
    for position in range(limits_first_at(world, row).value, limits_first_at(world, row + 1).value):
        vacate(world, index, limit_of_at(world, position).value)


@inlined
def wake(world: Any) -> None:
    """Let it be seen who is blocked no more, as the next that happens at this very moment."""
    if world.blocked_count > 0 and not world.is_waking:
        world.is_waking = 1
        pass_by(world, world.waker)
