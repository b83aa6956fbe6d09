"""Lines: stations that do not serve in order of arrival, or whose events differ in service time.

A line serves by priority, shares its servers among all that are there, or has servers for all.
Those that wait for their turn, or else those in service, are a skew heap (Sleator and Tarjan, 1986)
through the ranks of the copies. Shared or unlimited servers have one slot of the calendar together,
due when the first of the heap is done.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings.kernels.calendar import set_key
from tidings.kernels.compile import inlined, merged, primitive
from tidings.simulation.kernel_copies import draw_time, is_expired, lose
from tidings.simulation.kernel_layout import BY_EXPIRY, BY_OVERFLOW, IN_TURN, PLAIN, SHARING
from tidings.simulation.kernel_tables import (
    copy_at,
    demand_at,
    kind_of_row_at,
    line_at,
    nodes_of,
    place_at,
    publication_at,
    rank_at,
    server_at,
    soonest_at,
    station_at,
)


@inlined
def has_line(world: Any, at: int) -> bool:
    """Whether a station is more than a plain queue; those of peers, behind all lines, are not."""
    return at < world.lines_length and line_at(world, at).kind != PLAIN


@inlined
def _before(one: Any, other: Any) -> bool:
    return one.key < other.key or (one.key == other.key and one.order < other.order)


@primitive
def merge(world: Any, one: int, other: int) -> int:
    """Make one heap of two, and give its root; −1 is an empty heap."""
    if one < 0:
        return other
    if other < 0:
        return one
    if _before(rank_at(world, other), rank_at(world, one)):
        one, other = other, one
    root = one
    while True:
        top = rank_at(world, one)
        rest = top.right
        top.right = top.left
        if rest < 0:
            top.left = other
            return root
        if _before(rank_at(world, other), rank_at(world, rest)):
            rest, other = other, rest
        top.left = rest
        one = rest


@primitive
def put_in(world: Any, line: Any, index: int, key: float) -> None:
    """Put a copy into the heap of a line, behind all of the same key."""
    rank = rank_at(world, index)
    rank.left = -1
    rank.right = -1
    rank.key = key
    rank.order = world.order
    world.order += 1
    line.root = merge(world, line.root, index)


@inlined
def take_first(world: Any, line: Any) -> int:
    """Take the first copy out of the heap of a line."""
    index = line.root
    rank = rank_at(world, index)
    line.root = merge(world, rank.left, rank.right)
    return index


@inlined
def demand_of(world: Any, line: Any, index: int) -> Any:
    """What a line does with an event of this type: its law and its priority."""
    row = publication_at(world, copy_at(world, index).publication).row
    return demand_at(world, line.first_demand + kind_of_row_at(world, row).value)


@inlined
def count_served(world: Any, station: Any, index: int, work: float, wait: float) -> None:
    """Count the service of a measured copy, in seconds."""
    if publication_at(world, copy_at(world, index).publication).measured:
        station.served += 1
        station.busy += work
        station.wait += wait
        station.wait_square += wait * wait


@primitive
def join_line(world: Any, at: int, index: int) -> None:
    """A copy that has come joins a line: it is served at once, waits, or finds the buffer full."""
    station, line = station_at(world, at), line_at(world, at)
    if line.kind != IN_TURN:
        if line.kind == SHARING and line.active - station.servers >= station.buffer:
            lose(world, index, BY_OVERFLOW)
        else:
            join_others(world, at, index)
        return
    if line.idle >= 0:
        number = line.idle
        line.idle = server_at(world, number).next_idle
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
    server = server_at(world, number)
    line = line_at(world, server.station)
    if line.kind != IN_TURN:
        return complete_first(world, number)
    index = server.serves
    following = next_in_turn(world, server.station)
    if following >= 0:
        begin(world, number, following)
    else:
        set_idle(world, number)
    return index


# ---- one after the other, by priority ------------------------------------------------------------


@primitive
def begin(world: Any, number: int, index: int) -> None:
    """A server of a line begins to work on a copy."""
    server = server_at(world, number)
    server.serves = index
    station, copy = station_at(world, server.station), copy_at(world, index)
    demand = demand_of(world, line_at(world, server.station), index)
    work = draw_time(world, demand.law, station.stream)
    if server.station == place_at(world, copy.place).first_station:
        copy.started = world.now
    count_served(world, station, index, work, world.now - copy.arrived)
    set_key(nodes_of(world), world.publisher_count + number, world.now + work)


@inlined
def set_idle(world: Any, number: int) -> None:
    """Let a server of a line have nothing to do."""
    server = server_at(world, number)
    line = line_at(world, server.station)
    server.serves = -1
    server.next_idle = line.idle
    line.idle = number
    set_key(nodes_of(world), world.publisher_count + number, np.inf)


@inlined
def leave_queue(world: Any, at: int) -> int:
    """Take the copy whose turn it is out of the queue of a line."""
    station = station_at(world, at)
    station.waiting -= 1
    world.backlog -= station.urgency
    return take_first(world, line_at(world, at))


@merged
def next_in_turn(world: Any, at: int) -> int:
    """Take the first copy that waits in a line and is still of use; −1: there is none."""
    while line_at(world, at).root >= 0:
        index = leave_queue(world, at)
        if world.expiry < 2 or not is_expired(world, index):
            return index
        lose(world, index, BY_EXPIRY)
    return -1


@merged
def make_room_in_line(world: Any, at: int, index: int) -> None:
    """Before a copy joins a full queue, what has expired in it leaves it, as at other stations."""
    station, line, soonest = station_at(world, at), line_at(world, at), soonest_at(world, at)
    if station.waiting >= station.buffer and world.now > soonest.value:
        soonest.value = np.inf
        kept = -1
        while line.root >= 0:
            first = leave_queue(world, at)
            if is_expired(world, first):
                lose(world, first, BY_EXPIRY)
                continue
            rank_at(world, first).left = -1
            rank_at(world, first).right = -1
            kept = merge(world, kept, first)
            station.waiting += 1
            world.backlog += station.urgency
            waiting = publication_at(world, copy_at(world, first).publication)
            soonest.value = min(soonest.value, waiting.born + waiting.lifetime)
        line.root = kept
    publication = publication_at(world, copy_at(world, index).publication)
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
    station, line = station_at(world, at), line_at(world, at)
    due = np.inf
    if line.root >= 0:
        due = rank_at(world, line.root).key
        if line.kind == SHARING:
            slowness = line.active / min(line.active, station.servers)
            due = world.now + max(due - line.work, 0.0) * slowness
    set_key(nodes_of(world), world.publisher_count + station.first_server, due)


@merged
def join_others(world: Any, at: int, index: int) -> None:
    """A copy is served from now on, beside all others."""
    station, line = station_at(world, at), line_at(world, at)
    work = draw_time(world, demand_of(world, line, index).law, station.stream)
    if line.kind == SHARING:
        pass_time(world, station, line)
        rank_at(world, index).need = work
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
    station, line = station_at(world, at), line_at(world, at)
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
    at = server_at(world, number).station
    index = take_out(world, at)
    if line_at(world, at).kind == SHARING:
        work = rank_at(world, index).need
        wait = max(world.now - copy_at(world, index).arrived - work, 0.0)
        count_served(world, station_at(world, at), index, work, wait)
    return index


# ---- crashes -------------------------------------------------------------------------------------


@primitive
def drop_from_line(world: Any, at: int) -> int:
    """Take some copy out of a line, waiting or in service; −1: there is none any more."""
    line, station = line_at(world, at), station_at(world, at)
    if line.root >= 0:
        return leave_queue(world, at) if line.kind == IN_TURN else take_out(world, at)
    if line.kind == IN_TURN:
        for number in range(station.first_server, station.first_server + station.servers):
            index = server_at(world, number).serves
            if index >= 0:
                set_idle(world, number)
                return index
    return -1
