"""Places: a copy enters, passes the stations, and leaves a broker or a peer's queue."""

from __future__ import annotations

from typing import Any

from tidings.kernels.compile import inlined, merged, primitive
from tidings.simulation.kernel_copies import (
    count_loss,
    is_expired,
    lose,
    loses,
    new_copy,
    release,
    time_on_wire,
    travel,
    vacate,
)
from tidings.simulation.kernel_deliveries import deliver
from tidings.simulation.kernel_layout import BY_EXPIRY, BY_LINK, RESTORED, TO_GROUP, calls, tables
from tidings.simulation.kernel_peers import leave_peer, queue_up
from tidings.simulation.kernel_recovery import hand_over, turn_away
from tidings.simulation.kernel_stations import complete, join, serve_next
from tidings.simulation.kernel_tapes import tape_hop, tape_send
from tidings.simulation.kernel_wanting import note_passage


@merged
def enter(world: Any, index: int) -> None:
    """A copy arrives at its place."""
    if not world.bare and not calls.let_in(world, index, 0):
        return
    copy = tables.copies(world, index)
    copy.entered = world.now
    copy.started = world.now
    broker = tables.places(world, copy.place)
    if broker.first_station == broker.last_station:
        leave(world, index)
    else:
        join(world, broker.first_station, index)


@primitive
def is_let_in(world: Any, index: int) -> bool:
    """Whether a copy enters a broker; if not, what becomes of it has been seen to."""
    copy = tables.copies(world, index)
    if copy.place >= world.broker_count:
        if tables.places(world, copy.place).kind < TO_GROUP or not calls.visit(world, index, 0):
            queue_up(world, index)
    elif world.failing and tables.labels(world, index).kind == RESTORED:
        hand_over(world, index)
        release(world, index)
    elif world.failing and tables.components(world, copy.place).down_by > 0:
        turn_away(world, index)
    elif world.expiry >= 1 and is_expired(world, index):
        lose(world, index, BY_EXPIRY)
    else:
        return True
    return False


@merged
def finish(world: Any, number: int) -> None:
    """A server is done with its copy: it takes the next, and the copy moves on."""
    server = tables.servers(world, number)
    index = server.serves
    serve_next(world, number)
    following = server.station + 1
    if following < tables.places(world, tables.stations(world, server.station).place).last_station:
        make_room_at(world, server.station, index)
        join(world, following, index)
    else:
        leave(world, index)


@primitive
def finish_in_line(world: Any, number: int) -> None:
    """A line is done with a copy, which moves on."""
    at = tables.servers(world, number).station
    index = complete(world, number)
    if at + 1 < tables.places(world, tables.stations(world, at).place).last_station:
        make_room_at(world, at, index)
        join(world, at + 1, index)
    else:
        leave(world, index)


@inlined
def leave(world: Any, index: int) -> None:
    """A broker is done with a copy: it goes to the subscribers here and to the neighbours."""
    copy = tables.copies(world, index)
    if not world.bare and calls.leave_otherwise(world, index, 0):
        return
    publication = tables.publications(world, copy.publication)
    if publication.measured or world.queueing:
        deliver(world, copy, False, True)
    at = publication.tree * world.broker_count + copy.place
    back = copy.channel ^ 1  # arcs come in pairs; for a copy from its publisher this is no arc
    sent, count = world.taped_sends, 0
    for position in range(tables.out_first(world, at).value, tables.out_first(world, at + 1).value):
        arc = tables.out_arcs(world, position).value
        wanted = tables.interest(world, arc * world.class_count + publication.content_class).value
        # Noted first, sent below: one guess of the processor, how many, instead of one an arc.
        tables.onwards(world, count).value = arc
        count += (arc != back) & (wanted > 0)
    for position in range(count):
        arc = tables.onwards(world, position).value
        send(world, copy.publication, arc)
        if world.recording and publication.measured:
            tape_send(world, arc)
    if world.recording and publication.measured:
        tape_hop(world, copy, copy.channel, sent)
    release(world, index)


@primitive
def leaves_otherwise(world: Any, index: int) -> bool:
    """Whether a copy leaves no broker, or one among failures; then it has been seen to."""
    place = tables.copies(world, index).place
    if place >= world.broker_count:
        leave_peer(world, index)
        return True
    broker = tables.places(world, place)
    if broker.first_station < broker.last_station:
        make_room_at(world, broker.first_station, index)
    if world.failing:
        calls.leave_among_failures(world, index, 0)
        return True
    if world.churning:
        note_passage(world, index)
    return False


@inlined
def make_room_at(world: Any, at: int, index: int) -> None:
    """Give back the place that a copy has in the buffer of a station, if that blocks publishers."""
    if world.limits_length > 0 and tables.stations(world, at).limit > 0:
        vacate(world, tables.copies(world, index).publication, tables.stations(world, at).limit - 1)


@merged
def send(world: Any, index: int, arc: int) -> None:
    """Send a copy of an event over an arc."""
    publication = tables.publications(world, index)
    channel = tables.channels(world, arc)
    lost = loses(world, channel)
    delay = 0.0
    if not lost:
        delay = travel(world, new_copy(world, index, channel.target, arc), channel)
    elif channel.wire >= 0:
        time_on_wire(world, index, channel)
    if publication.measured:
        channel.sent += 1
        channel.delay_sum += delay
        if lost:
            channel.lost += 1
            count_loss(world, index, channel.target, BY_LINK)
