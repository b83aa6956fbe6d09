"""Copies of events: how they come to be, travel, are lost and forgotten."""

from __future__ import annotations

from typing import Any

from tidings.kernels.calendar import push
from tidings.kernels.compile import inlined, merged, primitive
from tidings.kernels.sampling import draw
from tidings.kernels.streams import uniform
from tidings.simulation.kernel_calls import call_settle
from tidings.simulation.kernel_layout import (
    BESIDE,
    BY_EXPIRY,
    BY_PATH_DOWN,
    FIRST_HAND,
    FROM_PUBLISHER,
    HAS_PLACES,
    KEPT,
    LOST,
    LOST_THERE,
    RESTORED,
)
from tidings.simulation.kernel_limits import pass_by, vacate_all
from tidings.simulation.kernel_tables import (
    cell_of_at,
    channel_at,
    copy_at,
    flight_of,
    label_at,
    law_at,
    law_params_of,
    loss_at,
    loss_here_at,
    mark_at,
    passage_at,
    place_at,
    publication_at,
    publisher_at,
    receipt_at,
    receiver_at,
    row_at,
    size_at,
    step_at,
    streams_of,
    wire_at,
)
from tidings.simulation.kernel_walks import walk_tree
from tidings.simulation.kernel_wanting import count_missed, stop_wanting

# Times are meant to the nanosecond: what is late by less than half of one is on time. Otherwise
# rounding would decide wherever delay and lifetime are equal by construction.
SLACK_S = 0.5e-9


@primitive
def draw_time(world: Any, law: int, stream: int) -> float:
    """A random time by one of the world's laws, in seconds."""
    chosen = law_at(world, law)
    return draw(chosen.kind, chosen.offset, law_params_of(world), streams_of(world), stream)


@inlined
def new_copy(world: Any, publication: int, place: int, channel: int) -> int:
    """A copy on its way to a place; the loop has made sure that there is room."""
    index = world.free_copy
    copy = copy_at(world, index)
    world.free_copy = copy.next
    world.free_copies -= 1
    copy.publication = publication
    copy.place = place
    copy.channel = channel
    if world.failing:
        label = label_at(world, index)
        label.kind = FIRST_HAND
        label.via = -1
    publication_at(world, publication).copies += 1
    return index


@inlined
def release(world: Any, index: int) -> None:
    """Forget a copy, and its publication with the last one."""
    copy = copy_at(world, index)
    copy.next = world.free_copy
    world.free_copy = index
    world.free_copies += 1
    publication = publication_at(world, copy.publication)
    publication.copies -= 1
    if publication.copies == 0:
        forget(world, copy.publication)


@inlined
def forget(world: Any, index: int) -> None:
    """Forget a publication of which there are no copies any more."""
    publication = publication_at(world, index)
    if publication.noted:
        call_settle(world, index, 0)
    world.measured_alive -= publication.measured
    publication.next = world.free_publication
    world.free_publication = index


@inlined
def count_loss(world: Any, index: int, broker: int, cause: int) -> None:
    """Count that a publication was lost on its way to a broker, or there, for all behind it too."""
    row = publication_at(world, index).row
    cell = cell_of_at(world, row * world.broker_count + broker).value
    loss_at(world, cell * world.cause_count + cause).value += world.weight
    if world.churning:
        passage_at(world, index * world.broker_count + broker).value = LOST_THERE - cause


@primitive
def lose(world: Any, index: int, cause: int) -> None:
    """A copy is lost at its place, and with it everything it would have become."""
    copy = copy_at(world, index)
    publication = publication_at(world, copy.publication)
    if publication.measured:
        if copy.place >= world.broker_count:
            count_loss_of_peer(world, index, cause)
        elif world.buffering and world.bypassing:
            note_loss_behind(world, index, cause)
        else:
            broker = copy.place
            if world.bypassing and label_at(world, index).via >= 0:
                # What is lost on a detour is lost for those at its end and behind that.
                broker = channel_at(world, label_at(world, index).via).target
            count_loss(world, copy.publication, broker, cause)
    release(world, index)


@merged
def count_loss_of_peer(world: Any, index: int, cause: int) -> None:
    """Count that an event was lost in a peer's queue: for all, or for this subscriber."""
    copy = copy_at(world, index)
    place = place_at(world, copy.place)
    if place.kind == FROM_PUBLISHER:
        count_loss(world, copy.publication, publisher_at(world, place.owner).home, cause)
        return
    churner = receiver_at(world, place.owner).churner
    if churner >= 0 and not stop_wanting(world, copy.publication, churner) > 0.0:
        return
    publisher = row_at(world, publication_at(world, copy.publication).row).publisher
    counts = receipt_at(world, place.owner * world.publisher_count + publisher)
    if cause == BY_EXPIRY:
        counts.expired += 1
    elif cause == BY_PATH_DOWN:
        counts.path_down += 1
    else:
        counts.dropped += 1


@primitive
def count_loss_here(world: Any, index: int, broker: int, cause: int) -> None:
    """Count that an event was lost for the subscribers at a broker, but not for those behind."""
    publication = publication_at(world, index)
    if not publication.measured:
        return
    if world.buffering and world.bypassing:
        note_loss(world, index, broker, cause)
    else:
        cell = cell_of_at(world, publication.row * world.broker_count + broker).value
        loss_here_at(world, cell * world.cause_count + cause).value += world.weight
        if world.churning:
            passage_at(world, index * world.broker_count + broker).value = LOST_THERE - cause


@primitive
def settle(world: Any, index: int) -> None:
    """Count what was noted of a publication, now that no copy of it can come any more."""
    noted = publication_at(world, index).noted
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
    mark = mark_at(world, index * world.broker_count + broker)
    if mark.value == 0:
        mark.value = LOST + cause
        publication_at(world, index).noted |= 1
        if world.churning:
            passage_at(world, index * world.broker_count + broker).value = LOST_THERE - cause


@primitive
def note_loss_behind(world: Any, index: int, cause: int) -> None:
    """Note a loss at a broker and behind it; the loss of a copy sent beside another is none."""
    if label_at(world, index).kind == BESIDE:
        return
    copy = copy_at(world, index)
    publication = publication_at(world, copy.publication)
    start = world.broker_count  # the first half of the steps may be in use
    kind = publication.content_class
    end = walk_tree(world, start, publication.tree, copy.place, copy.channel, kind)
    for position in range(start, end):
        note_loss(world, copy.publication, step_at(world, position).broker, cause)


@merged
def count_noted(world: Any, index: int) -> None:
    """Count the losses noted of a publication, at every broker that has not got it."""
    row = publication_at(world, index).row
    for broker in range(world.broker_count):
        mark = mark_at(world, index * world.broker_count + broker).value
        if mark >= LOST:
            cell = cell_of_at(world, row * world.broker_count + broker).value
            at = cell * world.cause_count + mark - LOST
            loss_here_at(world, at).value += world.weight


@inlined
def is_expired(world: Any, index: int) -> bool:
    """Whether the event of a copy is past its lifetime."""
    publication = publication_at(world, copy_at(world, index).publication)
    return world.now - publication.born > publication.lifetime + SLACK_S


@inlined
def has_waited(world: Any, index: int) -> bool:
    """Whether the event of a copy was kept in a buffer on its way."""
    if not world.buffering:
        return False
    kind = label_at(world, index).kind
    return bool(kind in (KEPT, RESTORED))


@primitive
def loses_in_bursts(world: Any, channel: Any) -> bool:
    """Whether a channel loses what is sent now, where that hangs on what was sent before."""
    streams = streams_of(world)
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
    return uniform(streams_of(world), channel.loss_stream) >= channel.reliability


@primitive
def time_on_wire(world: Any, index: int, channel: Any) -> float:
    """Send an event over a wire; how long it waits and is being sent, in seconds.

    What the channel loses has used it too.
    """
    wire = wire_at(world, channel.wire)
    size = size_at(world, publication_at(world, index).row).value
    wire.free = max(wire.free, world.now) + size * channel.seconds_per_byte
    return wire.free - world.now


@inlined
def travel(world: Any, index: int, channel: Any) -> float:
    """Put a copy on its way over a channel; its delay in seconds."""
    copy = copy_at(world, index)
    copy.stamp = channel.generation
    if channel.instant:
        pass_by(world, index)
        return 0.0
    delay = draw_time(world, channel.delay, channel.delay_stream)
    if channel.wire >= 0:
        delay += time_on_wire(world, copy.publication, channel)
    world.order += 1
    push(flight_of(world), world.in_flight, world.now + delay, world.order, index)
    world.in_flight += 1
    return delay
