"""What fails and is repaired: brokers crash, links break, neighbours notice."""

from __future__ import annotations

from typing import Any

from tidings.kernels.calendar import set_key
from tidings.kernels.compile import inlined, merged, primitive
from tidings.simulation.kernel_buffers import fail_copy, send_kept
from tidings.simulation.kernel_lines import drop_from_line, has_line
from tidings.simulation.kernel_spreading import let_go
from tidings.simulation.kernel_stations import drop_waiting, stop_serving
from tidings.simulation.kernel_subscriptions import (
    forget_subscriptions,
    schedule_rounds,
)
from tidings.simulation.kernel_tables import (
    arc_from_at,
    arcs_first_at,
    channel_at,
    client_channel_at,
    component_at,
    entry_at,
    nodes_of,
    place_at,
    station_at,
    wire_at,
)
from tidings.simulation.kernel_tapes import tape_turn


@merged
def start_failing(world: Any) -> None:
    """See what is down in the beginning, when all switches have been set."""
    for number in range(world.components_length):
        component = component_at(world, number)
        component.seen = 1 if component.down_by == 0 else 0
        if number >= world.first_client:
            channel = channel_at(world, client_channel_at(world, number - world.first_client).value)
            channel.is_down = 1 - component.seen
        if world.recording:
            tape_turn(world, number, component.seen)
        forgets = world.forgetting and number < world.broker_count
        if forgets and (component.down_by > 0 or has_forgotten(world, number)):
            forget_subscriptions(world, number)
    if world.homes_length > 0:
        schedule_rounds(world)


@inlined
def has_forgotten(world: Any, broker: int) -> bool:
    """Whether a broker has crashed before, which nothing makes up for: what it knew is gone."""
    return world.bundles_length > 0 and entry_at(world, broker).value == 0


@merged
def turn_component(world: Any, number: int, is_on: int) -> None:
    """A switch that a component hangs on goes on or off."""
    component = component_at(world, number)
    was_down = component.down_by > 0
    component.down_by += -1 if is_on else 1
    if was_down == (component.down_by > 0):
        return
    if world.recording:
        tape_turn(world, number, was_down)
    if not was_down:
        break_down(world, number)
    if number >= world.first_client:
        channel = channel_at(world, client_channel_at(world, number - world.first_client).value)
        channel.is_down = 1 if component.down_by > 0 else 0
    else:
        announce(world, number)
    if was_down and world.churning:
        let_go(world)
    if was_down and world.buffering and number < world.broker_count:
        send_kept_from(world, number)  # it begins at once with what it had kept


@merged
def break_down(world: Any, number: int) -> None:
    """A component goes down: a broker loses what it has in hand, a link what is under way."""
    if number < world.broker_count:
        crash(world, number)
    elif number >= world.first_client:
        cut(world, channel_at(world, client_channel_at(world, number - world.first_client).value))
    else:
        arc = 2 * (number - world.broker_count)
        cut(world, channel_at(world, arc))
        cut(world, channel_at(world, arc + 1))


@inlined
def cut(world: Any, channel: Any) -> None:
    """A channel loses what is under way; what waited for a wire of its own is gone, too."""
    channel.generation += 1
    if channel.wire >= 0 and not wire_at(world, channel.wire).shared:
        wire_at(world, channel.wire).free = world.now


@merged
def crash(world: Any, number: int) -> None:
    """A broker loses its queues and its routing table; its buffers are on disk and stay."""
    broker = place_at(world, number)
    for at in range(broker.first_station, broker.last_station):
        if has_line(world, at):
            index = drop_from_line(world, at)
            while index >= 0:
                fail_copy(world, index)
                index = drop_from_line(world, at)
            continue
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
    if component.seen and world.churning and world.bypassing:
        let_go(world)
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
