"""Members of consumer groups that crash and come back, and the pauses that this makes.

Also the moments that somebody waits for (a group for the end of a pause or that its members have
lingered, a publisher that its batch has), and a queue that is stopped, as by a deploy, and goes on:
a broker's, a subscriber's, a group's.
"""

from __future__ import annotations

from typing import Any

from tidings.kernels.compile import apart, inlined, primitive
from tidings.simulation.kernel_copies import launch
from tidings.simulation.kernel_groups import (
    ask_for_more,
    drop_delivery,
    drop_requests,
    hand_out,
)
from tidings.simulation.kernel_layout import DONE, FIRST_MOMENT, tables, world_at
from tidings.simulation.kernel_senders import end_linger
from tidings.simulation.kernel_stations import (
    close_gate,
    drop_waiting,
    open_gate,
    stop_serving,
)


@primitive
def turn_member(world: Any, index: int, is_on: int) -> None:
    """A member comes back, or crashes and loses hold of what it has; the group shares out anew."""
    member = tables.members(world, index)
    member.is_on = is_on
    number = member.group
    group = tables.groups(world, number)
    at = tables.places(world, member.place).first_station
    if is_on:
        ask_for_more(world, index)
        if not group.stopped:
            open_gate(world, at)
    else:
        drop_requests(world, index)
        held = stop_serving(world, tables.stations(world, at).first_server)
        while held >= 0:
            drop_delivery(world, held)
            held = drop_waiting(world, at)
        close_gate(world, at)
    share_out(world, group)
    if group.rebalance > 0.0:
        pause(world, number)
    else:
        hand_out(world, number)


@inlined
def share_out(world: Any, group: Any) -> None:
    """Give every partition to its usual owner, or in turn to those that are there."""
    turn = group.first_member
    for at in range(group.first_queue, group.last_queue):
        queue = tables.group_queues(world, at)
        if queue.usual_owner < 0:
            continue
        queue.owner = queue.usual_owner
        for _ in range(group.last_member - group.first_member):
            if tables.members(world, queue.owner).is_on:
                break
            queue.owner = turn
            turn += 1
            if turn == group.last_member:
                turn = group.first_member


@inlined
def pause(world: Any, number: int) -> None:
    """Let nobody in a group work until it is clear who has which partition."""
    group = tables.groups(world, number)
    group.paused_until = world.now + group.rebalance
    for index in range(group.first_member, group.last_member):
        at = tables.places(world, tables.members(world, index).place).first_station
        if tables.stations(world, at).is_open:
            close_gate(world, at)
    if not group.pausing:
        group.pausing = 1
        await_end(world, number)


@inlined
def await_end(world: Any, number: int) -> None:
    """Come back to a group when its pause is over; it has one such moment at most."""
    due = tables.groups(world, number).paused_until
    cargo: Any = -1 - (FIRST_MOMENT + number)
    launch(world, due, cargo)


@primitive
def end_pause(world: Any, number: int) -> None:
    """The members of a group go on, unless another pause has begun meanwhile."""
    group = tables.groups(world, number)
    if world.now < group.paused_until:
        await_end(world, number)
        return
    group.pausing = 0
    if not group.stopped:
        work_on(world, number)


@primitive
def work_on(world: Any, number: int) -> None:
    """Let all members of a group that are there go on where they stopped."""
    group = tables.groups(world, number)
    for index in range(group.first_member, group.last_member):
        at = tables.places(world, tables.members(world, index).place).first_station
        if tables.members(world, index).is_on and not tables.stations(world, at).is_open:
            open_gate(world, at)
    hand_out(world, number)


@primitive
def ring(world: Any, number: int) -> None:
    """A moment has come."""
    groups = world.groups_length
    if number < groups:
        end_pause(world, number)
    elif number < 2 * groups:
        tables.groups(world, number - groups).is_timed = 0
        hand_out(world, number - groups)
    else:
        end_linger(world, number - 2 * groups)


@apart
def stop(address: Any, one: int, other: int) -> int:
    """Stop the queue that is watched: who works keeps what is left of it, what comes waits."""
    world = world_at(address)
    if world.watched_group >= 0:
        tables.groups(world, world.watched_group).stopped = 1
    for at in range(world.first_watched, world.last_watched):
        if tables.stations(world, at).is_open:
            close_gate(world, at)
    return DONE


@apart
def go_on(address: Any, one: int, other: int) -> int:
    """Let the queue that is watched go on where it stopped."""
    world = world_at(address)
    number = world.watched_group
    if number < 0:
        for at in range(world.first_watched, world.last_watched):
            open_gate(world, at)
        return DONE
    group = tables.groups(world, number)
    group.stopped = 0
    if not group.pausing:
        work_on(world, number)
    return DONE
