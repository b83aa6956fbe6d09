"""Places: a copy enters, passes the stations, and leaves a broker or a peer's queue."""

from __future__ import annotations

from typing import Any

from tidings.kernels.compile import inlined, merged, primitive
from tidings.simulation.kernel_buffers import hand_over, turn_away
from tidings.simulation.kernel_calls import (
    call_leave_among_failures,
    call_leave_otherwise,
    call_let_in,
    call_visit,
)
from tidings.simulation.kernel_copies import (
    count_loss,
    is_expired,
    lose,
    loses,
    new_copy,
    release,
    time_on_wire,
    travel,
)
from tidings.simulation.kernel_deliveries import deliver
from tidings.simulation.kernel_layout import BY_EXPIRY, BY_LINK, RESTORED, TO_GROUP
from tidings.simulation.kernel_limits import vacate
from tidings.simulation.kernel_lines import complete
from tidings.simulation.kernel_peers import leave_peer, queue_up
from tidings.simulation.kernel_stations import join, serve_next
from tidings.simulation.kernel_tables import (
    channel_at,
    component_at,
    copy_at,
    interest_at,
    label_at,
    out_arc_at,
    out_first_at,
    place_at,
    publication_at,
    server_at,
    station_at,
)
from tidings.simulation.kernel_tapes import tape_hop, tape_send
from tidings.simulation.kernel_wanting import note_passage


@merged
def enter(world: Any, index: int) -> None:
    """A copy arrives at its place."""
    if not world.bare and not call_let_in(world, index, 0):
        return
    copy = copy_at(world, index)
    copy.entered = world.now
    copy.started = world.now
    broker = place_at(world, copy.place)
    if broker.first_station == broker.last_station:
        leave(world, index)
    else:
        join(world, broker.first_station, index)


@primitive
def is_let_in(world: Any, index: int) -> bool:
    """Whether a copy enters a broker; if not, what becomes of it has been seen to."""
    copy = copy_at(world, index)
    if copy.place >= world.broker_count:
        if place_at(world, copy.place).kind < TO_GROUP or not call_visit(world, index, 0):
            queue_up(world, index)
    elif world.failing and label_at(world, index).kind == RESTORED:
        hand_over(world, index)
        release(world, index)
    elif world.failing and component_at(world, copy.place).down_by > 0:
        turn_away(world, index)
    elif world.expiry >= 1 and is_expired(world, index):
        lose(world, index, BY_EXPIRY)
    else:
        return True
    return False


@merged
def finish(world: Any, number: int) -> None:
    """A server is done with its copy: it takes the next, and the copy moves on."""
    server = server_at(world, number)
    index = server.serves
    serve_next(world, number)
    following = server.station + 1
    if following < place_at(world, station_at(world, server.station).place).last_station:
        make_room_at(world, server.station, index)
        join(world, following, index)
    else:
        leave(world, index)


@primitive
def finish_in_line(world: Any, number: int) -> None:
    """A line is done with a copy, which moves on."""
    at = server_at(world, number).station
    index = complete(world, number)
    if at + 1 < place_at(world, station_at(world, at).place).last_station:
        make_room_at(world, at, index)
        join(world, at + 1, index)
    else:
        leave(world, index)


@inlined
def leave(world: Any, index: int) -> None:
    """A broker is done with a copy: it goes to the subscribers here and to the neighbours."""
    copy = copy_at(world, index)
    if not world.bare and call_leave_otherwise(world, index, 0):
        return
    publication = publication_at(world, copy.publication)
    if publication.measured or world.queueing:
        deliver(world, copy, False, True)
    at = publication.tree * world.broker_count + copy.place
    back = copy.channel ^ 1  # arcs come in pairs; for a copy from its publisher this is no arc
    sent = world.taped_sends
    for position in range(out_first_at(world, at).value, out_first_at(world, at + 1).value):
        arc = out_arc_at(world, position).value
        wanted = interest_at(world, arc * world.class_count + publication.content_class).value
        if arc != back and wanted > 0:
            send(world, copy.publication, arc)
            if world.recording and publication.measured:
                tape_send(world, arc)
    if world.recording and publication.measured:
        tape_hop(world, copy, copy.channel, sent)
    release(world, index)


@primitive
def leaves_otherwise(world: Any, index: int) -> bool:
    """Whether a copy leaves no broker, or one among failures; then it has been seen to."""
    place = copy_at(world, index).place
    if place >= world.broker_count:
        leave_peer(world, index)
        return True
    broker = place_at(world, place)
    if broker.first_station < broker.last_station:
        make_room_at(world, broker.first_station, index)
    if world.failing:
        call_leave_among_failures(world, index, 0)
        return True
    if world.churning:
        note_passage(world, index)
    return False


@inlined
def make_room_at(world: Any, at: int, index: int) -> None:
    """Give back the place that a copy has in the buffer of a station, if that blocks publishers."""
    if world.limits_length > 0 and station_at(world, at).limit > 0:
        vacate(world, copy_at(world, index).publication, station_at(world, at).limit - 1)


@merged
def send(world: Any, index: int, arc: int) -> None:
    """Send a copy of an event over an arc."""
    publication = publication_at(world, index)
    channel = channel_at(world, arc)
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
