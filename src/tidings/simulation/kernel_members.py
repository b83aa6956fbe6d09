"""Members of consumer groups that crash and come back, and the pauses that this makes."""

from __future__ import annotations

from typing import Any

from tidings.kernels.calendar import push
from tidings.kernels.compile import inlined, primitive
from tidings.simulation.kernel_groups import (
    ask_for_more,
    drop_delivery,
    drop_requests,
    hand_out,
)
from tidings.simulation.kernel_layout import FIRST_MOMENT
from tidings.simulation.kernel_stations import (
    close_gate,
    drop_waiting,
    open_gate,
    stop_serving,
)
from tidings.simulation.kernel_tables import (
    flight_of,
    group_at,
    group_queue_at,
    member_at,
    place_at,
    station_at,
)


@primitive
def turn_member(world: Any, index: int, is_on: int) -> None:
    """A member comes back, or crashes and loses hold of what it has; the group shares out anew."""
    member = member_at(world, index)
    member.is_on = is_on
    number = member.group
    group = group_at(world, number)
    at = place_at(world, member.place).first_station
    if is_on:
        ask_for_more(world, index)
        if not group.stopped:
            open_gate(world, at)
    else:
        drop_requests(world, index)
        held = stop_serving(world, station_at(world, at).first_server)
        while held >= 0:
            drop_delivery(world, held)
            held = drop_waiting(world, at)
        close_gate(world, at)
    share_out(world, group)
    if group.rebalance > 0.0 and group.last_queue - group.first_queue > 1:
        pause(world, number)
    else:
        hand_out(world, number)


@inlined
def share_out(world: Any, group: Any) -> None:
    """Give every partition to its usual owner, or in turn to those that are there."""
    turn = group.first_member
    for at in range(group.first_queue, group.last_queue):
        queue = group_queue_at(world, at)
        if queue.usual_owner < 0:
            continue
        queue.owner = queue.usual_owner
        for _ in range(group.last_member - group.first_member):
            if member_at(world, queue.owner).is_on:
                break
            queue.owner = turn
            turn += 1
            if turn == group.last_member:
                turn = group.first_member


@inlined
def pause(world: Any, number: int) -> None:
    """Let nobody in a group work until it is clear who has which partition."""
    group = group_at(world, number)
    group.paused_until = world.now + group.rebalance
    for index in range(group.first_member, group.last_member):
        at = place_at(world, member_at(world, index).place).first_station
        if station_at(world, at).is_open:
            close_gate(world, at)
    if not group.pausing:
        group.pausing = 1
        await_end(world, number)


@inlined
def await_end(world: Any, number: int) -> None:
    """Come back to a group when its pause is over; it has one such moment at most."""
    world.order += 1
    due = group_at(world, number).paused_until
    cargo: Any = -1 - (FIRST_MOMENT + number)
    push(flight_of(world), world.in_flight, due, world.order, cargo)
    world.in_flight += 1


@primitive
def end_pause(world: Any, number: int) -> None:
    """The members of a group go on, unless another pause has begun meanwhile."""
    group = group_at(world, number)
    if world.now < group.paused_until:
        await_end(world, number)
        return
    group.pausing = 0
    if not group.stopped:
        work_on(world, number)


@primitive
def work_on(world: Any, number: int) -> None:
    """Let all members of a group that are there go on where they stopped."""
    group = group_at(world, number)
    for index in range(group.first_member, group.last_member):
        at = place_at(world, member_at(world, index).place).first_station
        if member_at(world, index).is_on and not station_at(world, at).is_open:
            open_gate(world, at)
    hand_out(world, number)
