"""The simulator's loop: whatever is due next, until every measured event has met its end."""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings.kernels.calendar import pop, set_key
from tidings.kernels.compile import merged, primitive
from tidings.kernels.streams import uniform
from tidings.simulation.kernel_brokers import enter, finish
from tidings.simulation.kernel_calls import (
    call_change,
    call_finish_in_line,
    call_land_otherwise,
    call_note_wanted,
    call_queue_up,
    call_start,
)
from tidings.simulation.kernel_copies import (
    count_loss,
    draw_time,
    forget,
    loses,
    new_copy,
    time_on_wire,
    travel,
)
from tidings.simulation.kernel_days import next_by_clock
from tidings.simulation.kernel_layout import (
    BACKLOG_REACHED,
    BY_LINK,
    BY_PATH_DOWN,
    DONE,
    NEEDS_ROOM,
    TAPE_FULL,
)
from tidings.simulation.kernel_splitting import split, try_again
from tidings.simulation.kernel_tables import (
    channel_at,
    copy_at,
    flight_of,
    landing_at,
    mark_at,
    node_at,
    nodes_of,
    publication_at,
    publisher_at,
    row_at,
    sample_at,
    streams_of,
    taped_publication_at,
)


@primitive
def schedule_first(worlds: Any) -> int:
    """Give every publisher its first moment, as if all had been going on for ever."""
    world = worlds[0]
    for index in range(world.publisher_count):
        publisher = publisher_at(world, index)
        if publisher.day != -1:
            first = next_by_clock(world, publisher)
        else:
            first = draw_time(world, publisher.residual, publisher.phase_stream)
        set_key(nodes_of(world), index, first)
    if not world.bare:
        call_start(world, 0, 0)
    return DONE


@primitive
def run(worlds: Any) -> int:
    """Simulate on from where the world stands; why it came back.

    ``DONE``, or ``NEEDS_ROOM`` when copies or publications run short, or ``TAPE_FULL``: the caller
    makes room and calls again. Or ``BACKLOG_REACHED`` where that is watched. Nothing is half done
    at those moments.
    """
    world = worlds[0]
    while True:
        if world.free_copies <= world.fan_out or world.free_publication < 0:
            return NEEDS_ROOM
        if world.free_messages < world.messages_at_once:
            return NEEDS_ROOM
        if world.recording and tape_is_short(world):
            return TAPE_FULL
        index = world.passing_head
        if index >= 0:
            world.passing_head = copy_at(world, index).next
        else:
            now = node_at(world, 1).key
            landing = world.in_flight > 0 and landing_at(world, 0).time < now
            if landing:
                now = landing_at(world, 0).time
            if now > world.end and world.measured_alive <= world.may_stay:
                if not try_again(world, True):
                    return DONE
                continue
            while now >= world.next_sample:
                sample(world)
            world.now = now
            if landing:
                index = land(world)
            else:
                strike(world, node_at(world, 1).slot)
        if index >= 0:
            enter(world, index)
        if world.backlog >= world.upper:
            if world.watching:
                return BACKLOG_REACHED
            split(world)
        elif world.backlog < world.lower:
            if world.watching:
                return BACKLOG_REACHED
            try_again(world, False)


@merged
def strike(world: Any, slot: int) -> None:
    """Whatever a slot stands for comes due."""
    if slot < world.publisher_count:
        publish(world, slot)
    elif slot < world.first_line:
        finish(world, slot - world.publisher_count)
    elif slot < world.first_switch:
        call_finish_in_line(world, slot - world.publisher_count, 0)
    else:
        call_change(world, slot, 0)


@merged
def tape_is_short(world: Any) -> bool:
    """Whether one more step might not fit on the tape."""
    return (
        world.taped_publications >= world.tape_publications_length
        or world.taped_hops >= world.tape_hops_length
        or world.taped_sends + world.fan_out > world.tape_sends_length
        or world.taped_deliveries + world.deliveries_at_once > world.tape_deliveries_length
        or world.taped_turns + world.turns_at_once > world.tape_turns_length
        or world.taped_learnt >= world.tape_learnt_length
    )


@merged
def sample(world: Any) -> None:
    """Note how many copies there are at a regular moment, and the backlog."""
    sample = sample_at(world, world.samples_taken)
    sample.copies = world.copies_length - world.free_copies
    sample.backlog = world.backlog
    world.samples_taken += 1
    world.next_sample = (world.samples_taken + 1) * world.sample_every
    if world.samples_taken >= world.samples_length:
        world.next_sample = np.inf


@merged
def land(world: Any) -> int:
    """The first copy in flight, at its broker; −1 where its channel has failed meanwhile.

    Or a message, which is heard at once, or a moment that somebody waits for: −1 as well.
    """
    index = landing_at(world, 0).cargo
    pop(flight_of(world), world.in_flight)
    world.in_flight -= 1
    if index >= 0:
        copy = copy_at(world, index)
        if channel_at(world, copy.channel).generation == copy.stamp:
            return index
    call_land_otherwise(world, index, 0)
    return -1


@merged
def choose_row(world: Any, publisher: Any) -> int:
    """What a publisher publishes now: a row of its contents."""
    low, high = publisher.first_row, publisher.last_row - 1
    if low < high:
        share = uniform(streams_of(world), publisher.content_stream)
        while low < high:
            middle = (low + high) // 2
            if row_at(world, middle).below > share:
                high = middle
            else:
                low = middle + 1
    return low


@merged
def publish(world: Any, index: int) -> None:
    """A publisher publishes an event and sends it to its home broker, if it is connected."""
    publisher = publisher_at(world, index)
    if publisher.day != -1:
        due = next_by_clock(world, publisher)
    else:
        due = world.now + draw_time(world, publisher.interval, publisher.interval_stream)
    set_key(nodes_of(world), index, due)
    number = create(world, publisher)
    if publisher.waits_at >= 0:
        copy = new_copy(world, number, publisher.waits_at, publisher.channel)
        call_queue_up(world, copy, 0)
        return
    publication = publication_at(world, number)
    channel = channel_at(world, publisher.channel)
    lost = channel.is_down > 0 or loses(world, channel)
    delay = 0.0
    if not lost:
        copy = new_copy(world, number, publisher.home, publisher.channel)
        delay = travel(world, copy, channel)
    elif channel.wire >= 0 and not channel.is_down:
        time_on_wire(world, number, channel)
    if publication.measured:
        channel.sent += 1
        channel.delay_sum += delay
        if lost:
            channel.lost += 1
            cause = BY_PATH_DOWN if channel.is_down else BY_LINK
            count_loss(world, number, publisher.home, cause)
    if lost:
        forget(world, number)


@merged
def create(world: Any, publisher: Any) -> int:
    """A new publication, measured if it is born in the window; its position."""
    index = world.free_publication
    publication = publication_at(world, index)
    world.free_publication = publication.next
    publication.row = choose_row(world, publisher)
    row = row_at(world, publication.row)
    publication.number = world.published
    world.published += 1
    publication.content_class = row.content_class
    publication.tree = row.tree
    publication.copies = 0
    publication.noted = 0
    if world.buffering and world.bypassing:
        for broker in range(world.broker_count):
            mark_at(world, index * world.broker_count + broker).value = 0
    publication.born = world.now
    publication.lifetime = np.inf
    if row.lifetime >= 0:
        publication.lifetime = draw_time(world, row.lifetime, publisher.lifetime_stream)
    publication.measured = 1 if world.warmup <= world.now <= world.end else 0
    if publication.measured:
        world.measured_alive += 1
        row.published += 1
        if world.recording:
            taped = taped_publication_at(world, world.taped_publications)
            world.taped_publications += 1
            taped.number = publication.number
            taped.row = publication.row
            taped.born = publication.born
            taped.lifetime = publication.lifetime
        if world.churning:
            call_note_wanted(world, index, 0)
    return index
