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
from scipy import sparse

from tidings.errors import UnstableError
from tidings.model.arrays import Floats
from tidings.model.flow_balance import balanced, worst_circle
from tidings.model.loads import FULL_LOAD
from tidings.petri.cells import NetCells
from tidings.petri.net import Mode


@dataclass(frozen=True, kw_only=True)
class NetTraffic:
    """Rates of all cells, NaN where the equations do not tell, and the loads that follow."""

    rates_per_s: Floats  # of cells
    loads: Mapping[str, float]  # of queueing places: offered work for each server


def solve_traffic(cells: NetCells) -> NetTraffic:
    """Solve the traffic equations for rates and loads; refuse tokens that multiply."""
    count = len(cells.all)
    clocks = {index: rate for index in range(count) if (rate := _clock_rate(cells, index))}
    unknown = _unknown(cells, clocks)
    begin = np.zeros(count)
    steps: list[tuple[int, int, float]] = []  # from cell, to cell, mean tokens
    for mode in cells.modes:
        if mode.after is not None and not mode.take:
            for cell, mean in _put(cells, mode).items():
                begin[cell] += mean / mode.after.mean_s
    for index in range(count):
        for number, probability in cells.choices(index):
            for cell, mean in _put(cells, cells.modes[number]).items():
                if index not in clocks:
                    steps.append((index, cell, probability * mean))
                elif cell != index:  # it is known how often it comes back itself
                    begin[cell] += clocks[index] * probability * mean
    for index, rate in clocks.items():
        begin[index] += rate
    known = np.flatnonzero(~unknown)
    routing = _matrix(steps, count)[known][:, known]
    rates = np.full(count, np.nan)
    rates[known] = _solved(cells, routing, begin[known], known)
    return NetTraffic(rates_per_s=rates, loads=_loads(cells, rates))


def _matrix(steps: list[tuple[int, int, float]], count: int) -> sparse.csr_array:
    source, target, mean = zip(*steps, strict=True) if steps else ((), (), ())
    return sparse.coo_array(
        (mean, (source, target)), shape=(count, count), dtype=np.float64
    ).tocsr()


def _put(cells: NetCells, mode: Mode) -> dict[int, float]:
    """Compute the mean tokens that a mode puts, by cell."""
    tokens: dict[int, float] = {}
    for arc in mode.put:
        cell = cells.index[arc.place, arc.colour]
        tokens[cell] = tokens.get(cell, 0.0) + arc.share * arc.count
    return tokens


def _clock_rate(cells: NetCells, index: int) -> float | None:
    """Compute how often tokens leave an infinite server where they begin and always come back.

    This is per second and for one cell; None for all other cells.
    """
    cell = cells.all[index]
    queue, tokens = cells.queue_of(cell), cells.tokens(cell)
    if queue is None or queue.discipline != "infinite-server" or not tokens:
        return None
    takers = [number for number, _ in cells.choices(index)]
    back = [_comes_back(cells, number, index) for number in takers]
    fed = set(cells.givers[index]) - set(cells.takers[index])
    law = queue.law_of(cell[1])
    if not takers or not all(back) or fed or law is None or law.mean_s == 0.0:
        return None
    return tokens / law.mean_s


def _comes_back(cells: NetCells, number: int, index: int) -> bool:
    mode, cell = cells.modes[number], cells.all[index]
    sure = any((arc.place, arc.colour) == cell and arc.share == 1.0 for arc in mode.put)
    return sure and _put(cells, mode)[index] == 1.0


def _unknown(cells: NetCells, clocks: Mapping[int, float]) -> NDArray[np.bool_]:
    """Find cells that get tokens whose rate the equations do not give, and all behind them."""
    unknown = np.zeros(len(cells.all), dtype=bool)
    waiting = [
        index for index, cell in enumerate(cells.all) if cells.tokens(cell) and index not in clocks
    ]
    for mode in cells.modes:
        held = [not cells.is_plain[cells.index[arc.place, arc.colour]] for arc in mode.take]
        if mode.take and (mode.after is not None or any(held)):
            waiting += _put(cells, mode)
    while waiting:
        index = waiting.pop()
        if not unknown[index]:
            unknown[index] = True
            for number in cells.takers[index]:
                waiting += _put(cells, cells.modes[number])
    return unknown


def _solved(
    cells: NetCells, routing: sparse.csr_array, begin: Floats, known: NDArray[np.int64]
) -> Floats:
    rates = balanced(routing, begin)
    if rates is None:
        around, circle = worst_circle(routing, begin)
        names = sorted({cells.all[known[index]][0] for index in circle})
        raise UnstableError(
            f"tokens multiply without limit: for each one that circulates, {around:.3g} "
            "come back, where less than 1 is needed. Check the shares and weights of "
            f"what leaves {', '.join(names[:8])}"
        )
    return rates


def _loads(cells: NetCells, rates: Floats) -> dict[str, float]:
    """Compute the offered work per server of every queueing place, of cells whose rate is known."""
    loads: dict[str, float] = {}
    for cell, rate in zip(cells.all, rates, strict=True):
        queue = cells.queue_of(cell)
        law = queue.law_of(cell[1]) if queue is not None else None
        if queue is None or law is None or queue.discipline == "infinite-server":
            continue
        work = 0.0 if np.isnan(rate) else float(rate) * law.mean_s / queue.servers
        loads[cell[0]] = loads.get(cell[0], 0.0) + work
    return loads


def refuse_overload(traffic: NetTraffic) -> None:
    """Raise UnstableError where the traffic equations say that a queue grows without end."""
    over = {name: load for name, load in traffic.loads.items() if load >= FULL_LOAD}
    if not over:
        return
    worst = sorted(over.items(), key=lambda pair: -pair[1])
    said = ", ".join(
        f"place '{name}' is overloaded, at {load:.3g} times its capacity"
        for name, load in worst[:8]
    )
    raise UnstableError(
        f"{said}. Its queue would grow without limit: add servers, make it faster, or "
        "send it fewer tokens"
    )
