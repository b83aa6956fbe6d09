r"""Traffic equations of a net: how many tokens come to each place per second, if that is settled.

Where a token, once it can be taken, chooses a mode by fixed weights (*plain* cells), rates obey

.. math:: \lambda_c = s_c + \sum_{c'} \lambda_{c'} \sum_m p_{c'm} E[\text{tokens of c put by m}]

with s from timed modes that take nothing, and from infinite servers whose tokens always come back
to them (publishers): n tokens of mean service S leave n/S times a second. Rates behind a mode that
waits for several tokens, and inside closed loops, these equations do not tell; such cells are left
out, and a growing population is noticed when the net is run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidings.errors import UnstableError
from tidings.model.loads import FULL_LOAD
from tidings.petri.cells import Cell, Cells
from tidings.petri.net import Mode

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Traffic:
    """Rates of all cells, NaN where the equations do not tell, and the loads that follow."""

    rates_per_s: Floats  # of cells
    loads: Mapping[str, float]  # of queueing places: offered work for each server


def solve_traffic(cells: Cells) -> Traffic:
    """The rates and loads that the traffic equations give; refuses tokens that multiply."""
    count = len(cells.all)
    unknown = _unknown(cells)
    begin = np.zeros(count)
    routing = np.zeros((count, count))
    for transition in cells.net.transitions:
        for mode in transition.modes:
            if mode.after is not None and not mode.take:
                begin += _put(cells, mode) / mode.after.mean_s
    for index in range(count):
        clock = _clock_rate(cells, index)
        for number, probability in cells.choices(index):
            put = probability * _put(cells, cells.modes[number])
            if clock is not None:
                put[index] = 0.0  # it is known how often it comes back
                begin += clock * put
            else:
                routing[index] += put
        if clock is not None:
            begin[index] += clock
    known = np.flatnonzero(~unknown)
    inner = routing[np.ix_(known, known)]
    rates = np.full(count, np.nan)
    rates[known] = _solved(cells, inner, begin[known], known)
    return Traffic(rates_per_s=rates, loads=_loads(cells, rates))


def _put(cells: Cells, mode: Mode) -> Floats:
    """Mean tokens of each cell that a mode puts."""
    found = np.zeros(len(cells.all))
    for arc in mode.put:
        found[cells.index[arc.place, arc.colour]] += arc.share * arc.count
    return found


def _clock_rate(cells: Cells, index: int) -> float | None:
    """How often tokens of a cell leave that begin in an infinite server and always come back."""
    cell = cells.all[index]
    queue, tokens = cells.queue_of(cell), cells.tokens(cell)
    if queue is None or queue.discipline != "infinite-server" or not tokens:
        return None
    modes = [cells.modes[number] for number, _ in cells.choices(index)]
    back = [_put(cells, mode)[index] == 1.0 and _is_sure(mode, cell) for mode in modes]
    fed = any(
        (arc.place, arc.colour) == cell and (len(mode.take) != 1 or _cell(mode) != cell)
        for mode in cells.modes
        for arc in mode.put
    )
    law = queue.law_of(cell[1])
    if not modes or not all(back) or fed or law is None or law.mean_s == 0.0:
        return None
    return tokens / law.mean_s


def _cell(mode: Mode) -> Cell:
    return mode.take[0].place, mode.take[0].colour


def _is_sure(mode: Mode, cell: Cell) -> bool:
    return any((arc.place, arc.colour) == cell and arc.share == 1.0 for arc in mode.put)


def _unknown(cells: Cells) -> NDArray[np.bool_]:
    """Cells that get tokens whose rate the equations do not tell, and all behind them."""
    unknown = np.zeros(len(cells.all), dtype=bool)
    for index, cell in enumerate(cells.all):
        if cells.tokens(cell) and _clock_rate(cells, index) is None:
            unknown[index] = True
    for mode in cells.modes:
        waits = bool(mode.take) and (
            mode.after is not None or not cells.is_plain[cells.index[_cell(mode)]]
        )
        if waits:
            unknown |= _put(cells, mode) > 0.0
    grows = True
    while grows:
        before = int(unknown.sum())
        for mode in cells.modes:
            if any(unknown[cells.index[arc.place, arc.colour]] for arc in mode.take):
                unknown |= _put(cells, mode) > 0.0
        grows = int(unknown.sum()) > before
    return unknown


def _solved(cells: Cells, routing: Floats, begin: Floats, known: NDArray[np.int64]) -> Floats:
    size = begin.size
    if size == 0:
        return begin
    reached = begin > 0.0
    while True:  # what no token reaches cannot multiply
        more = reached | ((routing.T @ reached) > 0.0)
        if (more == reached).all():
            break
        reached = more
    part = np.flatnonzero(reached)
    rates = np.zeros(size)
    try:
        found = np.linalg.solve(np.eye(part.size) - routing[np.ix_(part, part)].T, begin[part])
    except np.linalg.LinAlgError:
        found = np.full(part.size, np.nan)
    if not (np.isfinite(found).all() and (found >= 0.0).all()):
        names = sorted({cells.all[known[index]][0] for index in part if routing[index].any()})
        raise UnstableError(
            "tokens multiply without end: more go round than came. Look at the shares and weights "
            f"of what leaves {', '.join(names[:8])}"
        )
    rates[part] = found
    return rates


def _loads(cells: Cells, rates: Floats) -> dict[str, float]:
    """Offered work for each server of every queueing place, of the cells whose rate is known."""
    found: dict[str, float] = {}
    for cell, rate in zip(cells.all, rates, strict=True):
        queue = cells.queue_of(cell)
        law = queue.law_of(cell[1]) if queue is not None else None
        if queue is None or law is None or queue.discipline == "infinite-server":
            continue
        work = 0.0 if np.isnan(rate) else float(rate) * law.mean_s / queue.servers
        found[cell[0]] = found.get(cell[0], 0.0) + work
    return found


def refuse_overload(traffic: Traffic) -> None:
    """Raise UnstableError where the traffic equations say that a queue grows without end."""
    over = {name: load for name, load in traffic.loads.items() if load >= FULL_LOAD}
    if not over:
        return
    worst = sorted(over.items(), key=lambda pair: -pair[1])
    said = ", ".join(
        f"place '{name}' is offered {load:.3g} times the work it can do (ρ = {load:.3g})"
        for name, load in worst[:8]
    )
    raise UnstableError(
        f"{said}. Its queue would grow without end: give it servers or speed, or fewer tokens"
    )
