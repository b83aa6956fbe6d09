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
    draw_delay,
    has_waited,
    is_expired,
    lose,
    loses,
    new_copy,
    pass_by,
    release,
    time_on_wire,
    travel,
)
from tidings.simulation.kernel_deliveries import receipt_of, take_in
from tidings.simulation.kernel_layout import (
    AT_MEMBER,
    AT_SUBSCRIBER,
    BY_EXPIRY,
    BY_LINK,
    BY_PATH_DOWN,
    FROM_PUBLISHER,
    KEPT,
    TO_GROUP,
    tables,
)
from tidings.simulation.kernel_spreading import is_known_at_home
from tidings.simulation.kernel_stations import join
from tidings.simulation.kernel_tapes import tape_delivery, tape_handling
from tidings.simulation.kernel_wanting import stop_wanting


@primitive
def queue_up(world: Any, index: int) -> None:
    """A copy comes to a peer's queue, or to a subscriber that has none."""
    place = tables.places(world, tables.copies(world, index).place)
    if place.first_station == place.last_station:
        leave_peer(world, index)
    elif world.expiry == 2 and place.kind != AT_MEMBER and is_expired(world, index):
        lose(world, index, BY_EXPIRY)  # what a member was sent it handles
    else:
        join(world, place.first_station, index)


@primitive
def leave_peer(world: Any, index: int) -> None:
    """A copy is done with at a peer's queue, and goes where it goes from there."""
    copy = tables.copies(world, index)
    place = tables.places(world, copy.place)
    if place.kind == FROM_PUBLISHER:
        set_out(world, index, place.owner)
    elif place.kind == AT_SUBSCRIBER:
        publication = tables.publications(world, copy.publication)
        taped = world.taped_deliveries
        if publication.measured and tables.receivers(world, place.owner).churner >= 0:
            welcome(world, copy.publication, place.owner, has_waited(world, index))
        elif publication.measured:
            take_in(world, publication, place.owner, world.now, has_waited(world, index))
        if place.last_station > place.first_station:
            tape_handling(world, taped, copy.started, -1, -1)
        release(world, index)
    elif place.kind >= TO_GROUP:
        # Groups and senders are seen to by the loop: called from here, their code would be compiled
        # as a part of everything that may hand an event to a peer.
        if place.kind == AT_MEMBER:
            number = tables.receivers(world, place.owner).group
            copy.place = tables.groups(world, number).handled_at
        pass_by(world, index)
    else:
        cross(world, index, place.owner)


@merged
def set_out(world: Any, index: int, owner: int) -> None:
    """A publisher sends a copy that has waited over its link to its home broker."""
    copy = tables.copies(world, index)
    if world.senders_length > 0:
        copy.place = tables.senders(world, owner).place
        pass_by(world, index)
        return
    publisher = tables.publishers(world, owner)
    channel = tables.channels(world, publisher.channel)
    copy.place = publisher.home
    publication = tables.publications(world, copy.publication)
    channel.sent += publication.measured
    if not channel.is_down and not loses(world, channel):
        delay = travel(world, index, channel)
        if publication.measured:
            channel.delay_sum += delay
        return
    if channel.wire >= 0 and not channel.is_down:
        time_on_wire(world, copy.publication, channel)
    if publication.measured:
        channel.lost += 1
        cause = BY_PATH_DOWN if channel.is_down else BY_LINK
        count_loss(world, copy.publication, publisher.home, cause)
    release(world, index)


@merged
def approach(world: Any, publication: int, index: int, waited: bool) -> None:
    """An event sets out from its home broker to a receiver with queues, or one that is known."""
    receiver = tables.receivers(world, index)
    if receiver.churner >= 0 and not is_known_at_home(world, publication, receiver.churner):
        return
    if receiver.waits_at >= 0:
        copy = new_copy(world, publication, receiver.waits_at, receiver.channel)
    else:
        copy = new_copy(world, publication, receiver.taken_in_at, receiver.channel)
    if waited:
        tables.labels(world, copy).kind = KEPT
    if receiver.waits_at >= 0:
        queue_up(world, copy)
    else:
        cross(world, copy, index)


@merged
def welcome(world: Any, index: int, owner: int, waited: bool) -> None:
    """A measured event reaches a churner, while it is there or too late.

    What comes in a later stay is a notification, but not one of what was wanted then.
    """
    publication = tables.publications(world, index)
    churner = tables.receivers(world, owner).churner
    until = stop_wanting(world, index, churner)
    if until > world.now:
        take_in(world, publication, owner, world.now, waited)
        return
    if until > 0.0:
        receipt_of(world, publication, owner).unsubscribed += 1
    if world.recording and tables.switches(world, world.first_churner + churner).is_on:
        tape_delivery(world, publication, -1 - owner, world.now)


@primitive
def cross(world: Any, index: int, owner: int) -> None:
    """A copy goes over the link of a receiver."""
    receiver = tables.receivers(world, owner)
    channel = tables.channels(world, receiver.channel)
    copy = tables.copies(world, index)
    publication = tables.publications(world, copy.publication)
    measured = publication.measured
    channel.sent += measured
    delay = 0.0
    if channel.is_down:
        channel.lost += measured
        lose(world, index, BY_PATH_DOWN)
    elif loses(world, channel):
        channel.lost += measured
        if receiver.churner >= 0:
            measured = 1 if stop_wanting(world, copy.publication, receiver.churner) > 0.0 else 0
        receipt_of(world, publication, owner).lost += measured
        if channel.wire >= 0:
            time_on_wire(world, copy.publication, channel)
        release(world, index)
    elif receiver.taken_in_at >= 0:
        copy.place = receiver.taken_in_at
        delay = travel(world, index, channel)
    else:
        if not channel.instant:
            delay = draw_delay(world, channel)
        if measured:
            waited = has_waited(world, index)
            take_in(world, publication, owner, world.now + delay, waited)
        release(world, index)
    if measured:
        channel.delay_sum += delay
