"""Deliveries: a broker hands an event to its subscribers, some of them over links of their own.

What a subscriber that is followed on its own got, and how late, is in its receipts.
"""

from __future__ import annotations

from typing import Any

from tidings.kernels.bins import bin_of, count_delay
from tidings.kernels.compile import inlined, merged, primitive
from tidings.simulation.kernel_copies import SLACK_S, draw_delay, draw_time, loses
from tidings.simulation.kernel_layout import arrays, calls, tables
from tidings.simulation.kernel_tapes import tape_delivery


@inlined
def receipt_of(world: Any, publication: Any, index: int) -> Any:
    """Where it is counted what a receiver gets of the publisher of an event."""
    publisher = tables.rows(world, publication.row).publisher
    return tables.receipts(world, index * world.publisher_count + publisher)


@primitive
def take_in(world: Any, publication: Any, index: int, received: float, waited: bool) -> None:
    """A receiver has got a measured event; one that buffers made too late is dropped."""
    receiver = tables.receivers(world, index)
    counts = receipt_of(world, publication, index)
    lifetime = publication.lifetime
    if receiver.lifetime >= 0:
        own = draw_time(world, receiver.lifetime, receiver.lifetime_stream)
        lifetime = min(lifetime, own)
    delay = received - publication.born
    if waited and delay > lifetime + SLACK_S:
        counts.expired_in_buffer += world.weight
        return
    if delay > lifetime + SLACK_S:
        counts.late += world.weight
    if world.is_retrial:
        return
    counts.delivered += 1
    counts.delay_sum += delay
    delay_bin = bin_of(delay, arrays.bin_guess(world), arrays.bin_edges(world))
    count_delay(tables.receiver_curves(world, index * world.bin_count + delay_bin), delay)
    if world.recording:
        tape_delivery(world, publication, -1 - index, received)


@inlined
def is_wanted_at(world: Any, broker: int, content_class: int) -> bool:
    """Whether any subscriber at a broker wants a class."""
    at = broker * world.class_count + content_class
    if tables.curve_of(world, at).value >= 0:
        return True
    return tables.receivers_first(world, at + 1).value > tables.receivers_first(world, at).value


@primitive
def deliver(world: Any, copy: Any, waited: bool, to_all: bool) -> None:
    """Hand an event to the subscribers at a broker that want it, or to churners alone.

    Subscribers with perfect links and no lifetime of their own all see the same, so that they
    are counted once for all. An event that is not measured matters only to queues; ``waited``: it
    was kept in a buffer on its way.
    """
    publication = tables.publications(world, copy.publication)
    at = copy.place * world.class_count + publication.content_class
    curve = tables.curve_of(world, at).value
    if to_all and curve >= 0 and publication.measured:
        delay = world.now - publication.born
        cell = tables.cell_of(world, publication.row * world.broker_count + copy.place).value
        counts = tables.cells(world, cell)
        if delay > publication.lifetime + SLACK_S:
            counts.late += world.weight
        if not world.is_retrial:
            counts.delivered += 1
            counts.delay_sum += delay
            delay_bin = bin_of(delay, arrays.bin_guess(world), arrays.bin_edges(world))
            count_delay(tables.curves(world, curve * world.bin_count + delay_bin), delay)
        if world.recording:
            tape_delivery(world, publication, copy.place, world.now)
    if world.receiver_count > 0:
        first, last = (
            tables.receivers_first(world, at).value,
            tables.receivers_first(world, at + 1).value,
        )
        for position in range(first, last):
            index = tables.receivers_of(world, position).value
            receiver = tables.receivers(world, index)
            if not to_all and receiver.churner < 0:
                continue
            if receiver.waits_at >= 0 or receiver.taken_in_at >= 0:
                calls.approach(world, copy.publication, 2 * index + waited)
            elif publication.measured:
                receive(world, publication, index, waited)


@merged
def receive(world: Any, publication: Any, index: int, waited: bool) -> None:
    """One subscriber gets a measured event over its own link, or does not."""
    channel = tables.channels(world, tables.receivers(world, index).channel)
    channel.sent += 1
    if loses(world, channel):
        channel.lost += 1
        receipt_of(world, publication, index).lost += world.weight
        return
    received = world.now
    if not channel.instant:
        received += draw_delay(world, channel)
        channel.delay_sum += received - world.now
    take_in(world, publication, index, received, waited)
