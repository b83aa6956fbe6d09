"""Copies of events: how they come to be, travel, are lost and forgotten.

An event takes a place in every buffer on its way that blocks publishers, a *limit*, before it
leaves its publisher, and gives it back when it leaves the buffer. Of an event that is lost all
places are free again when no copy of it is left.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings.kernels.calendar import push
from tidings.kernels.compile import inlined, merged, primitive
from tidings.kernels.sampling import draw
from tidings.kernels.streams import uniform
from tidings.simulation.kernel_layout import (
    BESIDE,
    FIRST_HAND,
    FROM_PUBLISHER,
    HAS_PLACES,
    KEPT,
    LOST,
    LOST_THERE,
    RESTORED,
    arrays,
    calls,
    tables,
)
from tidings.simulation.kernel_walks import walk_tree
from tidings.simulation.kernel_wanting import count_cause, count_missed, stop_wanting


@inlined
def pass_by(world: Any, index: int) -> None:
    """Let a copy enter its place at this very moment, after those that do so already."""
    tables.copies(world, index).next = -1
    if world.passing_head < 0:
        world.passing_head = index
    else:
        tables.copies(world, world.passing_tail).next = index
    world.passing_tail = index


@inlined
def append(world: Any, queue: Any, index: int) -> None:
    """Put a copy behind all others of a queue, a linked list with a head and a tail."""
    tables.copies(world, index).next = -1
    if queue.head < 0:
        queue.head = index
    else:
        tables.copies(world, queue.tail).next = index
    queue.tail = index


@inlined
def launch(world: Any, due: float, cargo: int) -> None:
    """Let a copy land when it is due; below 0, a message or a moment that somebody waits for."""
    world.order += 1
    push(arrays.flight(world), world.in_flight, due, world.order, cargo)
    world.in_flight += 1


@inlined
def full_limit(world: Any, row: int) -> int:
    """Find a limit that has no place for an event of this row; −1: all have one."""
    for position in range(
        tables.limits_first(world, row).value, tables.limits_first(world, row + 1).value
    ):
        number = tables.limits_of(world, position).value
        if tables.limits(world, number).taken >= tables.limits(world, number).capacity:
            return number
    return -1


@inlined
def take_places(world: Any, index: int) -> None:
    """Take a place for a publication in every limit on its way; all of them have one."""
    publication = tables.publications(world, index)
    row = publication.row
    for position in range(
        tables.limits_first(world, row).value, tables.limits_first(world, row + 1).value
    ):
        number = tables.limits_of(world, position).value
        tables.limits(world, number).taken += 1
        tables.holds(world, index * world.limits_length + number).value = 1
        publication.noted |= HAS_PLACES


@primitive
def vacate(world: Any, index: int, number: int) -> None:
    """Give back the place of a publication in a limit, if it has one."""
    hold = tables.holds(world, index * world.limits_length + number)
    if hold.value:
        hold.value = 0
        tables.limits(world, number).taken -= 1
        wake(world)


@primitive
def vacate_all(world: Any, index: int) -> None:
    """Give back all places of a publication of which there are no copies any more."""
    row = tables.publications(world, index).row
    for position in range(
        tables.limits_first(world, row).value, tables.limits_first(world, row + 1).value
    ):
        vacate(world, index, tables.limits_of(world, position).value)


@inlined
def wake(world: Any) -> None:
    """Let it be seen who is blocked no more, as the next that happens at this very moment."""
    if world.blocked_count > 0 and not world.is_waking:
        world.is_waking = 1
        pass_by(world, world.waker)


# Times are meant to the nanosecond: what is late by less than half of one is on time. Otherwise
# rounding would decide wherever delay and lifetime are equal by construction.
SLACK_S = 0.5e-9


@primitive
def draw_time(world: Any, law: int, stream: int) -> float:
    """A random time by one of the world's laws, in seconds."""
    chosen = tables.laws(world, law)
    return draw(chosen.kind, chosen.offset, arrays.law_params(world), arrays.streams(world), stream)


@inlined
def at_this_time(world: Any, channel: Any, delay: float) -> float:
    """Make a delay of a channel as long as those of this time of day are, in seconds."""
    if channel.day == 0:
        return delay
    day = tables.delay_days(world, channel.day - 1)
    slot = int(np.floor((world.now - world.day_start) / day.slot)) % (day.last - day.first)
    return delay * arrays.delay_times(world)[day.first + slot]


@primitive
def draw_delay(world: Any, channel: Any) -> float:
    """A random delay of a channel, of an event that is sent now, in seconds."""
    delay = draw_time(world, channel.delay, channel.delay_stream)
    return at_this_time(world, channel, delay)


@inlined
def new_copy(world: Any, publication: int, place: int, channel: int) -> int:
    """A copy on its way to a place; the loop has made sure that there is room."""
    index = world.free_copy
    copy = tables.copies(world, index)
    world.free_copy = copy.next
    world.free_copies -= 1
    copy.publication = publication
    copy.place = place
    copy.channel = channel
    if world.failing:
        label = tables.labels(world, index)
        label.kind = FIRST_HAND
        label.via = -1
    tables.publications(world, publication).copies += 1
    return index


@inlined
def release(world: Any, index: int) -> None:
    """Forget a copy, and its publication with the last one."""
    copy = tables.copies(world, index)
    copy.next = world.free_copy
    world.free_copy = index
    world.free_copies += 1
    publication = tables.publications(world, copy.publication)
    publication.copies -= 1
    if publication.copies == 0:
        forget(world, copy.publication)


@inlined
def forget(world: Any, index: int) -> None:
    """Forget a publication of which there are no copies any more."""
    publication = tables.publications(world, index)
    if publication.noted:
        calls.settle(world, index, 0)
    world.measured_alive -= publication.measured
    publication.next = world.free_publication
    world.free_publication = index


@inlined
def count_loss(world: Any, index: int, broker: int, cause: int) -> None:
    """Count that a publication was lost on its way to a broker, or there, for all behind it too."""
    row = tables.publications(world, index).row
    cell = tables.cell_of(world, row * world.broker_count + broker).value
    tables.losses(world, cell * world.cause_count + cause).value += world.weight
    if world.churning:
        tables.passages(world, index * world.broker_count + broker).value = LOST_THERE - cause


@primitive
def lose(world: Any, index: int, cause: int) -> None:
    """A copy is lost at its place, and with it everything it would have become."""
    copy = tables.copies(world, index)
    publication = tables.publications(world, copy.publication)
    if publication.measured:
        if copy.place >= world.broker_count:
            count_loss_of_peer(world, index, cause)
        elif world.buffering and world.bypassing:
            note_loss_behind(world, index, cause)
        else:
            broker = copy.place
            if world.bypassing and tables.labels(world, index).via >= 0:
                # What is lost on a detour is lost for those at its end and behind that.
                broker = tables.channels(world, tables.labels(world, index).via).target
            count_loss(world, copy.publication, broker, cause)
    release(world, index)


@merged
def count_loss_of_peer(world: Any, index: int, cause: int) -> None:
    """Count that an event was lost in a peer's queue: for all, or for this subscriber."""
    copy = tables.copies(world, index)
    place = tables.places(world, copy.place)
    if place.kind == FROM_PUBLISHER:
        count_loss(world, copy.publication, tables.publishers(world, place.owner).home, cause)
        return
    churner = tables.receivers(world, place.owner).churner
    if churner >= 0 and not stop_wanting(world, copy.publication, churner) > 0.0:
        return
    publisher = tables.rows(world, tables.publications(world, copy.publication).row).publisher
    counts = tables.receipts(world, place.owner * world.publisher_count + publisher)
    count_cause(counts, cause)


@primitive
def count_loss_here(world: Any, index: int, broker: int, cause: int) -> None:
    """Count that an event was lost for the subscribers at a broker, but not for those behind."""
    publication = tables.publications(world, index)
    if not publication.measured:
        return
    if world.buffering and world.bypassing:
        note_loss(world, index, broker, cause)
    else:
        cell = tables.cell_of(world, publication.row * world.broker_count + broker).value
        tables.losses_here(world, cell * world.cause_count + cause).value += world.weight
        if world.churning:
            tables.passages(world, index * world.broker_count + broker).value = LOST_THERE - cause


@primitive
def settle(world: Any, index: int) -> None:
    """Count what was noted of a publication, now that no copy of it can come any more."""
    noted = tables.publications(world, index).noted
    if noted >= HAS_PLACES:
        vacate_all(world, index)
    if world.churning and noted & 1:
        count_missed(world, index)
    if world.buffering and world.bypassing:
        count_noted(world, index)


# ---- where an event may come to a broker twice, a loss counts only once nothing can come any more


@primitive
def note_loss(world: Any, index: int, broker: int, cause: int) -> None:
    """Note the first cause of loss of an event at a broker that has not got it yet."""
    mark = tables.marks(world, index * world.broker_count + broker)
    if mark.value == 0:
        mark.value = LOST + cause
        tables.publications(world, index).noted |= 1
        if world.churning:
            tables.passages(world, index * world.broker_count + broker).value = LOST_THERE - cause


@primitive
def note_loss_behind(world: Any, index: int, cause: int) -> None:
    """Note a loss at a broker and behind it; the loss of a copy sent beside another is none."""
    if tables.labels(world, index).kind == BESIDE:
        return
    copy = tables.copies(world, index)
    publication = tables.publications(world, copy.publication)
    start = world.broker_count  # the first half of the steps may be in use
    kind = publication.content_class
    end = walk_tree(world, start, publication.tree, copy.place, copy.channel, kind)
    for position in range(start, end):
        note_loss(world, copy.publication, tables.walk(world, position).broker, cause)


@merged
def count_noted(world: Any, index: int) -> None:
    """Count the losses noted of a publication, at every broker that has not got it."""
    row = tables.publications(world, index).row
    for broker in range(world.broker_count):
        mark = tables.marks(world, index * world.broker_count + broker).value
        if mark >= LOST:
            cell = tables.cell_of(world, row * world.broker_count + broker).value
            at = cell * world.cause_count + mark - LOST
            tables.losses_here(world, at).value += world.weight


@inlined
def is_expired(world: Any, index: int) -> bool:
    """Whether the event of a copy is past its lifetime."""
    publication = tables.publications(world, tables.copies(world, index).publication)
    return world.now - publication.born > publication.lifetime + SLACK_S


@inlined
def has_waited(world: Any, index: int) -> bool:
    """Whether the event of a copy was kept in a buffer on its way."""
    if not world.buffering:
        return False
    kind = tables.labels(world, index).kind
    return bool(kind in (KEPT, RESTORED))


@primitive
def loses_in_bursts(world: Any, channel: Any) -> bool:
    """Whether a channel loses what is sent now, where that hangs on what was sent before."""
    streams = arrays.streams(world)
    if channel.fate < 0 or uniform(streams, channel.loss_stream) < channel.anew:
        is_lost = uniform(streams, channel.loss_stream) >= channel.reliability
        channel.fate = 1 if is_lost else 0
    return bool(channel.fate > 0)


@inlined
def loses(world: Any, channel: Any) -> bool:
    """Whether a channel loses what is sent over it now."""
    if channel.reliability >= 1.0:
        return False
    if channel.anew < 1.0:
        return loses_in_bursts(world, channel)
    return uniform(arrays.streams(world), channel.loss_stream) >= channel.reliability


@primitive
def time_on_wire(world: Any, index: int, channel: Any) -> float:
    """Send an event over a wire; how long it waits and is being sent, in seconds.

    What the channel loses has used it too.
    """
    wire = tables.wires(world, channel.wire)
    size = tables.sizes(world, tables.publications(world, index).row).value
    wire.free = max(wire.free, world.now) + size * channel.seconds_per_byte
    return wire.free - world.now


@inlined
def travel(world: Any, index: int, channel: Any) -> float:
    """Put a copy on its way over a channel; its delay in seconds."""
    copy = tables.copies(world, index)
    copy.stamp = channel.generation
    if channel.instant:
        pass_by(world, index)
        return 0.0
    delay = draw_delay(world, channel)
    if channel.wire >= 0:
        delay += time_on_wire(world, copy.publication, channel)
    launch(world, world.now + delay, index)
    return delay
