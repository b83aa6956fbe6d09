"""Receipts: what a subscriber that is followed on its own got, and how late."""

from __future__ import annotations

from typing import Any

from tidings.kernels.bins import bin_of, count_delay
from tidings.kernels.compile import inlined, primitive
from tidings.simulation.kernel_copies import SLACK_S, draw_time
from tidings.simulation.kernel_tables import (
    bin_edges_of,
    bin_guess_of,
    receipt_at,
    receiver_at,
    receiver_curve_at,
    row_at,
)
from tidings.simulation.kernel_tapes import tape_delivery


@inlined
def receipt_of(world: Any, publication: Any, index: int) -> Any:
    """Where it is counted what a receiver gets of the publisher of an event."""
    publisher = row_at(world, publication.row).publisher
    return receipt_at(world, index * world.publisher_count + publisher)


@primitive
def take_in(world: Any, publication: Any, index: int, received: float, waited: bool) -> None:
    """A receiver has got a measured event; one that buffers made too late is dropped."""
    receiver = receiver_at(world, index)
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
    delay_bin = bin_of(delay, bin_guess_of(world), bin_edges_of(world))
    count_delay(receiver_curve_at(world, index * world.bin_count + delay_bin), delay)
    if world.recording:
        tape_delivery(world, publication, -1 - index, received)
