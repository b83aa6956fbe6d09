"""Switches: what is on and off by turns.

Components that fail, peers that come and go, subscriptions that come and go.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings.kernels.calendar import set_key
from tidings.kernels.compile import inlined, merged, primitive
from tidings.kernels.streams import uniform
from tidings.simulation.kernel_calls import call_turn_member
from tidings.simulation.kernel_copies import draw_time
from tidings.simulation.kernel_failures import notice, turn_component
from tidings.simulation.kernel_limits import wake
from tidings.simulation.kernel_spreading import announce, let_go
from tidings.simulation.kernel_stations import close_gate, open_gate
from tidings.simulation.kernel_subscriptions import refresh, time_out
from tidings.simulation.kernel_tables import (
    component_at,
    nodes_of,
    periods_of,
    streams_of,
    switch_at,
    switch_member_at,
)
from tidings.simulation.kernel_tapes import tape_turn


@merged
def start_switches(world: Any) -> None:
    """Begin as if every switch had been turning for ever."""
    for number in range(world.switches_length):
        switch = switch_at(world, number)
        if switch.last_period > switch.first_period:
            due = start_loop(world, switch)
        else:
            share = uniform(streams_of(world), switch.stream)
            switch.is_on = 1 if share < switch.availability else 0
            rest = switch.residual_on if switch.is_on else switch.residual_off
            due = draw_time(world, rest, switch.stream)
        set_key(nodes_of(world), world.first_switch + number, due)
        if not switch.is_on:
            for position in range(switch.first_member, switch.last_member):
                component_at(world, switch_member_at(world, position).value).down_by += 1
        if switch.consumer > 0:
            if not switch.is_on:
                call_turn_member(world, switch.consumer - 1, switch.is_on)
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
    periods = periods_of(world)
    total = 0.0
    for position in range(switch.first_period, switch.last_period):
        total += periods[position]
    left = total * uniform(streams_of(world), switch.stream)
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
    length = periods_of(world)[switch.next_period]
    switch.next_period += 1
    if switch.next_period == switch.last_period:
        switch.next_period = switch.first_period
    return length


@merged
def turn(world: Any, number: int) -> None:
    """A switch goes off or on, and all its members, or its gate, with it."""
    switch = switch_at(world, number)
    switch.is_on = 1 - switch.is_on
    due = world.now + next_period(world, switch)
    set_key(nodes_of(world), world.first_switch + number, due)
    for position in range(switch.first_member, switch.last_member):
        turn_component(world, switch_member_at(world, position).value, switch.is_on)
    if switch.consumer > 0:
        call_turn_member(world, switch.consumer - 1, switch.is_on)
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
        set_key(nodes_of(world), slot, np.inf)
        notice(world, slot - world.first_notice)
    elif slot < world.first_end:
        refresh(world, slot - world.first_round)
    else:
        time_out(world, slot - world.first_end)
