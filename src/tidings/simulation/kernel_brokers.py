"""Brokers: a copy enters, passes the stations, and leaves to subscribers and neighbours."""

from __future__ import annotations

from typing import Any

from tidings.kernels.compile import inlined, primitive
from tidings.simulation.kernel_bins import bin_of, count_delay
from tidings.simulation.kernel_copies import (
    SLACK_S,
    count_loss,
    draw_time,
    is_expired,
    lose,
    loses,
    new_copy,
    release,
    travel,
)
from tidings.simulation.kernel_layout import BY_EXPIRY, BY_LINK
from tidings.simulation.kernel_stations import join, serve_next
from tidings.simulation.kernel_tables import (
    bin_edges_of,
    bin_guess_of,
    broker_at,
    cell_at,
    cell_of_at,
    channel_at,
    copy_at,
    curve_at,
    curve_of_at,
    interest_at,
    out_arc_at,
    out_first_at,
    publication_at,
    receipt_at,
    receiver_at,
    receiver_curve_at,
    receivers_first_at,
    receivers_of_at,
    row_at,
    server_at,
    station_at,
    taped_delivery_at,
    taped_hop_at,
    taped_send_at,
)


@inlined
def enter(world: Any, index: int) -> None:
    """A copy arrives at its broker."""
    if world.expiry >= 1 and is_expired(world, index):
        lose(world, index, BY_EXPIRY)
        return
    copy = copy_at(world, index)
    copy.entered = world.now
    copy.started = world.now
    broker = broker_at(world, copy.broker)
    if broker.first_station == broker.last_station:
        leave(world, index)
    else:
        join(world, broker.first_station, index)


@inlined
def finish(world: Any, number: int) -> None:
    """A server is done with its copy: it takes the next, and the copy moves on."""
    server = server_at(world, number)
    index = server.serves
    serve_next(world, number)
    following = server.station + 1
    if following < broker_at(world, station_at(world, server.station).broker).last_station:
        join(world, following, index)
    else:
        leave(world, index)


@inlined
def leave(world: Any, index: int) -> None:
    """A broker is done with a copy: it goes to the subscribers here and to the neighbours."""
    copy = copy_at(world, index)
    publication = publication_at(world, copy.publication)
    if publication.measured:
        deliver(world, copy, publication)
    at = publication.tree * world.broker_count + copy.broker
    back = copy.channel ^ 1  # arcs come in pairs; for a copy from its publisher this is no arc
    sent = 0
    for position in range(out_first_at(world, at).value, out_first_at(world, at + 1).value):
        arc = out_arc_at(world, position).value
        wanted = interest_at(world, arc * world.class_count + publication.content_class).value
        if arc != back and wanted > 0:
            send(world, copy.publication, arc)
            if world.recording and publication.measured:
                taped_send_at(world, world.taped_sends).value = arc
                world.taped_sends += 1
                sent += 1
    if world.recording and publication.measured:
        tape_hop(world, copy, publication.number, sent)
    release(world, index)


@inlined
def send(world: Any, index: int, arc: int) -> None:
    """Send a copy of an event over an arc."""
    publication = publication_at(world, index)
    channel = channel_at(world, arc)
    lost = loses(world, channel)
    delay = 0.0
    if not lost:
        delay = travel(world, new_copy(world, index, channel.target, arc), channel)
    if publication.measured:
        channel.sent += 1
        channel.delay_sum += delay
        if lost:
            channel.lost += 1
            count_loss(world, publication.row, channel.target, BY_LINK)


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
def tape_hop(world: Any, copy: Any, number: int, sent: int) -> None:
    """Record that a broker is done with a copy."""
    hop = taped_hop_at(world, world.taped_hops)
    world.taped_hops += 1
    hop.number = number
    hop.broker = copy.broker
    hop.channel = copy.channel
    hop.sent = sent
    hop.entered = copy.entered
    hop.started = copy.started
    hop.left = world.now


@primitive
def tape_delivery(world: Any, publication: Any, place: int, received: float) -> None:
    """Record a delivery to all plain subscribers of a broker, or to one receiver."""
    delivery = taped_delivery_at(world, world.taped_deliveries)
    world.taped_deliveries += 1
    delivery.number = publication.number
    delivery.content_class = publication.content_class
    delivery.place = place
    delivery.received = received
