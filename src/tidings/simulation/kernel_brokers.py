"""Brokers: a copy enters, passes the stations, and leaves to subscribers and neighbours."""

from __future__ import annotations

from typing import Any

from tidings.kernels.compile import inlined, merged
from tidings.simulation.kernel_buffers import turn_away
from tidings.simulation.kernel_copies import (
    count_loss,
    is_expired,
    lose,
    loses,
    new_copy,
    release,
    travel,
)
from tidings.simulation.kernel_deliveries import deliver
from tidings.simulation.kernel_forwarding import leave_among_failures
from tidings.simulation.kernel_layout import BY_EXPIRY, BY_LINK
from tidings.simulation.kernel_stations import join, serve_next
from tidings.simulation.kernel_tables import (
    broker_at,
    channel_at,
    component_at,
    copy_at,
    interest_at,
    out_arc_at,
    out_first_at,
    publication_at,
    server_at,
    station_at,
    taped_hop_at,
    taped_send_at,
)


@merged
def enter(world: Any, index: int) -> None:
    """A copy arrives at its broker."""
    if world.failing and component_at(world, copy_at(world, index).broker).down_by > 0:
        turn_away(world, index)
        return
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


@merged
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
    if world.failing:
        leave_among_failures(world, index)
        return
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


@merged
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


@merged
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
