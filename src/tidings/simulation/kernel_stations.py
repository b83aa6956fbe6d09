"""Stations, the queues of brokers and peers: joining, serving, stopping and going on.

A *line* is a station that does not serve in order of arrival, or whose events differ in service
time. It serves by priority, shares its servers among all that are there, or has servers for all.
Those that wait for their turn, or else those in service, are a skew heap through the ranks of the
copies. Shared or unlimited servers have one slot of the calendar together, due when the first of
the heap is done.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings.kernels.calendar import key_of, merge, set_key
from tidings.kernels.compile import inlined, merged, primitive
from tidings.simulation.kernel_copies import append, draw_time, is_expired, lose
from tidings.simulation.kernel_layout import (
    BY_EXPIRY,
    BY_OVERFLOW,
    IN_TURN,
    PLAIN,
    SHARING,
    arrays,
    calls,
    tables,
)


@inlined
def has_line(world: Any, at: int) -> bool:
    """Whether a station is more than a plain queue; those of peers, behind all lines, are not."""
    return at < world.lines_length and tables.lines(world, at).kind != PLAIN


@primitive
def put_in(world: Any, line: Any, index: int, key: float) -> None:
    """Put a copy into the heap of a line, behind all of the same key."""
    rank = tables.ranks(world, index)
    rank.left = -1
    rank.right = -1
    rank.key = key
    rank.order = world.order
    world.order += 1
    line.root = merge(arrays.ranks(world), line.root, index)


@inlined
def take_first(world: Any, line: Any) -> int:
    """Take the first copy out of the heap of a line."""
    index = line.root
    rank = tables.ranks(world, index)
    line.root = merge(arrays.ranks(world), rank.left, rank.right)
    return index


@inlined
def demand_of(world: Any, line: Any, index: int) -> Any:
    """What a line does with an event of this type: its law and its priority."""
    row = tables.publications(world, tables.copies(world, index).publication).row
    return tables.demands(world, line.first_demand + tables.kinds_of_rows(world, row).value)


@inlined
def count_served(world: Any, station: Any, index: int, work: float, wait: float) -> None:
    """Count the service of a measured copy, in seconds."""
    if tables.publications(world, tables.copies(world, index).publication).measured:
        station.served += 1
        station.busy += work
        station.wait += wait


@primitive
def join_line(world: Any, at: int, index: int) -> None:
    """A copy that has come joins a line: it is served at once, waits, or finds the buffer full."""
    station, line = tables.stations(world, at), tables.lines(world, at)
    if line.kind != IN_TURN:
        if line.kind == SHARING and line.active - station.servers >= station.buffer:
            lose(world, index, BY_OVERFLOW)
        else:
            join_others(world, at, index)
        return
    if line.idle >= 0:
        number = line.idle
        line.idle = tables.servers(world, number).next_idle
        begin(world, number, index)
        return
    if world.expiry == 2:
        make_room_in_line(world, at, index)
    if station.waiting < station.buffer:
        put_in(world, line, index, -float(demand_of(world, line, index).priority))
        station.waiting += 1
        world.backlog += station.urgency
    else:
        lose(world, index, BY_OVERFLOW)


@primitive
def complete(world: Any, number: int) -> int:
    """Give the copy that a line is done with, and go on with the others."""
    server = tables.servers(world, number)
    line = tables.lines(world, server.station)
    if line.kind != IN_TURN:
        return complete_first(world, number)
    index = server.serves
    following = next_in_turn(world, server.station)
    if following >= 0:
        begin(world, number, following)
    else:
        set_idle(world, line, number)
    return index


# ---- one after the other, by priority ------------------------------------------------------------


@primitive
def begin(world: Any, number: int, index: int) -> None:
    """A server of a line begins to work on a copy."""
    server = tables.servers(world, number)
    server.serves = index
    station, copy = tables.stations(world, server.station), tables.copies(world, index)
    demand = demand_of(world, tables.lines(world, server.station), index)
    work = draw_time(world, demand.law, station.stream)
    if server.station == tables.places(world, copy.place).first_station:
        copy.started = world.now
    count_served(world, station, index, work, world.now - copy.arrived)
    set_key(arrays.nodes(world), world.publisher_count + number, world.now + work)


@inlined
def set_idle(world: Any, owner: Any, number: int) -> None:
    """Let a server of a plain station or of a line, its owner, have nothing to do."""
    server = tables.servers(world, number)
    server.serves = -1
    server.next_idle = owner.idle
    owner.idle = number
    set_key(arrays.nodes(world), world.publisher_count + number, np.inf)


@inlined
def leave_queue(world: Any, at: int) -> int:
    """Take the copy whose turn it is out of the queue of a line."""
    station = tables.stations(world, at)
    station.waiting -= 1
    world.backlog -= station.urgency
    return take_first(world, tables.lines(world, at))


@merged
def next_in_turn(world: Any, at: int) -> int:
    """Take the first copy that waits in a line and is still of use; −1: there is none."""
    while tables.lines(world, at).root >= 0:
        index = leave_queue(world, at)
        if world.expiry < 2 or not is_expired(world, index):
            return index
        lose(world, index, BY_EXPIRY)
    return -1


@merged
def make_room_in_line(world: Any, at: int, index: int) -> None:
    """Before a copy joins a full queue, what has expired in it leaves it, as at other stations."""
    station, line, soonest = (
        tables.stations(world, at),
        tables.lines(world, at),
        tables.soonest(world, at),
    )
    if station.waiting >= station.buffer and world.now > soonest.value:
        soonest.value = np.inf
        kept = -1
        while line.root >= 0:
            first = leave_queue(world, at)
            if is_expired(world, first):
                lose(world, first, BY_EXPIRY)
                continue
            tables.ranks(world, first).left = -1
            tables.ranks(world, first).right = -1
            kept = merge(arrays.ranks(world), kept, first)
            station.waiting += 1
            world.backlog += station.urgency
            waiting = tables.publications(world, tables.copies(world, first).publication)
            soonest.value = min(soonest.value, waiting.born + waiting.lifetime)
        line.root = kept
    publication = tables.publications(world, tables.copies(world, index).publication)
    soonest.value = min(soonest.value, publication.born + publication.lifetime)


# ---- all at once: shared servers, or one for each ------------------------------------------------


@inlined
def pass_time(world: Any, station: Any, line: Any) -> None:
    """Let shared servers have worked until now, on all alike."""
    if line.active > 0:
        working = min(line.active, station.servers)
        line.work += (world.now - line.changed) * working / line.active
    line.changed = world.now


@primitive
def set_due(world: Any, at: int) -> None:
    """Tell the calendar when the first of all in service will be done."""
    station, line = tables.stations(world, at), tables.lines(world, at)
    due = np.inf
    if line.root >= 0:
        due = tables.ranks(world, line.root).key
        if line.kind == SHARING:
            slowness = line.active / min(line.active, station.servers)
            due = world.now + max(due - line.work, 0.0) * slowness
    set_key(arrays.nodes(world), world.publisher_count + station.first_server, due)


@merged
def join_others(world: Any, at: int, index: int) -> None:
    """A copy is served from now on, beside all others."""
    station, line = tables.stations(world, at), tables.lines(world, at)
    work = draw_time(world, demand_of(world, line, index).law, station.stream)
    if line.kind == SHARING:
        pass_time(world, station, line)
        tables.ranks(world, index).need = work
        put_in(world, line, index, line.work + work)
        if line.active >= station.servers:  # more than can be served at full speed
            station.waiting += 1
            world.backlog += station.urgency
    else:
        put_in(world, line, index, world.now + work)
        count_served(world, station, index, work, 0.0)
    line.active += 1
    set_due(world, at)


@primitive
def take_out(world: Any, at: int) -> int:
    """Take the copy that would be done first out of those in service."""
    station, line = tables.stations(world, at), tables.lines(world, at)
    if line.kind == SHARING:
        pass_time(world, station, line)
        if line.active > station.servers:
            station.waiting -= 1
            world.backlog -= station.urgency
    index = take_first(world, line)
    line.active -= 1
    if line.active == 0:
        line.work = 0.0  # so that it never grows large
    set_due(world, at)
    return index


@merged
def complete_first(world: Any, number: int) -> int:
    """Give the copy in service that is done first; what it was delayed by others is its wait."""
    at = tables.servers(world, number).station
    index = take_out(world, at)
    if tables.lines(world, at).kind == SHARING:
        work = tables.ranks(world, index).need
        wait = max(world.now - tables.copies(world, index).arrived - work, 0.0)
        count_served(world, tables.stations(world, at), index, work, wait)
    return index


# ---- crashes -------------------------------------------------------------------------------------


@primitive
def drop_from_line(world: Any, at: int) -> int:
    """Take some copy out of a line, waiting or in service; −1: there is none any more."""
    line, station = tables.lines(world, at), tables.stations(world, at)
    if line.root >= 0:
        return leave_queue(world, at) if line.kind == IN_TURN else take_out(world, at)
    if line.kind == IN_TURN:
        for number in range(station.first_server, station.first_server + station.servers):
            index = tables.servers(world, number).serves
            if index >= 0:
                set_idle(world, line, number)
                return index
    return -1


@inlined
def join(world: Any, at: int, index: int) -> None:
    """A copy joins a station: it is served at once, waits, or finds the buffer full."""
    station = tables.stations(world, at)
    copy = tables.copies(world, index)
    copy.arrived = world.now
    station.arrivals += tables.publications(world, copy.publication).measured
    if station.idle >= 0 and station.is_open:
        server = station.idle
        station.idle = tables.servers(world, server).next_idle
        start(world, server, index)
        return
    if world.sorting and calls.join_otherwise(world, at, index):
        return
    if station.waiting < station.buffer:
        append(world, station, index)
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
    station, soonest = tables.stations(world, at), tables.soonest(world, at)
    if station.waiting >= station.buffer and world.now > soonest.value:
        drop_expired(world, at)
    publication = tables.publications(world, tables.copies(world, index).publication)
    soonest.value = min(soonest.value, publication.born + publication.lifetime)


@merged
def drop_expired(world: Any, at: int) -> None:
    """Take everything that has expired out of the queue of a station."""
    station, soonest = tables.stations(world, at), tables.soonest(world, at)
    soonest.value = np.inf
    before = -1
    index = station.head
    while index >= 0:
        following = tables.copies(world, index).next
        if is_expired(world, index):
            if before < 0:
                station.head = following
            else:
                tables.copies(world, before).next = following
            station.tail = before if following < 0 else station.tail
            station.waiting -= 1
            world.backlog -= station.urgency
            lose(world, index, BY_EXPIRY)
        else:
            publication = tables.publications(world, tables.copies(world, index).publication)
            soonest.value = min(soonest.value, publication.born + publication.lifetime)
            before = index
        index = following


@inlined
def start(world: Any, number: int, index: int) -> None:
    """A server begins to work on a copy."""
    server = tables.servers(world, number)
    server.serves = index
    station = tables.stations(world, server.station)
    copy = tables.copies(world, index)
    work = draw_time(world, station.law, station.stream)
    if server.station == tables.places(world, copy.place).first_station:
        copy.started = world.now
    count_served(world, station, index, work, world.now - copy.arrived)
    set_key(arrays.nodes(world), world.publisher_count + number, world.now + work)


@inlined
def next_waiting(world: Any, station: Any) -> int:
    """Take the first copy that waits at a station and is still of use; −1: there is none."""
    while station.head >= 0:
        index = station.head
        station.head = tables.copies(world, index).next
        station.waiting -= 1
        world.backlog -= station.urgency
        if world.expiry < 2 or station.keeps_expired or not is_expired(world, index):
            return index
        lose(world, index, BY_EXPIRY)
    return -1


@inlined
def serve_next(world: Any, number: int) -> None:
    """A server that has nothing in hand takes the next copy, or is idle from now on."""
    server = tables.servers(world, number)
    station = tables.stations(world, server.station)
    following = next_waiting(world, station)
    if following >= 0:
        start(world, number, following)
    else:
        set_idle(world, station, number)


@inlined
def drop_waiting(world: Any, at: int) -> int:
    """Take the first copy that waits at a station out of its queue; −1: there is none."""
    station = tables.stations(world, at)
    index = station.head
    if index >= 0:
        station.head = tables.copies(world, index).next
        station.waiting -= 1
        world.backlog -= station.urgency
    return index


@inlined
def stop_serving(world: Any, number: int) -> int:
    """Take a server's copy out of its hands, and its work so far is lost; −1: it has none."""
    server = tables.servers(world, number)
    index = server.serves
    if index >= 0:
        station = tables.stations(world, server.station)
        set_idle(world, station, number)
    return index


@inlined
def close_gate(world: Any, at: int) -> None:
    """Stop a station: its servers keep what is left of their work, and what arrives waits."""
    station = tables.stations(world, at)
    station.is_open = 0
    for number in range(station.first_server, station.first_server + station.servers):
        server = tables.servers(world, number)
        if server.serves >= 0:
            slot = world.publisher_count + number
            server.left = key_of(arrays.nodes(world), slot) - world.now
            set_key(arrays.nodes(world), slot, np.inf)


@inlined
def open_gate(world: Any, at: int) -> None:
    """Let a station go on where it stopped, and begin with what has come meanwhile."""
    station = tables.stations(world, at)
    station.is_open = 1
    for number in range(station.first_server, station.first_server + station.servers):
        server = tables.servers(world, number)
        if server.serves >= 0:
            due = world.now + server.left
            set_key(arrays.nodes(world), world.publisher_count + number, due)
    while station.idle >= 0 and station.head >= 0:
        number = station.idle
        station.idle = tables.servers(world, number).next_idle
        serve_next(world, number)
