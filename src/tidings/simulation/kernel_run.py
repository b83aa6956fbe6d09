"""The simulator's loop: whatever is due next, until every measured event has met its end."""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings.kernels.calendar import pop, set_key
from tidings.kernels.compile import compiled
from tidings.kernels.streams import uniform
from tidings.simulation.kernel_flow import (
    draw_law,
    enter,
    finish,
    is_lost,
    new_copy,
    release,
    travel,
)
from tidings.simulation.kernel_layout import DONE, LOST_LINK, NEEDS_ROOM, TAPE_FULL


@compiled
def schedule_first(net: Any, state: Any) -> None:
    """Give every publisher its first moment, as if it had been publishing for ever."""
    for index in range(net.publishers.size):
        publisher = net.publishers[index]
        first = draw_law(net, state, publisher.residual, publisher.phase_stream)
        set_key(state.keys, state.winners, index, first)


@compiled
def run(net: Any, state: Any, tally: Any, tape: Any) -> int:
    """Simulate on from where the state stands; why it came back.

    ``DONE``, or ``NEEDS_ROOM`` when copies, publications run short, or ``TAPE_FULL``: the caller
    makes room and calls again. Nothing is half done at those moments.
    """
    clock = state.clock[0]
    while True:
        if clock.free_copies <= clock.fan_out or clock.free_publication < 0:
            return NEEDS_ROOM
        if clock.recording and tape_is_short(net, state, tape):
            return TAPE_FULL
        if clock.passing_head >= 0:
            index = clock.passing_head
            clock.passing_head = state.copies[index].next
            enter(net, state, tally, tape, index)
            continue
        now = state.keys[1]
        landing = clock.in_flight > 0 and state.flight[0].time < now
        if landing:
            now = state.flight[0].time
        if now > clock.end and clock.measured_alive == 0:
            return DONE
        while now >= clock.next_sample:
            sample(state, tally)
        clock.now = now
        if landing:
            land(net, state, tally, tape)
        elif state.winners[1] < net.publishers.size:
            publish(net, state, tally, tape, state.winners[1])
        else:
            finish(net, state, tally, tape, state.winners[1] - net.publishers.size)


@compiled
def tape_is_short(net: Any, state: Any, tape: Any) -> bool:
    """Whether one more step might not fit on the tape."""
    clock = state.clock[0]
    return (
        clock.taped_publications >= tape.publications.size
        or clock.taped_hops >= tape.hops.size
        or clock.taped_sends + clock.fan_out > tape.sends.size
        or clock.taped_deliveries + net.receivers.size + 1 > tape.deliveries.size
    )


@compiled
def sample(state: Any, tally: Any) -> None:
    """Note how many copies there are at a regular moment."""
    clock = state.clock[0]
    tally.samples[clock.samples] = clock.copies
    clock.samples += 1
    clock.next_sample = (clock.samples + 1) * clock.sample_every
    if clock.samples >= tally.samples.size:
        clock.next_sample = np.inf


@compiled
def land(net: Any, state: Any, tally: Any, tape: Any) -> None:
    """The first copy in flight reaches its broker, unless its arc has failed meanwhile."""
    clock = state.clock[0]
    index = state.flight[0].cargo
    pop(state.flight, clock.in_flight)
    clock.in_flight -= 1
    copy = state.copies[index]
    if copy.arc >= 0 and state.arc_generation[copy.arc] != copy.stamp:
        release(state, index)
        return
    enter(net, state, tally, tape, index)


@compiled
def choose_row(net: Any, state: Any, publisher: Any) -> int:
    """What a publisher publishes now: a row of its contents."""
    low, high = publisher.first_row, publisher.last_row - 1
    if low == high:
        return low
    share = uniform(state.streams, publisher.content_stream)
    while low < high:
        middle = (low + high) // 2
        if net.rows[middle].below > share:
            high = middle
        else:
            low = middle + 1
    return low


@compiled
def publish(net: Any, state: Any, tally: Any, tape: Any, index: int) -> None:
    """A publisher publishes an event and sends it to its home broker."""
    clock = state.clock[0]
    publisher = net.publishers[index]
    interval = draw_law(net, state, publisher.interval, publisher.interval_stream)
    set_key(state.keys, state.winners, index, clock.now + interval)
    number = clock.free_publication
    event = state.publications[number]
    clock.free_publication = event.next
    at = choose_row(net, state, publisher)
    row = net.rows[at]
    event.number = clock.published
    clock.published += 1
    event.row = at
    event.content_class = row.content_class
    event.tree = row.tree
    event.copies = 0
    event.born = clock.now
    event.lifetime = np.inf
    if row.lifetime >= 0:
        event.lifetime = draw_law(net, state, row.lifetime, publisher.lifetime_stream)
    event.measured = 1 if clock.warmup <= clock.now <= clock.end else 0
    if event.measured:
        clock.measured_alive += 1
        tally.published[at] += 1
        if clock.recording:
            taped = tape.publications[clock.taped_publications]
            clock.taped_publications += 1
            taped.number = event.number
            taped.row = at
            taped.born = event.born
            taped.lifetime = event.lifetime
    channel = net.channels[publisher.channel]
    if not is_lost(state, channel):
        travel(net, state, new_copy(state, number, publisher.home, -1), channel)
        return
    if event.measured:
        clock.measured_alive -= 1
        tally.losses[net.cell_of[at, publisher.home], LOST_LINK] += 1
    event.next = clock.free_publication
    clock.free_publication = number
