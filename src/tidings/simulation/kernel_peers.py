"""Queues of peers: events wait for their publisher or subscriber to connect, or to be taken in.

A peer that comes and goes has a station with a gate, open while it is connected. A publisher's
events wait there before they cross its link; a subscriber's wait at its home broker, cross its link
and then, where it has a time of its own to take them in, queue for that.
"""

from __future__ import annotations

from typing import Any

from tidings.kernels.compile import merged, primitive
from tidings.simulation.kernel_copies import (
    count_loss,
    draw_time,
    is_expired,
    lose,
    loses,
    new_copy,
    release,
    travel,
)
from tidings.simulation.kernel_layout import (
    AT_SUBSCRIBER,
    BY_EXPIRY,
    BY_LINK,
    FROM_PUBLISHER,
)
from tidings.simulation.kernel_receipts import receipt_of, take_in
from tidings.simulation.kernel_stations import join
from tidings.simulation.kernel_tables import (
    channel_at,
    copy_at,
    place_at,
    publication_at,
    publisher_at,
    receiver_at,
)


@primitive
def queue_up(world: Any, index: int) -> None:
    """A copy comes to a peer's queue."""
    if world.expiry == 2 and is_expired(world, index):
        lose(world, index, BY_EXPIRY)
    else:
        join(world, place_at(world, copy_at(world, index).place).first_station, index)


@primitive
def leave_peer(world: Any, index: int) -> None:
    """A copy is done with at a peer's queue, and goes where it goes from there."""
    copy = copy_at(world, index)
    place = place_at(world, copy.place)
    if place.kind == FROM_PUBLISHER:
        set_out(world, index, place.owner)
    elif place.kind == AT_SUBSCRIBER:
        publication = publication_at(world, copy.publication)
        if publication.measured:
            take_in(world, publication, place.owner, world.now)
        release(world, index)
    else:
        cross(world, index, place.owner)


@merged
def set_out(world: Any, index: int, owner: int) -> None:
    """A publisher sends a copy that has waited over its link to its home broker."""
    publisher = publisher_at(world, owner)
    channel = channel_at(world, publisher.channel)
    copy = copy_at(world, index)
    copy.place = publisher.home
    publication = publication_at(world, copy.publication)
    channel.sent += publication.measured
    if not loses(world, channel):
        delay = travel(world, index, channel)
        if publication.measured:
            channel.delay_sum += delay
        return
    if publication.measured:
        channel.lost += 1
        count_loss(world, publication.row, publisher.home, BY_LINK)
    release(world, index)


@merged
def approach(world: Any, publication: int, index: int) -> None:
    """An event sets out from its home broker to a receiver with queues."""
    receiver = receiver_at(world, index)
    if receiver.waits_at >= 0:
        queue_up(world, new_copy(world, publication, receiver.waits_at, receiver.channel))
    else:
        place = receiver.taken_in_at
        cross(world, new_copy(world, publication, place, receiver.channel), index)


@primitive
def cross(world: Any, index: int, owner: int) -> None:
    """A copy goes over the link of a receiver."""
    receiver = receiver_at(world, owner)
    channel = channel_at(world, receiver.channel)
    copy = copy_at(world, index)
    publication = publication_at(world, copy.publication)
    measured = publication.measured
    channel.sent += measured
    delay = 0.0
    if loses(world, channel):
        channel.lost += measured
        receipt_of(world, publication, owner).lost += measured
        release(world, index)
    elif receiver.taken_in_at >= 0:
        copy.place = receiver.taken_in_at
        delay = travel(world, index, channel)
    else:
        if not channel.instant:
            delay = draw_time(world, channel.delay, channel.delay_stream)
        if measured:
            take_in(world, publication, owner, world.now + delay)
        release(world, index)
    if measured:
        channel.delay_sum += delay
