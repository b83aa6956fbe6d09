"""How copies move: into a broker, through its stations, on to subscribers and neighbours.

Small compiled functions, one for each thing that can happen to a copy. ``net``, ``state``, ``tally``
and ``tape`` are the tuples of :mod:`tidings.simulation.kernel_layout`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings.kernels.calendar import push, set_key
from tidings.kernels.compile import compiled
from tidings.kernels.sampling import draw
from tidings.kernels.streams import uniform
from tidings.simulation.kernel_bins import bin_of
from tidings.simulation.kernel_layout import LOST_EXPIRED, LOST_LINK, LOST_OVERFLOW

# Times are meant to the nanosecond: what is late by less than half of one is on time. Otherwise
# rounding would decide where delay and lifetime are equal by construction.
SLACK_S = 0.5e-9


@compiled
def draw_law(net: Any, state: Any, law: int, stream: int) -> float:
    """A random time by a law of the network, in seconds."""
    return draw(net.law_kinds[law], net.law_offsets[law], net.law_params, state.streams, stream)


@compiled
def new_copy(state: Any, publication: int, broker: int, arc: int) -> int:
    """A copy on its way to a broker; the caller has made sure that there is room."""
    clock = state.clock[0]
    index = clock.free_copy
    copy = state.copies[index]
    clock.free_copy = copy.next
    clock.free_copies -= 1
    clock.copies += 1
    copy.publication = publication
    copy.broker = broker
    copy.arc = arc
    copy.stamp = state.arc_generation[arc] if arc >= 0 else 0
    state.publications[publication].copies += 1
    return index


@compiled
def release(state: Any, index: int) -> None:
    """Forget a copy, and its publication with the last one."""
    clock = state.clock[0]
    copy = state.copies[index]
    copy.next = clock.free_copy
    clock.free_copy = index
    clock.free_copies += 1
    clock.copies -= 1
    publication = state.publications[copy.publication]
    publication.copies -= 1
    if publication.copies == 0:
        clock.measured_alive -= publication.measured
        publication.next = clock.free_publication
        clock.free_publication = copy.publication


@compiled
def lose(net: Any, state: Any, tally: Any, index: int, cause: int) -> None:
    """A copy is lost at its broker, and with it everything it would have become."""
    copy = state.copies[index]
    publication = state.publications[copy.publication]
    if publication.measured:
        tally.losses[net.cell_of[publication.row, copy.broker], cause] += 1
    release(state, index)


@compiled
def is_expired(state: Any, index: int) -> bool:
    """Whether a copy's event is past its lifetime."""
    publication = state.publications[state.copies[index].publication]
    return state.clock[0].now - publication.born > publication.lifetime + SLACK_S


@compiled
def travel(net: Any, state: Any, index: int, channel: Any) -> float:
    """Put a copy on its way over a channel; its delay in seconds."""
    clock = state.clock[0]
    if channel.instant:
        state.copies[index].next = -1
        if clock.passing_head < 0:
            clock.passing_head = index
        else:
            state.copies[clock.passing_tail].next = index
        clock.passing_tail = index
        return 0.0
    delay = draw_law(net, state, channel.delay, channel.delay_stream)
    clock.order += 1
    push(state.flight, clock.in_flight, clock.now + delay, clock.order, index)
    clock.in_flight += 1
    return delay


@compiled
def is_lost(state: Any, channel: Any) -> bool:
    """Whether a channel loses what is sent over it now."""
    if channel.reliability >= 1.0:
        return False
    return uniform(state.streams, channel.loss_stream) >= channel.reliability


# ---- at a broker -------------------------------------------------------------------------------


@compiled
def enter(net: Any, state: Any, tally: Any, tape: Any, index: int) -> None:
    """A copy arrives at its broker."""
    clock = state.clock[0]
    copy = state.copies[index]
    if clock.expiry >= 1 and is_expired(state, index):
        lose(net, state, tally, index, LOST_EXPIRED)
        return
    copy.entered = clock.now
    copy.started = clock.now
    broker = net.brokers[copy.broker]
    if broker.first_station == broker.last_station:
        leave(net, state, tally, tape, index)
    else:
        join(net, state, tally, broker.first_station, index)


@compiled
def join(net: Any, state: Any, tally: Any, at: int, index: int) -> None:
    """A copy joins a station: served at once, made to wait, or dropped."""
    station = state.stations[at]
    copy = state.copies[index]
    copy.arrived = state.clock[0].now
    if state.publications[copy.publication].measured:
        tally.stations[at].arrivals += 1
    if station.idle >= 0 and station.is_open:
        server = station.idle
        station.idle = state.servers[server].next_idle
        start(net, state, tally, server, index)
    elif station.waiting < station.buffer:
        copy.next = -1
        if station.head < 0:
            station.head = index
        else:
            state.copies[station.tail].next = index
        station.tail = index
        station.waiting += 1
    else:
        lose(net, state, tally, index, LOST_OVERFLOW)


@compiled
def start(net: Any, state: Any, tally: Any, server: int, index: int) -> None:
    """A server begins with a copy."""
    now = state.clock[0].now
    copy = state.copies[index]
    at = state.servers[server].station
    station = state.stations[at]
    work = draw_law(net, state, station.law, station.stream)
    if at == net.brokers[copy.broker].first_station:
        copy.started = now
    if state.publications[copy.publication].measured:
        count = tally.stations[at]
        wait = now - copy.arrived
        count.served += 1
        count.busy += work
        count.wait += wait
        count.wait_square += wait * wait
    state.servers[server].serves = index
    set_key(state.keys, state.winners, net.publishers.size + server, now + work)


@compiled
def next_waiting(net: Any, state: Any, tally: Any, station: Any) -> int:
    """Take the first copy that waits at a station and is still of use; −1: there is none."""
    while station.head >= 0:
        index = station.head
        station.head = state.copies[index].next
        station.waiting -= 1
        if state.clock[0].expiry < 2 or not is_expired(state, index):
            return index
        lose(net, state, tally, index, LOST_EXPIRED)
    return -1


@compiled
def finish(net: Any, state: Any, tally: Any, tape: Any, server: int) -> None:
    """A server is done with its copy: it takes the next, and the copy moves on."""
    index = state.servers[server].serves
    at = state.servers[server].station
    station = state.stations[at]
    following = next_waiting(net, state, tally, station)
    if following >= 0:
        start(net, state, tally, server, following)
    else:
        state.servers[server].serves = -1
        state.servers[server].next_idle = station.idle
        station.idle = server
        set_key(state.keys, state.winners, net.publishers.size + server, np.inf)
    if at + 1 < net.brokers[station.broker].last_station:
        join(net, state, tally, at + 1, index)
    else:
        leave(net, state, tally, tape, index)


@compiled
def close_gate(net: Any, state: Any, at: int) -> None:
    """Stop a station: its servers keep what is left of their work, what arrives waits."""
    station = state.stations[at]
    station.is_open = 0
    leaves = state.keys.size // 2
    for server in range(station.first_server, station.first_server + station.servers):
        if state.servers[server].serves >= 0:
            slot = net.publishers.size + server
            state.servers[server].left = state.keys[leaves + slot] - state.clock[0].now
            set_key(state.keys, state.winners, slot, np.inf)


@compiled
def open_gate(net: Any, state: Any, tally: Any, at: int) -> None:
    """Let a station go on where it stopped, and begin with what has come meanwhile."""
    station = state.stations[at]
    station.is_open = 1
    for server in range(station.first_server, station.first_server + station.servers):
        if state.servers[server].serves >= 0:
            due = state.clock[0].now + state.servers[server].left
            set_key(state.keys, state.winners, net.publishers.size + server, due)
    while station.idle >= 0:
        following = next_waiting(net, state, tally, station)
        if following < 0:
            return
        server = station.idle
        station.idle = state.servers[server].next_idle
        start(net, state, tally, server, following)


# ---- out of a broker ---------------------------------------------------------------------------


@compiled
def leave(net: Any, state: Any, tally: Any, tape: Any, index: int) -> None:
    """A broker is done with a copy: it goes to the subscribers here and to the neighbours."""
    clock = state.clock[0]
    copy = state.copies[index]
    publication = state.publications[copy.publication]
    if publication.measured:
        deliver(net, state, tally, tape, index)
    at = publication.tree * net.brokers.size + copy.broker
    back = copy.arc ^ 1  # no arc for a copy that came from its publisher
    sent = 0
    for position in range(net.out_first[at], net.out_first[at + 1]):
        arc = net.out_arcs[position]
        if arc != back and net.interest[arc, publication.content_class] > 0:
            send(net, state, tally, copy.publication, arc)
            if clock.recording and publication.measured:
                tape.sends[clock.taped_sends] = arc
                clock.taped_sends += 1
                sent += 1
    if clock.recording and publication.measured:
        hop = tape.hops[clock.taped_hops]
        clock.taped_hops += 1
        hop.number = publication.number
        hop.broker = copy.broker
        hop.arc = copy.arc
        hop.sent = sent
        hop.entered = copy.entered
        hop.started = copy.started
        hop.left = clock.now
    release(state, index)


@compiled
def send(net: Any, state: Any, tally: Any, publication: int, arc: int) -> None:
    """Send a copy of an event over an arc."""
    event = state.publications[publication]
    channel = net.channels[arc]
    target = net.arc_target[arc]
    lost = is_lost(state, channel)
    delay = 0.0
    if not lost:
        delay = travel(net, state, new_copy(state, publication, target, arc), channel)
    if event.measured:
        count = tally.arcs[arc]
        count.sent += 1
        count.delay += delay
        if lost:
            count.lost += 1
            tally.losses[net.cell_of[event.row, target], LOST_LINK] += 1


@compiled
def deliver(net: Any, state: Any, tally: Any, tape: Any, index: int) -> None:
    """Hand a measured event to the subscribers at a broker that want it.

    Subscribers with perfect links and no lifetime of their own all see the same, so that they
    are counted once for all.
    """
    clock = state.clock[0]
    copy = state.copies[index]
    publication = state.publications[copy.publication]
    curve = net.curve_of[copy.broker, publication.content_class]
    if curve >= 0:
        delay = clock.now - publication.born
        cell = tally.cells[net.cell_of[publication.row, copy.broker]]
        cell.delivered += 1
        cell.delay += delay
        if delay <= publication.lifetime + SLACK_S:
            cell.on_time += 1
        tally.curves[curve, bin_of(delay, net.bin_guess, net.bin_edges)] += 1
        if clock.recording:
            tape_delivery(state, tape, publication, copy.broker, clock.now)
    if net.receivers.size > 0:
        classes = net.interest.shape[1]
        at = copy.broker * classes + publication.content_class
        for position in range(net.receivers_first[at], net.receivers_first[at + 1]):
            receive(net, state, tally, tape, publication, net.receivers_of[position])


@compiled
def receive(net: Any, state: Any, tally: Any, tape: Any, publication: Any, index: int) -> None:
    """One subscriber gets an event over its own link, or does not."""
    clock = state.clock[0]
    receiver = net.receivers[index]
    channel = net.channels[receiver.channel]
    publishers = net.publishers.size
    count = tally.receipts[index * publishers + net.rows[publication.row].publisher]
    if is_lost(state, channel):
        count.lost += 1
        return
    received = clock.now
    if not channel.instant:
        received += draw_law(net, state, channel.delay, channel.delay_stream)
    lifetime = publication.lifetime
    if receiver.lifetime >= 0:
        own = draw_law(net, state, receiver.lifetime, receiver.lifetime_stream)
        lifetime = min(lifetime, own)
    delay = received - publication.born
    count.delivered += 1
    count.delay += delay
    if delay <= lifetime + SLACK_S:
        count.on_time += 1
    tally.receiver_curves[index, bin_of(delay, net.bin_guess, net.bin_edges)] += 1
    if clock.recording:
        tape_delivery(state, tape, publication, -1 - index, received)


@compiled
def tape_delivery(state: Any, tape: Any, publication: Any, place: int, received: float) -> None:
    """Record a delivery."""
    clock = state.clock[0]
    delivery = tape.deliveries[clock.taped_deliveries]
    clock.taped_deliveries += 1
    delivery.number = publication.number
    delivery.content_class = publication.content_class
    delivery.place = place
    delivery.received = received
