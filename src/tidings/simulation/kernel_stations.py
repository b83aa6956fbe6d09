"""Stations, the queues of brokers and peers: joining, serving, stopping and going on."""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings.kernels.calendar import key_of, set_key
from tidings.kernels.compile import inlined, merged, primitive
from tidings.simulation.kernel_calls import call_join_otherwise
from tidings.simulation.kernel_copies import draw_time, is_expired, lose
from tidings.simulation.kernel_layout import BY_EXPIRY, BY_OVERFLOW
from tidings.simulation.kernel_lines import has_line, join_line
from tidings.simulation.kernel_tables import (
    copy_at,
    nodes_of,
    place_at,
    publication_at,
    server_at,
    soonest_at,
    station_at,
)


@inlined
def join(world: Any, at: int, index: int) -> None:
    """A copy joins a station: it is served at once, waits, or finds the buffer full."""
    station = station_at(world, at)
    copy = copy_at(world, index)
    copy.arrived = world.now
    station.arrivals += publication_at(world, copy.publication).measured
    if station.idle >= 0 and station.is_open:
        server = station.idle
        station.idle = server_at(world, server).next_idle
        start(world, server, index)
        return
    if world.sorting and call_join_otherwise(world, at, index):
        return
    if station.waiting < station.buffer:
        copy.next = -1
        if station.head < 0:
            station.head = index
        else:
            copy_at(world, station.tail).next = index
        station.tail = index
        station.waiting += 1
        world.backlog += station.urgency
    else:
        lose(world, index, BY_OVERFLOW)


@primitive
def joins_otherwise(world: Any, at: int, index: int) -> bool:
    """Whether a copy joins a line; if not, it finds room where some has expired.

    Lines have no idle servers that others know of, so that all copies for them come by here.
    """
    if has_line(world, at):
        join_line(world, at, index)
        return True
    if world.expiry == 2:
        make_room(world, at, index)
    return False


@merged
def make_room(world: Any, at: int, index: int) -> None:
    """Before a copy joins a full queue, what has expired in it leaves it.

    Nobody sees whether expired copies leave at once or when the next one comes, but for their place
    in the buffer; so they are looked for only where it is full.
    """
    station, soonest = station_at(world, at), soonest_at(world, at)
    if station.waiting >= station.buffer and world.now > soonest.value:
        drop_expired(world, at)
    publication = publication_at(world, copy_at(world, index).publication)
    soonest.value = min(soonest.value, publication.born + publication.lifetime)


@merged
def drop_expired(world: Any, at: int) -> None:
    """Take everything that has expired out of the queue of a station."""
    station, soonest = station_at(world, at), soonest_at(world, at)
    soonest.value = np.inf
    before = -1
    index = station.head
    while index >= 0:
        following = copy_at(world, index).next
        if is_expired(world, index):
            if before < 0:
                station.head = following
            else:
                copy_at(world, before).next = following
            station.tail = before if following < 0 else station.tail
            station.waiting -= 1
            world.backlog -= station.urgency
            lose(world, index, BY_EXPIRY)
        else:
            publication = publication_at(world, copy_at(world, index).publication)
            soonest.value = min(soonest.value, publication.born + publication.lifetime)
            before = index
        index = following


@inlined
def start(world: Any, number: int, index: int) -> None:
    """A server begins to work on a copy."""
    server = server_at(world, number)
    server.serves = index
    station = station_at(world, server.station)
    copy = copy_at(world, index)
    work = draw_time(world, station.law, station.stream)
    if server.station == place_at(world, copy.place).first_station:
        copy.started = world.now
    if publication_at(world, copy.publication).measured:
        wait = world.now - copy.arrived
        station.served += 1
        station.busy += work
        station.wait += wait
        station.wait_square += wait * wait
    set_key(nodes_of(world), world.publisher_count + number, world.now + work)


@inlined
def next_waiting(world: Any, station: Any) -> int:
    """Take the first copy that waits at a station and is still of use; −1: there is none."""
    while station.head >= 0:
        index = station.head
        station.head = copy_at(world, index).next
        station.waiting -= 1
        world.backlog -= station.urgency
        if world.expiry < 2 or station.keeps_expired or not is_expired(world, index):
            return index
        lose(world, index, BY_EXPIRY)
    return -1


@inlined
def serve_next(world: Any, number: int) -> None:
    """A server that has nothing in hand takes the next copy, or is idle from now on."""
    server = server_at(world, number)
    station = station_at(world, server.station)
    following = next_waiting(world, station)
    if following >= 0:
        start(world, number, following)
    else:
        server.serves = -1
        server.next_idle = station.idle
        station.idle = number
        set_key(nodes_of(world), world.publisher_count + number, np.inf)


@inlined
def drop_waiting(world: Any, at: int) -> int:
    """Take the first copy that waits at a station out of its queue; −1: there is none."""
    station = station_at(world, at)
    index = station.head
    if index >= 0:
        station.head = copy_at(world, index).next
        station.waiting -= 1
        world.backlog -= station.urgency
    return index


@inlined
def stop_serving(world: Any, number: int) -> int:
    """Take a server's copy out of its hands, and its work so far is lost; −1: it has none."""
    server = server_at(world, number)
    index = server.serves
    if index >= 0:
        station = station_at(world, server.station)
        server.serves = -1
        server.next_idle = station.idle
        station.idle = number
        set_key(nodes_of(world), world.publisher_count + number, np.inf)
    return index


@inlined
def close_gate(world: Any, at: int) -> None:
    """Stop a station: its servers keep what is left of their work, and what arrives waits."""
    station = station_at(world, at)
    station.is_open = 0
    for number in range(station.first_server, station.first_server + station.servers):
        server = server_at(world, number)
        if server.serves >= 0:
            slot = world.publisher_count + number
            server.left = key_of(nodes_of(world), slot) - world.now
            set_key(nodes_of(world), slot, np.inf)


@inlined
def open_gate(world: Any, at: int) -> None:
    """Let a station go on where it stopped, and begin with what has come meanwhile."""
    station = station_at(world, at)
    station.is_open = 1
    for number in range(station.first_server, station.first_server + station.servers):
        server = server_at(world, number)
        if server.serves >= 0:
            due = world.now + server.left
            set_key(nodes_of(world), world.publisher_count + number, due)
    while station.idle >= 0 and station.head >= 0:
        number = station.idle
        station.idle = server_at(world, number).next_idle
        serve_next(world, number)
