"""Senders: publishers whose events wait for places in full buffers, or are gathered in batches.

An event that its publisher wants to send waits behind those before it until it has a place in
every buffer on its way that blocks publishers; then it joins the publisher's batch. The batch
crosses the link as one: it is lost or not, and takes the time of one, its size apart.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings.kernels.calendar import key_of, set_key
from tidings.kernels.compile import inlined, merged, primitive
from tidings.simulation.kernel_copies import (
    append,
    count_loss,
    draw_delay,
    full_limit,
    launch,
    loses,
    pass_by,
    release,
    take_places,
    time_on_wire,
)
from tidings.simulation.kernel_layout import (
    BY_LINK,
    BY_PATH_DOWN,
    FIRST_MOMENT,
    TO_BLOCKED,
    arrays,
    tables,
)


@primitive
def visit_sender(world: Any, index: int) -> None:
    """An event comes to be sent by its publisher, or there is room for those that are blocked."""
    place = tables.places(world, tables.copies(world, index).place)
    if place.kind == TO_BLOCKED:
        world.is_waking = 0
        let_go(world)
        return
    sender = tables.senders(world, place.owner)
    append(world, sender, index)
    if not sender.is_blocked and not advances(world, place.owner):
        block(world, place.owner)


# ---- blocked, and let go again -------------------------------------------------------------------


@primitive
def let_go(world: Any) -> None:
    """Let blocked senders send, one event each by turns, as long as any of them can."""
    tries = world.blocked_count
    while tries > 0:
        number = world.blocked_head
        sender = tables.senders(world, number)
        world.blocked_head = sender.next
        world.blocked_count -= 1
        sender.is_blocked = 0
        tries -= 1
        if advances(world, number):
            tries = world.blocked_count + 1
        if sender.head >= 0 or is_overdue(world, sender):
            block(world, number)
        else:
            tries = min(tries, world.blocked_count)


@inlined
def block(world: Any, number: int) -> None:
    """Put a sender behind all others that are blocked."""
    sender = tables.senders(world, number)
    sender.is_blocked = 1
    sender.next = -1
    if world.blocked_count == 0:
        world.blocked_head = number
    else:
        tables.senders(world, world.blocked_tail).next = number
    world.blocked_tail = number
    world.blocked_count += 1


@inlined
def is_away(world: Any, sender: Any) -> bool:
    """Whether a publisher is disconnected."""
    return sender.gate >= 0 and not tables.stations(world, sender.gate).is_open


@primitive
def advances(world: Any, number: int) -> bool:
    """Whether a sender gets on: its batch leaves, or its first event has the places it needs."""
    sender = tables.senders(world, number)
    if is_away(world, sender):
        return False
    if is_overdue(world, sender):
        send_batch(world, number)
        return True
    index = sender.head
    publication = tables.publications(world, tables.copies(world, index).publication)
    full = full_limit(world, publication.row)
    if full >= 0:
        await_place(world, number, full)
        return False
    if sender.waits_for >= 0:
        limit = tables.limits(world, sender.waits_for)
        limit.blocked += publication.measured
        limit.blocked_sum += publication.measured * (world.now - sender.since)
        sender.waits_for = -1
    take_places(world, tables.copies(world, index).publication)
    sender.head = tables.copies(world, index).next
    gather(world, number, index)
    if sender.is_paused and sender.head < 0:
        sender.is_paused = 0
        set_key(arrays.nodes(world), number, world.now + sender.rest)
    return True


@inlined
def await_place(world: Any, number: int, full: int) -> None:
    """Note since when the first event of a sender waits; whoever pauses makes no other."""
    sender = tables.senders(world, number)
    if sender.waits_for >= 0:
        return
    sender.waits_for = full
    sender.since = world.now
    if sender.pauses and not sender.is_paused:
        sender.is_paused = 1
        sender.rest = key_of(arrays.nodes(world), number) - world.now
        set_key(arrays.nodes(world), number, np.inf)


# ---- batches -------------------------------------------------------------------------------------


@inlined
def is_overdue(world: Any, sender: Any) -> bool:
    """Whether a batch is large enough, or has waited long enough, to leave."""
    return sender.gathered >= sender.batch or (sender.gathered > 0 and world.now >= sender.due)


@inlined
def gather(world: Any, number: int, index: int) -> None:
    """Add an event to the batch of a sender, which is connected."""
    sender = tables.senders(world, number)
    tables.copies(world, index).next = -1
    if sender.gathered == 0:
        sender.batch_head = index
        sender.due = world.now + sender.linger
    else:
        tables.copies(world, sender.batch_tail).next = index
    sender.batch_tail = index
    sender.gathered += 1
    if is_overdue(world, sender):
        send_batch(world, number)
    elif not sender.is_timed:
        await_due(world, number)


@inlined
def await_due(world: Any, number: int) -> None:
    """Come back to a sender when its batch is due; it has one such moment at most."""
    sender = tables.senders(world, number)
    sender.is_timed = 1
    cargo: Any = -1 - (FIRST_MOMENT + 2 * world.groups_length + number)
    launch(world, sender.due, cargo)


@primitive
def end_linger(world: Any, number: int) -> None:
    """A batch may be due: it leaves, or waits for its publisher to connect."""
    sender = tables.senders(world, number)
    sender.is_timed = 0
    if sender.gathered == 0:
        return
    if not is_overdue(world, sender):
        await_due(world, number)
    elif not is_away(world, sender):
        send_batch(world, number)
    elif not sender.is_blocked:
        block(world, number)


@primitive
def send_batch(world: Any, number: int) -> None:
    """Send all that a sender has gathered over its link, as one."""
    sender = tables.senders(world, number)
    publisher = tables.publishers(world, number)
    channel = tables.channels(world, publisher.channel)
    lost = channel.is_down > 0 or loses(world, channel)
    delay = 0.0
    if not channel.instant and not lost:
        delay = draw_delay(world, channel)
    if channel.wire >= 0 and not channel.is_down:
        delay += time_of_all(world, sender.batch_head, channel)
    index = sender.batch_head
    sender.gathered = 0
    while index >= 0:
        copy = tables.copies(world, index)
        following = copy.next
        measured = tables.publications(world, copy.publication).measured
        channel.sent += measured
        copy.place = publisher.home
        copy.stamp = channel.generation
        if lost:
            channel.lost += measured
            if measured:
                cause = BY_PATH_DOWN if channel.is_down else BY_LINK
                count_loss(world, copy.publication, publisher.home, cause)
            release(world, index)
        elif channel.instant:
            pass_by(world, index)
        else:
            channel.delay_sum += measured * delay
            launch(world, world.now + delay, index)
        index = following


@merged
def time_of_all(world: Any, index: int, channel: Any) -> float:
    """Send all copies of a list over a wire; how long until the last is through, in seconds."""
    last = 0.0
    while index >= 0:
        last = time_on_wire(world, tables.copies(world, index).publication, channel)
        index = tables.copies(world, index).next
    return last
