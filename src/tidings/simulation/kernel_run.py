"""The simulator's loop: whatever is due next, until every measured event has met its end.

Publishers by the clock have rates by time of day, or schedules made before the run.

*Splitting*: what may lead to misses is tried again and again, and counts for less each time. Where
the backlog rises to a level, a run is split into trials that begin alike and end apart. All but the
last end where the backlog has fallen again; the last goes on below (RESTART, Villén-Altamirano
1991). A miss counts by the weight of its trial, so that sums are right in the mean whatever the
levels are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings.kernels.calendar import pop, set_key
from tidings.kernels.compile import apart, merged, primitive
from tidings.kernels.memory import copy_bytes
from tidings.kernels.sampling import choose
from tidings.kernels.streams import exponential
from tidings.simulation.kernel_brokers import enter, finish
from tidings.simulation.kernel_copies import (
    count_loss,
    draw_time,
    forget,
    loses,
    new_copy,
    time_on_wire,
    travel,
)
from tidings.simulation.kernel_layout import (
    BACKLOG_REACHED,
    BY_LINK,
    BY_PATH_DOWN,
    DONE,
    NEEDS_ROOM,
    TAPE_FULL,
    arrays,
    calls,
    tables,
    world_at,
)


@primitive
def next_of_day(world: Any, index: int, stream: int) -> float:
    """When the next event of a day of rates comes, after now, in seconds; +inf: never again.

    The number of events expected until then is exponential of mean 1: it is used up slot by slot.
    """
    day, rates = tables.days(world, index), arrays.day_rates(world)
    count = day.last - day.first
    left = exponential(arrays.streams(world), stream)
    time = world.now
    if day.repeats and left > day.total:
        days = int(left / day.total)
        left -= days * day.total
        time += days * count * day.slot
        day.position += days * count
    while day.repeats or day.position < count:
        rate = 0.0
        if day.repeats or day.position >= 0:
            rate = rates[day.first + day.position % count]
        end = world.day_start + (day.position + 1) * day.slot
        expected = rate * (end - time)
        if rate > 0.0 and expected >= left:
            return time + left / rate
        left -= max(expected, 0.0)
        time = max(time, end)
        day.position += 1
    return np.inf


@primitive
def next_by_clock(world: Any, publisher: Any) -> float:
    """When the next event of a day of rates or of a schedule comes, in seconds; +inf: never."""
    if publisher.day >= 0:
        return next_of_day(world, publisher.day, publisher.interval_stream)
    schedule = tables.schedules(world, -2 - publisher.day)
    if schedule.position >= schedule.last:
        return np.inf
    due = arrays.schedule_times(world)[schedule.position]
    schedule.position += 1
    return due


@primitive
def move_to(world: Any, level: int) -> None:
    """Let a trial be of a level from now on."""
    world.level = level
    world.weight = 1.0
    for below in range(level):
        world.weight /= tables.levels(world, below).trials
    world.lower = tables.levels(world, level - 1).lower if level > 0 else 0
    world.upper = tables.levels(world, level).upper  # the last is never reached


@primitive
def split(world: Any) -> None:
    """Keep everything as it is, and begin the first trial of the next level."""
    for number in range(world.spans_length):
        span = tables.spans(world, number)
        copy_bytes(span.kept + world.level * world.kept_stride, span.address, span.length)
    level = tables.levels(world, world.level)
    level.left = level.trials - 1
    move_to(world, world.level + 1)
    world.is_retrial = 1


@primitive
def try_again(world: Any, is_over: bool) -> bool:
    """Begin the next trial after one that ends, or go on below with the last; False: all is over.

    ``is_over``: every measured event has met its end; else the backlog has fallen.
    """
    while world.level > 0:
        below = world.level - 1
        level = tables.levels(world, below)
        if level.left > 0:
            level.left -= 1
            for number in range(world.spans_length):
                span = tables.spans(world, number)
                copy_bytes(span.address, span.kept + below * world.kept_stride, span.length)
            move_to(world, below + 1)
            if level.left > 0:
                world.is_retrial = 1
            return True
        move_to(world, below)
        if not is_over:
            return True
    return False


@apart
def schedule_first(address: Any, one: int, other: int) -> int:
    """Give every publisher its first moment, as if all had been going on for ever."""
    world = world_at(address)
    for index in range(world.publisher_count):
        publisher = tables.publishers(world, index)
        if publisher.day != -1:
            first = next_by_clock(world, publisher)
        else:
            first = draw_time(world, publisher.residual, publisher.phase_stream)
        set_key(arrays.nodes(world), index, first)
    if not world.bare:
        calls.start(world, 0, 0)
    return DONE


@apart
def run(address: Any, one: int, other: int) -> int:
    """Simulate on from where the world stands; why it came back.

    ``DONE``, or ``NEEDS_ROOM`` when copies or publications run short, or ``TAPE_FULL``: the caller
    makes room and calls again. Or ``BACKLOG_REACHED`` where that is watched. Nothing is half done
    at those moments.
    """
    world = world_at(address)
    while True:
        if world.free_copies <= world.fan_out or world.free_publication < 0:
            return NEEDS_ROOM
        if world.free_messages < world.messages_at_once:
            return NEEDS_ROOM
        if world.recording and tape_is_short(world):
            return TAPE_FULL
        index = world.passing_head
        if index >= 0:
            world.passing_head = tables.copies(world, index).next
        else:
            now = tables.nodes(world, 1).key
            landing = world.in_flight > 0 and tables.flight(world, 0).time < now
            if landing:
                now = tables.flight(world, 0).time
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
                strike(world, tables.nodes(world, 1).slot)
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
        calls.finish_in_line(world, slot - world.publisher_count, 0)
    else:
        calls.change(world, slot, 0)


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
    sample = tables.samples(world, world.samples_taken)
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
    index = tables.flight(world, 0).cargo
    pop(arrays.flight(world), world.in_flight)
    world.in_flight -= 1
    if index >= 0:
        copy = tables.copies(world, index)
        if tables.channels(world, copy.channel).generation == copy.stamp:
            return index
    calls.land_otherwise(world, index, 0)
    return -1


@merged
def publish(world: Any, index: int) -> None:
    """A publisher publishes an event and sends it to its home broker, if it is connected."""
    publisher = tables.publishers(world, index)
    if publisher.day != -1:
        due = next_by_clock(world, publisher)
    else:
        due = world.now + draw_time(world, publisher.interval, publisher.interval_stream)
    set_key(arrays.nodes(world), index, due)
    number = create(world, publisher)
    if publisher.waits_at >= 0:
        copy = new_copy(world, number, publisher.waits_at, publisher.channel)
        calls.queue_up(world, copy, 0)
        return
    publication = tables.publications(world, number)
    channel = tables.channels(world, publisher.channel)
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
    publication = tables.publications(world, index)
    world.free_publication = publication.next
    rows, streams = arrays.rows(world), arrays.streams(world)
    publication.row = choose(
        rows, publisher.first_row, publisher.last_row, streams, publisher.content_stream
    )
    row = tables.rows(world, publication.row)
    publication.number = world.published
    world.published += 1
    publication.content_class = row.content_class
    publication.tree = row.tree
    publication.copies = 0
    publication.noted = 0
    if world.buffering and world.bypassing:
        for broker in range(world.broker_count):
            tables.marks(world, index * world.broker_count + broker).value = 0
    publication.born = world.now
    publication.lifetime = np.inf
    if row.lifetime >= 0:
        publication.lifetime = draw_time(world, row.lifetime, publisher.lifetime_stream)
    publication.measured = 1 if world.warmup <= world.now <= world.end else 0
    if publication.measured:
        world.measured_alive += 1
        row.published += 1
        if world.recording:
            taped = tables.tape_publications(world, world.taped_publications)
            world.taped_publications += 1
            taped.number = publication.number
            taped.row = publication.row
            taped.born = publication.born
            taped.lifetime = publication.lifetime
        if world.churning:
            calls.note_wanted(world, index, 0)
    return index
