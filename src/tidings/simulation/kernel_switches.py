"""Switches: what is on and off by turns, and what their turning does.

Components that fail and are repaired (brokers crash, links break, neighbours notice), peers that
come and go, subscriptions that come and go.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings.kernels.calendar import set_key
from tidings.kernels.compile import inlined, merged, primitive
from tidings.kernels.streams import uniform
from tidings.simulation.kernel_copies import draw_time, wake
from tidings.simulation.kernel_layout import arrays, calls, tables
from tidings.simulation.kernel_recovery import (
    fail_copy,
    forget_subscriptions,
    refresh,
    schedule_rounds,
    send_kept,
    time_out,
)
from tidings.simulation.kernel_spreading import announce, let_go
from tidings.simulation.kernel_stations import (
    close_gate,
    drop_from_line,
    drop_waiting,
    has_line,
    open_gate,
    stop_serving,
)
from tidings.simulation.kernel_tapes import tape_turn


@merged
def start_failing(world: Any) -> None:
    """See what is down in the beginning, when all switches have been set."""
    for number in range(world.components_length):
        component = tables.components(world, number)
        component.seen = 1 if component.down_by == 0 else 0
        if number >= world.first_client:
            channel = tables.channels(
                world, tables.client_channels(world, number - world.first_client).value
            )
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
    return world.bundles_length > 0 and tables.entries(world, broker).value == 0


@merged
def turn_component(world: Any, number: int, is_on: int) -> None:
    """A switch that a component hangs on goes on or off."""
    component = tables.components(world, number)
    was_down = component.down_by > 0
    component.down_by += -1 if is_on else 1
    if was_down == (component.down_by > 0):
        return
    if world.recording:
        tape_turn(world, number, was_down)
    if not was_down:
        break_down(world, number)
    if number >= world.first_client:
        channel = tables.channels(
            world, tables.client_channels(world, number - world.first_client).value
        )
        channel.is_down = 1 if component.down_by > 0 else 0
    else:
        announce_change(world, number)
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
        cut(
            world,
            tables.channels(
                world, tables.client_channels(world, number - world.first_client).value
            ),
        )
    else:
        arc = 2 * (number - world.broker_count)
        cut(world, tables.channels(world, arc))
        cut(world, tables.channels(world, arc + 1))


@inlined
def cut(world: Any, channel: Any) -> None:
    """A channel loses what is under way; what waited for a wire of its own is gone, too."""
    channel.generation += 1
    if channel.wire >= 0 and not tables.wires(world, channel.wire).shared:
        tables.wires(world, channel.wire).free = world.now


@merged
def crash(world: Any, number: int) -> None:
    """A broker loses its queues and its routing table; its buffers are on disk and stay."""
    broker = tables.places(world, number)
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
        station = tables.stations(world, at)
        for server in range(station.first_server, station.first_server + station.servers):
            index = stop_serving(world, server)
            if index >= 0:
                fail_copy(world, index)
    if world.forgetting:
        forget_subscriptions(world, number)


@merged
def announce_change(world: Any, number: int) -> None:
    """Other brokers will notice a change of a component, or do so at once."""
    if world.detection > 0.0:
        set_key(arrays.nodes(world), world.first_notice + number, world.now + world.detection)
    else:
        notice(world, number)


@primitive
def notice(world: Any, number: int) -> None:
    """Other brokers see how a component is now, and send it what they have kept for it."""
    component = tables.components(world, number)
    component.seen = 1 if component.down_by == 0 else 0
    world.epoch += 1
    if component.seen and world.churning and world.bypassing:
        let_go(world)
    if not component.seen or not world.buffering:
        return
    if number < world.broker_count:
        for place in range(
            tables.arcs_first(world, number).value, tables.arcs_first(world, number + 1).value
        ):
            send_kept(world, tables.arcs_from(world, place).value ^ 1)
    else:
        arc = 2 * (number - world.broker_count)
        send_kept(world, arc)
        send_kept(world, arc + 1)


@merged
def send_kept_from(world: Any, broker: int) -> None:
    """A broker sends what it has kept for its neighbours, as far as they are up."""
    for place in range(
        tables.arcs_first(world, broker).value, tables.arcs_first(world, broker + 1).value
    ):
        send_kept(world, tables.arcs_from(world, place).value)


@merged
def start_switches(world: Any) -> None:
    """Begin as if every switch had been turning for ever."""
    for number in range(world.switches_length):
        switch = tables.switches(world, number)
        if switch.last_period > switch.first_period:
            due = start_loop(world, switch)
        else:
            share = uniform(arrays.streams(world), switch.stream)
            switch.is_on = 1 if share < switch.availability else 0
            rest = switch.residual_on if switch.is_on else switch.residual_off
            due = draw_time(world, rest, switch.stream)
        set_key(arrays.nodes(world), world.first_switch + number, due)
        if not switch.is_on:
            for position in range(switch.first_member, switch.last_member):
                tables.components(world, tables.switch_members(world, position).value).down_by += 1
        if switch.consumer > 0:
            if not switch.is_on:
                calls.turn_member(world, switch.consumer - 1, switch.is_on)
        elif switch.gate >= 0:
            if not switch.is_on:
                close_gate(world, switch.gate)
            if world.recording:
                tape_turn(world, -1 - number, switch.is_on)
        elif world.recording and is_churner(world, number):
            tape_turn(world, -1 - number, switch.is_on)


@inlined
def is_churner(world: Any, number: int) -> bool:
    """Whether a switch is that of a subscriber whose subscription comes and goes."""
    return world.churning > 0 and number >= world.first_churner


@merged
def start_loop(world: Any, switch: Any) -> float:
    """Begin at a random moment of a loop of periods; when the one met then is over."""
    periods = arrays.periods(world)
    total = 0.0
    for position in range(switch.first_period, switch.last_period):
        total += periods[position]
    left = total * uniform(arrays.streams(world), switch.stream)
    position = switch.first_period
    while position < switch.last_period - 1 and left >= periods[position]:
        left -= periods[position]
        position += 1
    switch.is_on = 1 - (position - switch.first_period) % 2
    switch.next_period = position
    return max(next_period(world, switch) - left, 0.0)


@primitive
def next_period(world: Any, switch: Any) -> float:
    """How long a switch is now as it has just become, in seconds."""
    if switch.last_period == switch.first_period:
        law = switch.on if switch.is_on else switch.off
        return draw_time(world, law, switch.stream)
    length = arrays.periods(world)[switch.next_period]
    switch.next_period += 1
    if switch.next_period == switch.last_period:
        switch.next_period = switch.first_period
    return length


@merged
def turn(world: Any, number: int) -> None:
    """A switch goes off or on, and all its members, or its gate, with it."""
    switch = tables.switches(world, number)
    switch.is_on = 1 - switch.is_on
    due = world.now + next_period(world, switch)
    set_key(arrays.nodes(world), world.first_switch + number, due)
    for position in range(switch.first_member, switch.last_member):
        turn_component(world, tables.switch_members(world, position).value, switch.is_on)
    if switch.consumer > 0:
        calls.turn_member(world, switch.consumer - 1, switch.is_on)
    elif switch.gate >= 0:
        if world.recording:
            tape_turn(world, -1 - number, switch.is_on)
        if switch.is_on:
            open_gate(world, switch.gate)
            wake(world)
            if world.churning:
                let_go(world)
        else:
            close_gate(world, switch.gate)
    elif is_churner(world, number):
        if world.recording:
            tape_turn(world, -1 - number, switch.is_on)
        announce(world, number - world.first_churner, switch.is_on)


@primitive
def change(world: Any, slot: int) -> None:
    """Whatever else is due: a switch, a notice, a round of subscriptions or its end."""
    if slot < world.first_notice:
        turn(world, slot - world.first_switch)
    elif slot < world.first_round:
        set_key(arrays.nodes(world), slot, np.inf)
        notice(world, slot - world.first_notice)
    elif slot < world.first_end:
        refresh(world, slot - world.first_round)
    else:
        time_out(world, slot - world.first_end)
