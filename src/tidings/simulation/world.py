"""One replication: a world made from a compiled system, run to its end, growing as it must."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tidings.errors import UnstableError
from tidings.kernels.calendar import LANDING, tournament
from tidings.kernels.memory import World
from tidings.kernels.streams import stream_states
from tidings.model import delay_grid
from tidings.model.loads import FULL_LOAD, overload
from tidings.model.remarks import COLLAPSE
from tidings.simulation import kernel_layout as layout
from tidings.simulation.kernel_parts import parts_of
from tidings.simulation.kernel_run import run, schedule_first
from tidings.simulation.options import MOST_COPIES
from tidings.simulation.schedules import schedule_tables

if TYPE_CHECKING:
    from tidings.simulation.network import CompiledSystem

ALLOW_MORE = "allow more with --max-copies"
FIRST_ROOM = 4096  # copies and publications there is room for in the beginning


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Which events are measured: those born from ``warmup_s`` to ``end_s``."""

    warmup_s: float
    end_s: float
    samples: int = 0  # how often, at regular moments up to the end, copies are counted
    max_copies: int = MOST_COPIES
    tape: int = 0  # rows of each table recorded before they are taken off; 0: nothing is
    starts_ns: int = 0  # when it begins in recorded traces, in nanoseconds after the first window

    @property
    def length_s(self) -> float:
        """How long events are measured."""
        return self.end_s - self.warmup_s


def make_world(
    compiled: CompiledSystem,
    window: Window,
    seed: int,
    replication: int,
    room: int = FIRST_ROOM,
    schedules: Mapping[str, Any] | None = None,
) -> World:
    """Make a world at time 0: queues empty, publishers and peers at a stationary moment of theirs.

    ``schedules`` are tables of publishing times made before, instead of those of the system.
    """
    room = min(room, window.max_copies)
    given = compiled.tables
    publishers, receivers = len(given["publishers"]), len(given["receivers"])
    streams = stream_states(seed, replication, compiled.stream_keys)
    kinds = layout.TABLES
    cells, causes = compiled.cells.row.size, int(compiled.numbers["cause_count"])
    tables: dict[str, Any] = {name: _own(given[name], kinds[name]) for name in given}
    messages = int(compiled.numbers.get("free_messages", 0))
    tables |= {
        "copies": _linked(room, layout.COPY),
        "holds": np.zeros(len(given["limits"]) * room, dtype=layout.TINY),
        "messages": _linked(messages, layout.MESSAGE),
        "wanted": np.zeros(compiled.churn.watched * room, dtype=layout.MOMENT),
        "passages": np.zeros(compiled.passages_per_event * room, dtype=layout.MOMENT),
        "ranks": np.zeros(room * (len(given["lines"]) > 0), dtype=layout.RANK),
        "labels": np.zeros(room * compiled.faults.matter, dtype=layout.LABEL),
        "parcels": np.zeros(room * bool(compiled.groups), dtype=layout.PARCEL),
        "publications": _linked(room, layout.PUBLICATION),
        "soonest": np.full(len(given["stations"]), np.inf).view(layout.MOMENT),
        "onwards": np.zeros(np.diff(given["out_first"]).max(initial=0), dtype=layout.WHOLE),
        "nodes": tournament(int(compiled.numbers["first_end"]) + len(given["homes"])),
        "marks": np.zeros(compiled.marks_per_event * room, dtype=layout.TINY),
        # Also for the moments that consumer groups and publishers wait for.
        "flight": np.zeros(
            room + messages + 2 * len(compiled.groups) + len(given["senders"]), dtype=LANDING
        ),
        "streams": streams,
        "cells": np.zeros(cells, dtype=layout.CELL),
        "losses": np.zeros(cells * causes, dtype=layout.MOMENT),
        "losses_here": np.zeros(cells * causes * compiled.faults.matter, dtype=layout.MOMENT),
        "curves": np.zeros(compiled.curves * delay_grid.BINS, dtype=layout.BIN),
        "receipts": np.zeros(receivers * publishers, dtype=layout.RECEIPT),
        "receiver_curves": np.zeros(receivers * delay_grid.BINS, dtype=layout.BIN),
        "samples": np.zeros(window.samples, dtype=layout.SAMPLE),
        **{name: np.zeros(0, dtype=kinds[name]) for name in ("levels", "spans", "kept")},
    }
    if schedules is None:
        schedules = schedule_tables(compiled.system, window.end_s, seed, replication)
    tables |= schedules
    tables["days"]["position"] = np.floor(-window.warmup_s / tables["days"]["slot"])
    at_once = ("fan_out", "deliveries_at_once", "turns_at_once")
    most_at_once = int(max(compiled.numbers[name] for name in at_once))
    tape = window.tape + most_at_once if window.tape else 0
    tables |= {n: np.zeros(tape, dtype=k) for n, k in kinds.items() if n.startswith("tape_")}
    waking = int(compiled.senders.matter)
    if waking:  # the first copy is never free: it goes to see who is blocked no more
        tables["copies"]["place"][0] = given["senders"]["place"][-1] + 1
    every = window.end_s / window.samples if window.samples else np.inf
    world = layout.LAYOUT.make(
        {
            **compiled.numbers,
            "warmup": window.warmup_s,
            "end": window.end_s,
            "day_start": window.warmup_s,
            "sample_every": every,
            "next_sample": every,
            "recording": int(window.tape > 0),
            "free_copy": waking,
            "free_copies": room - waking,
            "upper": layout.NEVER,
            "weight": 1.0,
        },
        tables,
        parts_of(compiled.numbers, tables),
    )
    world.run(schedule_first)
    return world


def _own(table: NDArray[Any], kind: np.dtype[Any]) -> NDArray[Any]:
    """Copy a table, plain numbers becoming records of one field where wanted."""
    if kind.fields and not table.dtype.fields:
        return np.array(table, dtype=kind["value"]).view(kind)
    return np.array(table, dtype=kind)


def _linked(size: int, kind: np.dtype[Any]) -> NDArray[Any]:
    """Make free records, each pointing to the next, the last to none."""
    table = np.zeros(size, dtype=kind)
    table["next"] = np.arange(1, size + 1)
    table["next"][-1:] = -1
    return table


def run_world(world: World, compiled: CompiledSystem, window: Window) -> None:
    """Run until every measured event has met its end."""
    for _ in run_in_parts(world, compiled, window):
        pass


def run_in_parts(world: World, compiled: CompiledSystem, window: Window) -> Iterator[None]:
    """Run until every measured event has met its end; where it halts, the tape is to be emptied."""
    while True:
        why = world.run(run)
        yield
        if why == layout.DONE:
            return
        if why == layout.NEEDS_ROOM:
            _make_room(world, compiled, window)


def run_until(world: World, compiled: CompiledSystem, window: Window, until_s: float) -> bool:
    """Run on to a moment, whatever is under way then; whether a watched backlog came first."""
    record = world.record[0]
    record.end, record.may_stay = until_s, layout.NEVER
    while True:
        why = world.run(run)
        if why == layout.NEEDS_ROOM:
            _make_room(world, compiled, window)
            continue
        if why == layout.DONE:
            record.now = until_s
        return why == layout.BACKLOG_REACHED


def _make_room(world: World, compiled: CompiledSystem, window: Window) -> None:
    """Make room for twice as much of what has run short."""
    if world.record[0].free_messages < world.record[0].messages_at_once:
        _grow_messages(world)
    else:
        _grow(world, compiled, window)


def _grow(world: World, compiled: CompiledSystem, window: Window) -> None:
    """Make room for twice as many copies and publications, within the limit."""
    old = len(world.tables["copies"])
    size = min(2 * old, window.max_copies)
    if size <= old:
        raise UnstableError(_overloaded(world, compiled, window))
    for name, free in (("copies", "free_copy"), ("publications", "free_publication")):
        _link_more(world, name, free, size)
    for name in ("labels", "parcels", "ranks", "marks", "holds", "wanted", "passages"):
        _lengthen(world, name, len(world.tables[name]) // old * size)
    _lengthen(world, "flight", len(world.tables["flight"]) + size - old)
    world.record[0].free_copies += size - old


def _grow_messages(world: World) -> None:
    """Make room for twice as many messages of subscriptions under way."""
    old = len(world.tables["messages"])
    _link_more(world, "messages", "free_message", 2 * old)
    _lengthen(world, "flight", len(world.tables["flight"]) + old)
    world.record[0].free_messages += old


def _lengthen(world: World, name: str, size: int) -> None:
    table = np.zeros(size, dtype=layout.TABLES[name])
    table[: len(world.tables[name])] = world.tables[name]
    world.put(name, table)


def _link_more(world: World, name: str, free: str, size: int) -> None:
    """Lengthen a table of records of which some are free; the new ones are free too."""
    old = len(world.tables[name])
    _lengthen(world, name, size)
    linked = world.tables[name]["next"]
    linked[old:] = np.arange(old + 1, size + 1)
    linked[-1] = world.record[0][free]
    world.record[0][free] = old


def _overloaded(world: World, compiled: CompiledSystem, window: Window) -> str:
    """Say why there are too many copies: where they wait, and what that broker is offered."""
    stations, size = world.tables["stations"], len(world.tables["copies"])
    head = (
        f"the limit of {window.max_copies:,} copies of events in the system was reached "
        f"after {float(world.record[0].now):.6g} simulated seconds"
    )
    if compiled.faults.buffering and (len(stations) == 0 or stations.waiting.max() < 0.5 * size):
        return (
            f"{head}, most of them buffered until a repair; give events lifetimes, or {ALLOW_MORE}"
        )
    in_groups = world.tables["groups"]["waiting"].max(initial=0)
    if len(stations) == 0 or max(stations.waiting.max(), in_groups) == 0:
        return (
            f"{head}, all of them on links; check for link delays that are far too long and for "
            "bandwidths that are too small, or "
            f"{ALLOW_MORE}"
        )
    longest = int(np.argmax(stations.waiting))
    station = stations[longest]
    waiting = world.tables["groups"]["waiting"]
    if waiting.size and waiting.max() >= station.waiting:
        group = int(np.argmax(waiting))
        head = f"{head}, {int(waiting[group]):,} of them waiting at one place"
        return f"{head}; {overload_of_group(compiled, group)}, or {ALLOW_MORE}"
    head = f"{head}, {int(station.waiting):,} of them waiting at one place"
    place = world.tables["places"][station.place]
    if place.kind == layout.AT_MEMBER:
        group = [each.receiver for each in compiled.groups].index(int(place.owner))
        return f"{head}; {overload_of_group(compiled, group)}, or {ALLOW_MORE}"
    owner = int(station.place) - len(compiled.system.brokers)
    if owner >= 0:
        return (
            f"{head}; {overload_of_peer(compiled, owner)}. Give it longer connected "
            "times, a shorter service time, fewer events or a buffer, give events "
            f"lifetimes, or {ALLOW_MORE}"
        )
    name = compiled.system.brokers[station.place].name
    load, rate = compiled.carried.loads[longest], compiled.carried.arrivals[station.place]
    if load < FULL_LOAD:
        return (
            f"{head} (broker '{name}'), although it is not overloaded (utilisation {load:.3g}); "
            f"{ALLOW_MORE}"
        )
    return (
        f"{head}; {overload(name, float(load), float(rate))}. Add servers, make it "
        f"faster, send it fewer events, or {ALLOW_MORE}"
    )


def overload_of_peer(compiled: CompiledSystem, number: int) -> str:
    """Say what is wrong with a queue of a peer that is offered too much, or seems to be."""
    queue, rate = compiled.peer_queues[number], float(compiled.peer_arrivals[number])
    what, name = queue.peer.split(" ", 1)
    return overload(name, rate * queue.demand_s, rate, what=what)


def overload_of_group(compiled: CompiledSystem, number: int) -> str:
    """Say what is wrong with a consumer group that is offered, or hands out again, too much."""
    group, rate = compiled.groups[number], float(compiled.group_arrivals[number])
    members = f"{len(group.members)} member{'s' if len(group.members) > 1 else ''}"
    name = group.subscriber.name
    head = f"the consumer group '{name}' is offered {rate:.4g} events/s and its {members}"
    if rate < FULL_LOAD * group.capacity_per_s:
        return (
            f"{head} can handle {group.capacity_per_s:.4g}, but redeliveries use up the spare "
            f"capacity, a {COLLAPSE}: use a longer 'ack_wait' or a smaller 'prefetch'"
        )
    do = "add members, or make them faster"
    if rate < FULL_LOAD * group.able_per_s:
        do = "allow more events in flight ('in_flight')"
        if group.loads(rate).max() >= FULL_LOAD:  # only the owner of some partitions is too busy
            do = "spread the keys over more partitions, or give the busiest to members of their own"
    elif rate < FULL_LOAD * group.busy_per_s:
        do = "let members hold more events ('prefetch', 'fetch') while acknowledgements travel"
    return f"{head} can handle {group.capacity_per_s:.4g}: {do}"
