"""Copies on failing links, and the persistent buffers of the brokers that send them.

With buffering a broker keeps an event until the next broker has taken it over: has served it and
stored it in buffers of its own. What is lost before that by a failure is back in the buffer, from
where it is sent again when the link and both brokers are up and known to be. Only an event that
has not reached the publisher's home broker is lost, or one that was kept and has expired: it is
dropped when that is seen, in the buffer or before it is handed over.
"""

from __future__ import annotations

from typing import Any

from tidings.kernels.compile import inlined, merged, primitive
from tidings.simulation.kernel_copies import (
    count_loss_here,
    has_waited,
    is_expired,
    lose,
    loses,
    release,
    time_on_wire,
    travel,
)
from tidings.simulation.kernel_deliveries import deliver
from tidings.simulation.kernel_forgetting import is_forgotten_behind
from tidings.simulation.kernel_layout import (
    AT_MEMBER,
    BESIDE,
    BY_BROKER_DOWN,
    BY_EXPIRY_IN_BUFFER,
    BY_LINK,
    BY_PATH_DOWN,
    DELIVERED,
    KEPT,
    RESTORED,
)
from tidings.simulation.kernel_limits import pass_by
from tidings.simulation.kernel_tables import (
    buffer_at,
    channel_at,
    component_at,
    copy_at,
    interest_at,
    label_at,
    mark_at,
    parcel_at,
    place_at,
    publication_at,
)
from tidings.simulation.kernel_walks import is_open, link_of


@inlined
def is_kept(world: Any, index: int) -> bool:
    """Whether the sender of a copy keeps the event until the copy is acknowledged."""
    return world.buffering and label_at(world, index).kind != BESIDE


@primitive
def keep(world: Any, at: int, index: int) -> None:
    """Put a copy into a buffer, behind all others; what has expired at its head is dropped."""
    buffer = buffer_at(world, at)
    while buffer.head >= 0 and is_expired(world, buffer.head):
        expired = buffer.head
        buffer.head = copy_at(world, expired).next
        give_up(world, at, expired)
    label_at(world, index).kind = KEPT
    copy_at(world, index).next = -1
    if buffer.head < 0:
        buffer.head = index
    else:
        copy_at(world, buffer.tail).next = index
    buffer.tail = index


@primitive
def give_up(world: Any, at: int, index: int) -> None:
    """A copy that was taken out of a buffer is lost, since it has expired there."""
    if at < world.arc_count:
        lose(world, index, BY_EXPIRY_IN_BUFFER)
    else:
        copy = copy_at(world, index)
        count_loss_here(world, copy.publication, copy.place, BY_EXPIRY_IN_BUFFER)
        release(world, index)


@primitive
def transmit(world: Any, index: int) -> None:
    """Send a copy over its channel, an arc; with buffering, again until nothing is lost by chance.

    A sender that waits for acknowledgements repeats at once what the link lost by chance.
    """
    copy = copy_at(world, index)
    channel = channel_at(world, copy.channel)
    measured = publication_at(world, copy.publication).measured
    channel.sent += measured
    if component_at(world, link_of(world, copy.channel)).down_by > 0:
        channel.lost += measured
        if is_kept(world, index):
            keep(world, copy.channel, index)
        else:
            lose(world, index, BY_PATH_DOWN)
        return
    while loses(world, channel):
        channel.lost += measured
        if channel.wire >= 0:
            time_on_wire(world, copy.publication, channel)
        if not is_kept(world, index) or channel.reliability <= 0.0:
            lose(world, index, BY_LINK)
            return
        channel.sent += measured
    delay = travel(world, index, channel)
    if measured:
        channel.delay_sum += delay


@primitive
def turn_away(world: Any, index: int) -> None:
    """A copy does not arrive: its link failed under it, or its broker is down."""
    copy = copy_at(world, index)
    channel = channel_at(world, copy.channel)
    channel.lost += publication_at(world, copy.publication).measured
    if world.parcels_length > 0 and place_at(world, copy.place).kind == AT_MEMBER:
        parcel_at(world, index).cut_off = 1
        pass_by(world, index)  # its group sees to it
    elif copy.channel >= world.arc_count and channel.generation != copy.stamp:
        lose(world, index, BY_PATH_DOWN)  # nobody keeps what is on a client's link
    else:
        fail_copy(world, index)


@primitive
def fail_copy(world: Any, index: int) -> None:
    """A copy falls to a failure: it is sent again from its sender's buffer, or lost."""
    copy = copy_at(world, index)
    if copy.channel >= world.arc_count:
        lose(world, index, BY_BROKER_DOWN)
    elif not is_kept(world, index):
        lose(world, index, BY_PATH_DOWN)
    elif is_open(world, copy.channel):
        label_at(world, index).kind = KEPT
        transmit(world, index)
    else:
        keep(world, copy.channel, index)


@primitive
def send_kept(world: Any, arc: int) -> None:
    """Send what is kept for an arc, if it is open, as far as subscriptions are known."""
    if not is_open(world, arc):
        return
    buffer = buffer_at(world, arc)
    index = buffer.head
    buffer.head = -1
    while index >= 0:
        copy = copy_at(world, index)
        following = copy.next
        publication = publication_at(world, copy.publication)
        wanted = publication.content_class
        if is_expired(world, index):
            give_up(world, arc, index)
        elif interest_at(world, arc * world.class_count + wanted).value > 0:
            transmit(world, index)
        elif world.churning and not is_forgotten_behind(world, publication, arc):
            release(world, index)  # those for whom it was kept have gone
        else:
            keep(world, arc, index)
        index = following


@merged
def hand_over_kept(world: Any, broker: int) -> None:
    """Deliver what is kept for the subscribers of a broker, whose subscriptions are back.

    It is put where the loop takes one after the other, as each may make many copies.
    """
    at = world.arc_count + broker
    buffer = buffer_at(world, at)
    index = buffer.head
    buffer.head = -1
    while index >= 0:
        copy = copy_at(world, index)
        following = copy.next
        if is_expired(world, index):
            give_up(world, at, index)
        else:
            label_at(world, index).kind = RESTORED
            pass_by(world, index)
        index = following


@primitive
def hand_over(world: Any, index: int) -> None:
    """Deliver an event to the subscribers of a broker, unless they have got it before.

    One that was kept in a buffer and has expired since is dropped here too.
    """
    copy = copy_at(world, index)
    waited = has_waited(world, index)
    publication = publication_at(world, copy.publication)
    if world.buffering and world.bypassing:
        mark = mark_at(world, copy.publication * world.broker_count + copy.place)
        if mark.value == DELIVERED:
            world.duplicates += publication.measured
            return
        if not (waited and is_expired(world, index)):
            mark.value = DELIVERED
    if waited and is_expired(world, index):
        count_loss_here(world, copy.publication, copy.place, BY_EXPIRY_IN_BUFFER)
    elif publication.measured or world.queueing:
        deliver(world, copy, waited, True)
