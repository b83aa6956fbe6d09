"""Deliveries: a broker hands an event to its subscribers, some of them over links of their own."""

from __future__ import annotations

from typing import Any

from tidings.kernels.compile import inlined, primitive
from tidings.simulation.kernel_bins import bin_of, count_delay
from tidings.simulation.kernel_copies import SLACK_S, draw_time, loses
from tidings.simulation.kernel_tables import (
    bin_edges_of,
    bin_guess_of,
    cell_at,
    cell_of_at,
    channel_at,
    curve_at,
    curve_of_at,
    receipt_at,
    receiver_at,
    receiver_curve_at,
    receivers_first_at,
    receivers_of_at,
    row_at,
    taped_delivery_at,
)


@inlined
def is_wanted_at(world: Any, broker: int, content_class: int) -> bool:
    """Whether any subscriber at a broker wants a class."""
    at = broker * world.class_count + content_class
    if curve_of_at(world, at).value >= 0:
        return True
    return receivers_first_at(world, at + 1).value > receivers_first_at(world, at).value


@primitive
def deliver(world: Any, copy: Any, publication: Any) -> None:
    """Hand a measured event to the subscribers at a broker that want it.

    Subscribers with perfect links and no lifetime of their own all see the same, so that they
    are counted once for all.
    """
    at = copy.broker * world.class_count + publication.content_class
    curve = curve_of_at(world, at).value
    if curve >= 0:
        delay = world.now - publication.born
        cell = cell_of_at(world, publication.row * world.broker_count + copy.broker).value
        counts = cell_at(world, cell)
        counts.delivered += 1
        counts.delay_sum += delay
        if delay <= publication.lifetime + SLACK_S:
            counts.on_time += 1
        found = bin_of(delay, bin_guess_of(world), bin_edges_of(world))
        count_delay(curve_at(world, curve * world.bin_count + found), delay)
        if world.recording:
            tape_delivery(world, publication, copy.broker, world.now)
    if world.receiver_count > 0:
        first, last = receivers_first_at(world, at).value, receivers_first_at(world, at + 1).value
        for position in range(first, last):
            receive(world, publication, receivers_of_at(world, position).value)


@primitive
def receive(world: Any, publication: Any, index: int) -> None:
    """One subscriber gets an event over its own link, or does not."""
    receiver = receiver_at(world, index)
    channel = channel_at(world, receiver.channel)
    publisher = row_at(world, publication.row).publisher
    counts = receipt_at(world, index * world.publisher_count + publisher)
    channel.sent += 1
    if loses(world, channel):
        channel.lost += 1
        counts.lost += 1
        return
    received = world.now
    if not channel.instant:
        received += draw_time(world, channel.delay, channel.delay_stream)
        channel.delay_sum += received - world.now
    lifetime = publication.lifetime
    if receiver.lifetime >= 0:
        own = draw_time(world, receiver.lifetime, receiver.lifetime_stream)
        lifetime = min(lifetime, own)
    delay = received - publication.born
    counts.delivered += 1
    counts.delay_sum += delay
    if delay <= lifetime + SLACK_S:
        counts.on_time += 1
    found = bin_of(delay, bin_guess_of(world), bin_edges_of(world))
    count_delay(receiver_curve_at(world, index * world.bin_count + found), delay)
    if world.recording:
        tape_delivery(world, publication, -1 - index, received)


@primitive
def tape_delivery(world: Any, publication: Any, place: int, received: float) -> None:
    """Record a delivery to all plain subscribers of a broker, or to one receiver."""
    delivery = taped_delivery_at(world, world.taped_deliveries)
    world.taped_deliveries += 1
    delivery.number = publication.number
    delivery.content_class = publication.content_class
    delivery.place = place
    delivery.received = received
