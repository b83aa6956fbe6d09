"""What fails and is repaired: switches turn, brokers crash, links break, neighbours notice."""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings.kernels.calendar import set_key
from tidings.kernels.compile import merged, primitive
from tidings.kernels.streams import uniform
from tidings.simulation.kernel_buffers import fail_copy, send_kept
from tidings.simulation.kernel_copies import draw_time
from tidings.simulation.kernel_stations import drop_waiting, stop_serving
from tidings.simulation.kernel_subscriptions import (
    forget_subscriptions,
    refresh,
    schedule_rounds,
    time_out,
)
from tidings.simulation.kernel_tables import (
    arc_from_at,
    arcs_first_at,
    broker_at,
    channel_at,
    component_at,
    nodes_of,
    station_at,
    streams_of,
    switch_at,
    switch_member_at,
)


@merged
def start_failing(world: Any) -> None:
    """Begin as if everything had been failing and been repaired for ever."""
    for number in range(world.switches_length):
        switch = switch_at(world, number)
        switch.is_on = 1 if uniform(streams_of(world), switch.stream) < switch.availability else 0
        rest = switch.residual_on if switch.is_on else switch.residual_off
        due = draw_time(world, rest, switch.stream)
        set_key(nodes_of(world), world.first_switch + number, due)
        if not switch.is_on:
            for position in range(switch.first_member, switch.last_member):
                component_at(world, switch_member_at(world, position).value).down_by += 1
    for number in range(world.components_length):
        component = component_at(world, number)
        component.seen = 1 if component.down_by == 0 else 0
        if component.down_by > 0 and world.forgetting and number < world.broker_count:
            forget_subscriptions(world, number)
    if world.homes_length > 0:
        schedule_rounds(world)


@merged
def turn(world: Any, number: int) -> None:
    """A switch goes off or on, and all its members with it."""
    switch = switch_at(world, number)
    switch.is_on = 1 - switch.is_on
    law = switch.on if switch.is_on else switch.off
    due = world.now + draw_time(world, law, switch.stream)
    set_key(nodes_of(world), world.first_switch + number, due)
    for position in range(switch.first_member, switch.last_member):
        member = switch_member_at(world, position).value
        component = component_at(world, member)
        was_down = component.down_by > 0
        component.down_by += -1 if switch.is_on else 1
        if was_down != (component.down_by > 0):
            if not was_down:
                break_down(world, member)
            announce(world, member)
            if was_down and world.buffering and member < world.broker_count:
                send_kept_from(world, member)  # it begins at once with what it had kept


@merged
def break_down(world: Any, number: int) -> None:
    """A component goes down: a broker loses what it has in hand, a link what is under way."""
    if number < world.broker_count:
        crash(world, number)
    else:
        arc = 2 * (number - world.broker_count)
        channel_at(world, arc).generation += 1
        channel_at(world, arc + 1).generation += 1


@merged
def crash(world: Any, number: int) -> None:
    """A broker loses its queues and its routing table; its buffers are on disk and stay."""
    broker = broker_at(world, number)
    for at in range(broker.first_station, broker.last_station):
        index = drop_waiting(world, at)
        while index >= 0:
            fail_copy(world, index)
            index = drop_waiting(world, at)
        station = station_at(world, at)
        for server in range(station.first_server, station.first_server + station.servers):
            index = stop_serving(world, server)
            if index >= 0:
                fail_copy(world, index)
    if world.forgetting:
        forget_subscriptions(world, number)


@merged
def announce(world: Any, number: int) -> None:
    """Other brokers will notice a change of a component, or do so at once."""
    if world.detection > 0.0:
        set_key(nodes_of(world), world.first_notice + number, world.now + world.detection)
    else:
        notice(world, number)


@primitive
def notice(world: Any, number: int) -> None:
    """Other brokers see how a component is now, and send it what they have kept for it."""
    component = component_at(world, number)
    component.seen = 1 if component.down_by == 0 else 0
    world.epoch += 1
    if not component.seen or not world.buffering:
        return
    if number < world.broker_count:
        for place in range(
            arcs_first_at(world, number).value, arcs_first_at(world, number + 1).value
        ):
            send_kept(world, arc_from_at(world, place).value ^ 1)
    else:
        arc = 2 * (number - world.broker_count)
        send_kept(world, arc)
        send_kept(world, arc + 1)


@merged
def send_kept_from(world: Any, broker: int) -> None:
    """A broker sends what it has kept for its neighbours, as far as they are up."""
    for place in range(arcs_first_at(world, broker).value, arcs_first_at(world, broker + 1).value):
        send_kept(world, arc_from_at(world, place).value)


@primitive
def change(world: Any, slot: int) -> None:
    """Whatever else is due: a switch, a notice, a round of subscriptions or its end."""
    if slot < world.first_notice:
        turn(world, slot - world.first_switch)
    elif slot < world.first_round:
        set_key(nodes_of(world), slot, np.inf)
        notice(world, slot - world.first_notice)
    elif slot < world.first_end:
        refresh(world, slot - world.first_round)
    else:
        time_out(world, slot - world.first_end)
