"""Deliveries: a broker hands an event to its subscribers, some of them over links of their own."""

from __future__ import annotations

from typing import Any

from tidings.kernels.bins import bin_of, count_delay
from tidings.kernels.compile import inlined, merged, primitive
from tidings.simulation.kernel_calls import call_approach
from tidings.simulation.kernel_copies import SLACK_S, draw_time, loses
from tidings.simulation.kernel_receipts import receipt_of, take_in
from tidings.simulation.kernel_tables import (
    bin_edges_of,
    bin_guess_of,
    cell_at,
    cell_of_at,
    channel_at,
    curve_at,
    curve_of_at,
    publication_at,
    receiver_at,
    receivers_first_at,
    receivers_of_at,
)
from tidings.simulation.kernel_tapes import tape_delivery


@inlined
def is_wanted_at(world: Any, broker: int, content_class: int) -> bool:
    """Whether any subscriber at a broker wants a class."""
    at = broker * world.class_count + content_class
    if curve_of_at(world, at).value >= 0:
        return True
    return receivers_first_at(world, at + 1).value > receivers_first_at(world, at).value


@primitive
def deliver(world: Any, copy: Any, waited: bool, to_all: bool) -> None:
    """Hand an event to the subscribers at a broker that want it, or to churners alone.

    Subscribers with perfect links and no lifetime of their own all see the same, so that they
    are counted once for all. An event that is not measured matters only to queues; ``waited``: it
    was kept in a buffer on its way.
    """
    publication = publication_at(world, copy.publication)
    at = copy.place * world.class_count + publication.content_class
    curve = curve_of_at(world, at).value
    if to_all and curve >= 0 and publication.measured:
        delay = world.now - publication.born
        cell = cell_of_at(world, publication.row * world.broker_count + copy.place).value
        counts = cell_at(world, cell)
        if delay > publication.lifetime + SLACK_S:
            counts.late += world.weight
        if not world.is_retrial:
            counts.delivered += 1
            counts.delay_sum += delay
            delay_bin = bin_of(delay, bin_guess_of(world), bin_edges_of(world))
            count_delay(curve_at(world, curve * world.bin_count + delay_bin), delay)
        if world.recording:
            tape_delivery(world, publication, copy.place, world.now)
    if world.receiver_count > 0:
        first, last = receivers_first_at(world, at).value, receivers_first_at(world, at + 1).value
        for position in range(first, last):
            index = receivers_of_at(world, position).value
            receiver = receiver_at(world, index)
            if not to_all and receiver.churner < 0:
                continue
            if receiver.waits_at >= 0 or receiver.taken_in_at >= 0:
                call_approach(world, copy.publication, 2 * index + waited)
            elif publication.measured:
                receive(world, publication, index, waited)


@merged
def receive(world: Any, publication: Any, index: int, waited: bool) -> None:
    """One subscriber gets a measured event over its own link, or does not."""
    channel = channel_at(world, receiver_at(world, index).channel)
    channel.sent += 1
    if loses(world, channel):
        channel.lost += 1
        receipt_of(world, publication, index).lost += world.weight
        return
    received = world.now
    if not channel.instant:
        received += draw_time(world, channel.delay, channel.delay_stream)
        channel.delay_sum += received - world.now
    take_in(world, publication, index, received, waited)
