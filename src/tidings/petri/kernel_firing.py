"""Transitions: which of them can fire, what they take, what they put."""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings.kernels.bins import bin_of, count_delay
from tidings.kernels.calendar import key_of, set_key
from tidings.kernels.compile import apart, inlined, merged, primitive
from tidings.kernels.sampling import choose, draw
from tidings.kernels.streams import uniform
from tidings.petri.kernel_layout import DONE, arrays, tables, world_at


@inlined
def leave(world: Any, index: int) -> None:
    """A token is taken from its place, and counted there."""
    token = tables.tokens(world, index)
    cell = tables.cells(world, token.cell)
    stay = world.now - token.entered
    cell.departures += 1
    cell.residence += stay
    guess, edges = arrays.bin_guess(world), arrays.bin_edges(world)
    first = token.cell * world.bin_count
    if world.curves:
        count_delay(tables.residence_bins(world, first + bin_of(stay, guess, edges)), stay)
    if token.born < np.inf:
        age = world.now - token.born
        cell.aged += 1
        cell.age += age
        if world.curves:
            count_delay(tables.age_bins(world, first + bin_of(age, guess, edges)), age)
    token.cell = -1
    token.next = world.free_token
    world.free_token = index
    world.free_tokens += 1


@merged
def choose_mode_of(world: Any, cell: Any) -> int:
    """The mode that a token of a plain cell fires."""
    choices, streams = arrays.choices(world), arrays.streams(world)
    return choices[choose(choices, cell.first, cell.last, streams, cell.choice_stream)].mode


@merged
def put(world: Any, number: int, born: float) -> None:
    """Put what a mode puts; the tokens arrive one after the other when all else is done."""
    mode = tables.modes(world, number)
    mode.fired += 1
    if mode.newborn:
        born = world.now
    for at in range(mode.first_put, mode.last_put):
        arc = tables.puts(world, at)
        if arc.share < 1.0 and uniform(arrays.streams(world), mode.share_stream) >= arc.share:
            continue
        for _ in range(arc.count):
            index = world.free_token
            token = tables.tokens(world, index)
            world.free_token = token.next
            world.free_tokens -= 1
            token.cell = arc.cell
            token.born = born
            token.next = -1
            if world.agenda_head < 0:
                world.agenda_head = index
            else:
                tables.tokens(world, world.agenda_tail).next = index
            world.agenda_tail = index


# ---- cells whose tokens are held ---------------------------------------------------------------


@primitive
def hold(world: Any, index: int) -> None:
    """Keep a token until something takes it, and note who might."""
    token = tables.tokens(world, index)
    cell = tables.cells(world, token.cell)
    token.next = -1
    if cell.head < 0:
        cell.head = index
    else:
        tables.tokens(world, cell.tail).next = index
    cell.tail = index
    cell.held += 1
    touch(world, cell, True)


@primitive
def touch(world: Any, cell: Any, came: bool) -> None:
    """Note the users of a cell whose tokens became more, or fewer."""
    for at in range(cell.first, cell.last):
        user = tables.users(world, at)
        if user.is_timed:
            timed = tables.timed(world, user.number)
            if not timed.listed:
                timed.listed = 1
                tables.touched(world, world.touched_listed).value = user.number
                world.touched_listed += 1
        elif came:
            transition = tables.transitions(world, user.number)
            if not transition.listed:
                transition.listed = 1
                tables.candidates(world, world.candidates_listed).value = user.number
                world.candidates_listed += 1


@primitive
def can_fire(world: Any, number: int) -> bool:
    """Whether the tokens that a mode takes are there."""
    mode = tables.modes(world, number)
    for at in range(mode.first_take, mode.last_take):
        arc = tables.takes(world, at)
        if tables.cells(world, arc.cell).held < arc.count:
            return False
    return True


@primitive
def take(world: Any, number: int) -> None:
    """Take what a mode takes, the longest held first; the world notes the birth of the first."""
    mode = tables.modes(world, number)
    first = tables.takes(world, mode.first_take)
    world.inherited = tables.tokens(world, tables.cells(world, first.cell).head).born
    for at in range(mode.first_take, mode.last_take):
        arc = tables.takes(world, at)
        cell = tables.cells(world, arc.cell)
        for _ in range(arc.count):
            index = cell.head
            cell.head = tables.tokens(world, index).next
            leave(world, index)
        cell.held -= arc.count
        touch(world, cell, False)


@primitive
def ready_weight(world: Any, number: int) -> float:
    """The weights of a transition's modes that can fire, added up; 0 if none can."""
    transition = tables.transitions(world, number)
    total = 0.0
    for mode in range(transition.first_mode, transition.last_mode):
        if tables.modes(world, mode).weight > 0.0 and can_fire(world, mode):
            total += tables.modes(world, mode).weight
    return total


@primitive
def fire_held(world: Any) -> int:
    """Choose an immediate transition that can fire, and its mode, and take the tokens; −1: none."""
    best, total, at = -1, 0.0, 0
    while at < world.candidates_listed:
        number = tables.candidates(world, at).value
        transition = tables.transitions(world, number)
        if ready_weight(world, number) == 0.0:
            transition.listed = 0
            world.candidates_listed -= 1
            tables.candidates(world, at).value = tables.candidates(
                world, world.candidates_listed
            ).value
            continue
        if transition.priority > best:
            best, total = transition.priority, 0.0
        if transition.priority == best:
            total += transition.weight
        at += 1
    if world.candidates_listed == 0:
        return -1
    mode = choose_mode(world, choose_transition(world, best, total))
    take(world, mode)
    return mode


@primitive
def choose_transition(world: Any, priority: int, total: float) -> int:
    """One of the listed transitions of a priority, by their weights."""
    chosen, left = -1, total * uniform(arrays.streams(world), world.conflict_stream)
    for at in range(world.candidates_listed):
        number = tables.candidates(world, at).value
        transition = tables.transitions(world, number)
        if transition.priority == priority and (chosen < 0 or left >= 0.0):
            chosen = number
            left -= transition.weight
    return chosen


@primitive
def choose_mode(world: Any, number: int) -> int:
    """One of a transition's modes that can fire, by their weights."""
    left = ready_weight(world, number) * uniform(arrays.streams(world), world.conflict_stream)
    transition = tables.transitions(world, number)
    chosen = -1
    for mode in range(transition.first_mode, transition.last_mode):
        weight = tables.modes(world, mode).weight
        if weight > 0.0 and (chosen < 0 or left >= 0.0) and can_fire(world, mode):
            chosen = mode
            left -= weight
    return chosen


# ---- timed modes -------------------------------------------------------------------------------


@primitive
def settle(world: Any) -> None:
    """Start the clocks of timed modes that have become able to fire, stop those of the others."""
    while world.touched_listed > 0:
        world.touched_listed -= 1
        number = tables.touched(world, world.touched_listed).value
        timed = tables.timed(world, number)
        timed.listed = 0
        slot = world.queue_count + number
        is_set = key_of(arrays.nodes(world), slot) < np.inf
        if not can_fire(world, timed.mode):
            set_key(arrays.nodes(world), slot, np.inf)
        elif not is_set:
            start_clock(world, number, timed.kind, timed.offset)


@primitive
def start_clock(world: Any, number: int, kind: int, offset: int) -> None:
    """Let a timed mode fire after a time by a law."""
    stream = tables.timed(world, number).stream
    due = world.now + draw(kind, offset, arrays.law_params(world), arrays.streams(world), stream)
    set_key(arrays.nodes(world), world.queue_count + number, due)


@apart
def start_sources(address: Any, one: int, other: int) -> int:
    """Give every mode that takes nothing its first moment, as if it had been going on for ever."""
    world = world_at(address)
    for number in range(world.timed_length):
        timed = tables.timed(world, number)
        mode = tables.modes(world, timed.mode)
        if mode.first_take == mode.last_take:
            start_clock(world, number, timed.first_kind, timed.first_offset)
    return DONE


@primitive
def strike(world: Any, number: int) -> int:
    """A timed mode fires: it takes its tokens, and its clock runs anew if it can fire again."""
    timed = tables.timed(world, number)
    mode = tables.modes(world, timed.mode)
    if mode.first_take == mode.last_take:
        world.inherited = world.now
        start_clock(world, number, timed.kind, timed.offset)
    else:
        set_key(arrays.nodes(world), world.queue_count + number, np.inf)
        take(world, timed.mode)
    return timed.mode
