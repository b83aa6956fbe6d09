"""A queue that is stopped, as by a deploy, and goes on: a broker's, a subscriber's, a group's."""

from __future__ import annotations

from typing import Any

from tidings.kernels.compile import primitive
from tidings.simulation.kernel_layout import DONE
from tidings.simulation.kernel_members import work_on
from tidings.simulation.kernel_stations import close_gate, open_gate
from tidings.simulation.kernel_tables import group_at, station_at


@primitive
def stop(worlds: Any) -> int:
    """Stop the queue that is watched: who works keeps what is left of it, what comes waits."""
    world = worlds[0]
    if world.watched_group >= 0:
        group_at(world, world.watched_group).stopped = 1
    for at in range(world.first_watched, world.last_watched):
        if station_at(world, at).is_open:
            close_gate(world, at)
    return DONE


@primitive
def go_on(worlds: Any) -> int:
    """Let the queue that is watched go on where it stopped."""
    world = worlds[0]
    number = world.watched_group
    if number < 0:
        for at in range(world.first_watched, world.last_watched):
            open_gate(world, at)
        return DONE
    group = group_at(world, number)
    group.stopped = 0
    if not group.pausing:
        work_on(world, number)
    return DONE
