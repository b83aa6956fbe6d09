"""Transitions: which of them can fire, what they take, what they put."""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings.kernels.bins import bin_of, count_delay
from tidings.kernels.calendar import key_of, set_key
from tidings.kernels.compile import inlined, merged, primitive
from tidings.kernels.sampling import draw
from tidings.kernels.streams import uniform
from tidings.petri.kernel_layout import (
    DONE,
    age_bin_at,
    bin_edges_of,
    bin_guess_of,
    candidate_at,
    cell_at,
    choice_at,
    law_params_of,
    mode_at,
    nodes_of,
    put_at,
    residence_bin_at,
    streams_of,
    take_at,
    timed_at,
    token_at,
    touched_at,
    transition_at,
    user_at,
)


@inlined
def leave(world: Any, index: int) -> None:
    """A token is taken from its place, and counted there."""
    token = token_at(world, index)
    cell = cell_at(world, token.cell)
    stay = world.now - token.entered
    cell.departures += 1
    cell.residence += stay
    guess, edges = bin_guess_of(world), bin_edges_of(world)
    first = token.cell * world.bin_count
    if world.curves:
        count_delay(residence_bin_at(world, first + bin_of(stay, guess, edges)), stay)
    if token.born < np.inf:
        age = world.now - token.born
        cell.aged += 1
        cell.age += age
        if world.curves:
            count_delay(age_bin_at(world, first + bin_of(age, guess, edges)), age)
    token.cell = -1
    token.next = world.free_token
    world.free_token = index
    world.free_tokens += 1


@merged
def choose(world: Any, cell: Any) -> int:
    """The mode that a token of a plain cell fires."""
    low, high = cell.first, cell.last - 1
    if low < high:
        share = uniform(streams_of(world), cell.choice_stream)
        while low < high:
            middle = (low + high) // 2
            if choice_at(world, middle).below > share:
                high = middle
            else:
                low = middle + 1
    return choice_at(world, low).mode


@merged
def put(world: Any, number: int, born: float) -> None:
    """Put what a mode puts; the tokens arrive one after the other when all else is done."""
    mode = mode_at(world, number)
    mode.fired += 1
    if mode.newborn:
        born = world.now
    for at in range(mode.first_put, mode.last_put):
        arc = put_at(world, at)
        if arc.share < 1.0 and uniform(streams_of(world), mode.share_stream) >= arc.share:
            continue
        for _ in range(arc.count):
            index = world.free_token
            token = token_at(world, index)
            world.free_token = token.next
            world.free_tokens -= 1
            token.cell = arc.cell
            token.born = born
            token.next = -1
            if world.agenda_head < 0:
                world.agenda_head = index
            else:
                token_at(world, world.agenda_tail).next = index
            world.agenda_tail = index


# ---- cells whose tokens are held ---------------------------------------------------------------


@primitive
def hold(world: Any, index: int) -> None:
    """Keep a token until something takes it, and note who might."""
    token = token_at(world, index)
    cell = cell_at(world, token.cell)
    token.next = -1
    if cell.head < 0:
        cell.head = index
    else:
        token_at(world, cell.tail).next = index
    cell.tail = index
    cell.held += 1
    touch(world, cell, True)


@primitive
def touch(world: Any, cell: Any, came: bool) -> None:
    """Note the users of a cell whose tokens became more, or fewer."""
    for at in range(cell.first, cell.last):
        user = user_at(world, at)
        if user.is_timed:
            timed = timed_at(world, user.number)
            if not timed.listed:
                timed.listed = 1
                touched_at(world, world.touched_listed).value = user.number
                world.touched_listed += 1
        elif came:
            transition = transition_at(world, user.number)
            if not transition.listed:
                transition.listed = 1
                candidate_at(world, world.candidates_listed).value = user.number
                world.candidates_listed += 1


@primitive
def can_fire(world: Any, number: int) -> bool:
    """Whether the tokens that a mode takes are there."""
    mode = mode_at(world, number)
    for at in range(mode.first_take, mode.last_take):
        arc = take_at(world, at)
        if cell_at(world, arc.cell).held < arc.count:
            return False
    return True


@primitive
def take(world: Any, number: int) -> None:
    """Take what a mode takes, the longest held first; the world notes the birth of the first."""
    mode = mode_at(world, number)
    first = take_at(world, mode.first_take)
    world.inherited = token_at(world, cell_at(world, first.cell).head).born
    for at in range(mode.first_take, mode.last_take):
        arc = take_at(world, at)
        cell = cell_at(world, arc.cell)
        for _ in range(arc.count):
            index = cell.head
            cell.head = token_at(world, index).next
            leave(world, index)
        cell.held -= arc.count
        touch(world, cell, False)


@primitive
def ready_weight(world: Any, number: int) -> float:
    """The weights of a transition's modes that can fire, added up; 0 if none can."""
    transition = transition_at(world, number)
    total = 0.0
    for mode in range(transition.first_mode, transition.last_mode):
        if mode_at(world, mode).weight > 0.0 and can_fire(world, mode):
            total += mode_at(world, mode).weight
    return total


@primitive
def fire_held(world: Any) -> int:
    """Choose an immediate transition that can fire, and its mode, and take the tokens; −1: none."""
    best, total, at = -1, 0.0, 0
    while at < world.candidates_listed:
        number = candidate_at(world, at).value
        transition = transition_at(world, number)
        if ready_weight(world, number) == 0.0:
            transition.listed = 0
            world.candidates_listed -= 1
            candidate_at(world, at).value = candidate_at(world, world.candidates_listed).value
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
    chosen, left = -1, total * uniform(streams_of(world), world.conflict_stream)
    for at in range(world.candidates_listed):
        number = candidate_at(world, at).value
        transition = transition_at(world, number)
        if transition.priority == priority and (chosen < 0 or left >= 0.0):
            chosen = number
            left -= transition.weight
    return chosen


@primitive
def choose_mode(world: Any, number: int) -> int:
    """One of a transition's modes that can fire, by their weights."""
    left = ready_weight(world, number) * uniform(streams_of(world), world.conflict_stream)
    transition = transition_at(world, number)
    chosen = -1
    for mode in range(transition.first_mode, transition.last_mode):
        weight = mode_at(world, mode).weight
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
        number = touched_at(world, world.touched_listed).value
        timed = timed_at(world, number)
        timed.listed = 0
        slot = world.queue_count + number
        is_set = key_of(nodes_of(world), slot) < np.inf
        if not can_fire(world, timed.mode):
            set_key(nodes_of(world), slot, np.inf)
        elif not is_set:
            start_clock(world, number, timed.kind, timed.offset)


@primitive
def start_clock(world: Any, number: int, kind: int, offset: int) -> None:
    """Let a timed mode fire after a time by a law."""
    stream = timed_at(world, number).stream
    due = world.now + draw(kind, offset, law_params_of(world), streams_of(world), stream)
    set_key(nodes_of(world), world.queue_count + number, due)


@primitive
def start_sources(worlds: Any) -> int:
    """Give every mode that takes nothing its first moment, as if it had been going on for ever."""
    world = worlds[0]
    for number in range(world.timed_length):
        timed = timed_at(world, number)
        mode = mode_at(world, timed.mode)
        if mode.first_take == mode.last_take:
            start_clock(world, number, timed.first_kind, timed.first_offset)
    return DONE


@primitive
def strike(world: Any, number: int) -> int:
    """A timed mode fires: it takes its tokens, and its clock runs anew if it can fire again."""
    timed = timed_at(world, number)
    mode = mode_at(world, timed.mode)
    if mode.first_take == mode.last_take:
        world.inherited = world.now
        start_clock(world, number, timed.kind, timed.offset)
    else:
        set_key(nodes_of(world), world.queue_count + number, np.inf)
        take(world, timed.mode)
    return timed.mode
