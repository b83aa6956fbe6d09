"""A net compiled for the kernel: names become positions, laws become rows of one table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from tidings.kernels.bins import bin_tables
from tidings.kernels.records import Numbering, encode, make_records
from tidings.model import delay_grid
from tidings.model.laws import Law, residual
from tidings.petri import kernel_layout as layout
from tidings.petri.cells import NetCells, flatten
from tidings.petri.net import Net

MOST_FIRINGS = 1_000_000  # without any time passing, before it is called endless
NO_LIMIT = np.iinfo(np.int64).max
_KINDS = {
    "fcfs": layout.FCFS,
    "processor-sharing": layout.SHARING,
    "infinite-server": layout.INFINITE,
    "priority": layout.PRIORITY,
}


@dataclass(frozen=True, kw_only=True)
class CompiledNet:
    """A flat net as the kernel wants it; tables are never changed, always copied."""

    cells: NetCells
    tables: Mapping[str, Any]
    numbers: Mapping[str, float]
    queue_names: tuple[str, ...]
    stream_keys: tuple[tuple[str, str], ...]


def compile_net(net: Net) -> CompiledNet:
    """Turn a net (without problems) into arrays; subnets are flattened."""
    cells = NetCells(net=flatten(net))
    streams = Numbering()
    laws: list[Law] = []
    queue_names = tuple(cells.queues)
    cell_rows, users, choices = _cells(cells, queue_names, laws, streams)
    modes, takes, puts = _modes(cells, streams)
    timed = _timed(cells, laws, streams)
    law_table = encode(laws)
    for row in cell_rows:  # laws are known by position until all are encoded
        row[1:5] = _placed(law_table, row[1]) + _placed(law_table, row[3])
    timed_rows = [
        (mode, *_placed(law_table, law), *_placed(law_table, first), stream)
        for mode, law, first, stream in timed
    ]
    guess, edges = bin_tables()
    most_put = max((sum(arc.count for arc in mode.put) for mode in cells.modes), default=0)
    transitions = list(_transitions(cells))
    return CompiledNet(
        cells=cells,
        queue_names=queue_names,
        tables={
            "law_params": law_table.params,
            "choices": make_records(layout.CHOICE, choices),
            "takes": make_records(layout.TAKE, takes),
            "puts": make_records(layout.PUT, puts),
            "users": make_records(layout.USER, users),
            "bin_guess": guess,
            "bin_edges": edges,
            "cells": make_records(layout.CELL, [tuple(row) for row in cell_rows]),
            "queues": make_records(layout.QUEUE, list(_queues(cells))),
            "modes": make_records(layout.MODE, modes),
            "transitions": make_records(layout.TRANSITION, transitions),
            "timed": make_records(layout.TIMED, timed_rows),
            "candidates": np.zeros(len(transitions), dtype=layout.WHOLE),
            "touched": np.zeros(len(timed), dtype=layout.WHOLE),
        },
        numbers={
            "queue_count": len(queue_names),
            "most_put": most_put,
            "agenda_head": -1,
            "agenda_tail": -1,
            "conflict_stream": streams(("net", "conflicts")),
            "bin_count": delay_grid.BINS,
            "most_firings": MOST_FIRINGS,
            "initial": sum(cells.tokens(cell) for cell in cells.all),
        },
        stream_keys=tuple(streams.known),
    )


def _placed(table: Any, law: int) -> list[int]:
    """Give kind and offset of a distribution by its position; −1 is none."""
    return [int(table.kinds[law]), int(table.offsets[law])] if law >= 0 else [0, 0]


def _cells(
    cells: NetCells, queue_names: tuple[str, ...], laws: list[Law], streams: Numbering
) -> tuple[list[list[int]], list[tuple[int, int]], list[tuple[float, int]]]:
    """Compile cells to records, with users of holding cells and choices of the others."""
    position = {name: number for number, name in enumerate(queue_names)}
    transition_number = {each: at for at, each in enumerate(_held_transitions(cells))}
    timed_number = {each: at for at, each in enumerate(_timed_modes(cells))}
    rows: list[list[int]] = []
    users: list[tuple[int, int]] = []
    choices: list[tuple[float, int]] = []
    for index, cell in enumerate(cells.all):
        name = f"{cell[0]} {cell[1]}"
        queue = cells.queue_of(cell)
        law = queue.law_of(cell[1]) if queue is not None else None
        at = first_at = -1
        if law is not None and queue is not None:
            laws.append(law)
            at = first_at = len(laws) - 1
            if queue.discipline == "infinite-server" and cells.tokens(cell):
                laws.append(residual(law))
                first_at = len(laws) - 1
        priority = dict(queue.priorities).get(cell[1], 0) if queue is not None else 0
        plain = cells.is_plain[index]
        if plain:
            first, pairs = len(choices), cells.choices(index)
            below = accumulate(share for _, share in pairs)
            choices += [(total, mode) for total, (mode, _) in zip(below, pairs, strict=True)]
            last = len(choices)
        else:
            first = len(users)
            for taker in cells.takers[index]:
                if cells.modes[taker].after is not None:
                    users.append((1, timed_number[taker]))
                else:
                    users.append((0, transition_number[cells.transition_of[taker]]))
            users[first:] = list(dict.fromkeys(users[first:]))
            last = len(users)
        number = position[cell[0]] if queue is not None else -1
        service, choice = streams((name, "service")), streams((name, "choice"))
        row = [number, at, 0, first_at, 0, service, priority, int(plain)]
        rows.append([*row, first, last, choice, 0, -1, -1])
    return rows, users, choices


def _queues(cells: NetCells) -> Iterator[tuple[int, ...]]:
    for queue in cells.queues.values():
        servers = NO_LIMIT if queue.discipline == "infinite-server" else queue.servers
        yield (int(_KINDS[queue.discipline]), servers, 0, -1, -1, -1, -1)


def _modes(
    cells: NetCells, streams: Numbering
) -> tuple[list[tuple[Any, ...]], list[tuple[int, int]], list[tuple[float, int, int]]]:
    modes: list[tuple[Any, ...]] = []
    takes: list[tuple[int, int]] = []
    puts: list[tuple[float, int, int]] = []
    for number, mode in enumerate(cells.modes):
        transition = cells.transition_of[number]
        name = cells.net.transitions[transition].name
        own = number - cells.first_mode[transition]
        first_take, first_put = len(takes), len(puts)
        needed: dict[int, int] = {}
        for arc in mode.take:  # several arcs from one cell are one
            cell = cells.index[arc.place, arc.colour]
            needed[cell] = needed.get(cell, 0) + arc.count
        takes += needed.items()
        puts += [(a.share, cells.index[a.place, a.colour], a.count) for a in mode.put]
        stream = streams((f"{name} {own}", "share"))
        ends = (first_take, len(takes), first_put, len(puts))
        modes.append((*ends, int(mode.newborn), stream, mode.weight, 0))
    return modes, takes, puts


def _held_transitions(cells: NetCells) -> list[int]:
    """List the immediate transitions that take from a cell that is not plain."""
    held: dict[int, None] = {}
    for number, mode in enumerate(cells.modes):
        plain = [cells.is_plain[cells.index[arc.place, arc.colour]] for arc in mode.take]
        if mode.after is None and not all(plain):
            held[cells.transition_of[number]] = None
    return list(held)


def _transitions(cells: NetCells) -> Iterator[tuple[Any, ...]]:
    firsts = cells.first_mode
    for number in _held_transitions(cells):
        each = cells.net.transitions[number]
        yield (each.weight, each.priority, firsts[number], firsts[number + 1], 0)


def _timed_modes(cells: NetCells) -> list[int]:
    return [number for number, mode in enumerate(cells.modes) if mode.after is not None]


def _timed(cells: NetCells, laws: list[Law], streams: Numbering) -> list[tuple[int, ...]]:
    """List mode, distribution, that of the first time and stream of every timed mode.

    Distributions are given by position; −1: none.
    """
    rows: list[tuple[int, ...]] = []
    for number in _timed_modes(cells):
        mode = cells.modes[number]
        assert mode.after is not None
        laws.append(mode.after)
        at = first_at = len(laws) - 1
        if not mode.take:  # a source, as if it had been going on for ever
            laws.append(residual(mode.after))
            first_at = len(laws) - 1
        transition = cells.transition_of[number]
        own = number - cells.first_mode[transition]
        stream = streams((f"{cells.net.transitions[transition].name} {own}", "time"))
        rows.append((number, at, first_at, stream))
    return rows
