"""Which levels of backlog a run is split at, and replications of such runs.

Late events are those that met long queues. So the backlog, the work that waits at the brokers that
matter, tells how near a system is to misses. Pilot runs show how often it exceeds what, and each
level is reached a quarter as often as the one below.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tidings.errors import UnstableError
from tidings.kernels.memory import World
from tidings.kernels.replications import side_by_side
from tidings.model.arrays import Bools, Floats, Ints
from tidings.simulation import kernel_layout as layout
from tidings.simulation.kernel_run import run
from tidings.simulation.world import ALLOW_MORE, Window, make_world, run_world

if TYPE_CHECKING:
    from tidings.simulation.network import CompiledSystem
    from tidings.simulation.tally import Units

TRIALS = 4  # at each level
FIRST = 0.05  # share of the time above the first level
RAREST = 1e-5  # and above the last, at least, and ...
ABOVE = 2.0  # ... how many times the share of misses at least
URGENCIES = 100  # steps in which a station's work is told from another's
FEWEST_SAMPLES = 20  # above a level that is read off the pilots
SAMPLES, PILOTS = 50_000, 4  # of the backlog in each pilot; numbers apart from other pilots'
FIRST_PILOT = -1_000
FIRST_ROOM = 256  # copies there is room for at first: all of it is kept at every level
# What is not kept: what never changes in a run without failures, peers and churn, random numbers,
# which are to differ, and what is counted.
NOT_KEPT = frozenset(
    {
        *("laws", "law_params", "publishers", "day_rates", "places", "receivers", "out_first"),
        *("out_arcs", "interest", "full_interest", "cell_of", "curve_of", "receivers_first"),
        *("receivers_of", "came_from", "bin_guess", "bin_edges", "streams", "cells", "losses"),
        *("losses_here", "curves", "receipts", "receiver_curves", "levels", "spans", "kept"),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Splitting:
    """Levels of backlog, the lowest first, and what a waiting copy adds to it at each station."""

    urgency: Ints
    upper: Ints  # where trials of a level begin, ...
    lower: Ints  # ... and end
    room: int  # copies that there was room for in the pilots

    def __str__(self) -> str:
        return f"{self.upper.size} levels of backlog with {TRIALS} trials each"


def can_split(compiled: CompiledSystem) -> bool:
    """Test whether misses come from queues of brokers alone, at rates that do not change."""
    steady = not (compiled.faults.matter or compiled.peer_queues or compiled.churn.matters)
    steady = steady and not compiled.groups and not compiled.senders.matter
    scheduled = any(each.publishes is not None for each in compiled.system.publishers)
    steady = steady and not compiled.wires.keys and len(compiled.tables["stations"]) > 0
    return steady and not compiled.day_s and not scheduled


def find_splitting(
    compiled: CompiledSystem, units: Units, missed: Floats, window: Window, seed: int
) -> Splitting | None:
    """Find levels from pilot runs; None where hardly anything ever waits.

    ``missed`` is the share of each unit that matters, as far as it is known; NaN of others.
    """
    urgency = _urgency(compiled, units, ~np.isnan(missed))
    pilot = Window(
        warmup_s=np.inf, end_s=window.end_s, samples=SAMPLES, max_copies=window.max_copies
    )
    first = int(SAMPLES * window.warmup_s / window.end_s)

    def run_pilot(number: int) -> tuple[Ints, int]:
        world = make_world(compiled, pilot, seed, number, FIRST_ROOM)
        world.tables["stations"]["urgency"] = urgency
        run_world(world, compiled, pilot)
        return world.tables["samples"].backlog[first:], len(world.tables["copies"])

    numbers = range(FIRST_PILOT, FIRST_PILOT + PILOTS)
    backlogs, rooms = zip(*side_by_side(run_pilot, numbers), strict=True)
    rarest = max(ABOVE * float(np.nanmin(missed)), RAREST)
    levels = _levels(np.sort(np.concatenate(backlogs)), rarest)
    if levels.size < 2:
        return None
    return Splitting(urgency=urgency, upper=levels[1:], lower=levels[:-1], room=max(rooms))


def _urgency(compiled: CompiledSystem, units: Units, chosen: Bools) -> Ints:
    """Compute the work of a copy that waits, in steps, on paths to units that matter, [station]."""
    cells = compiled.cells
    near = np.unique(units.entry_cell[chosen[units.pair_unit[units.entry_pair]]])
    matters = np.zeros(cells.row.size, dtype=np.bool_)
    while near.size:
        matters[near] = True
        near = np.unique(cells.parent[near])
        near = near[near >= 0]
    owner, carried = compiled.stations.owner, compiled.carried
    work_s = carried.loads / np.fmax(carried.arrivals[owner], 1e-300)
    work_s = np.where(np.isin(owner, cells.broker[matters]), work_s, 0.0)
    return np.ceil(URGENCIES * work_s / max(work_s.max(), 1e-300)).astype(np.int64)


def _levels(backlogs: Ints, rarest: float) -> Ints:
    """Choose backlogs that are exceeded for ever smaller shares of the time, each above the last.

    Beyond what the pilots have seen often enough, steps are as long as the last two that they saw.
    """
    levels: list[int] = []
    share = TRIALS * FIRST
    while share >= rarest:
        place = backlogs.size - 1 - int(share * backlogs.size)
        if share * backlogs.size >= FEWEST_SAMPLES or len(levels) < 3:
            level = max(int(backlogs[place]), 1)
        else:
            level = levels[-1] + (levels[-1] - levels[-3]) // 2
        if level > (levels[-1] if levels else 0):
            levels.append(level)
        share /= TRIALS
    return np.array(levels, dtype=np.int64)


def run_with_trials(
    compiled: CompiledSystem, window: Window, splitting: Splitting, seed: int, number: int
) -> World:
    """Run one replication with its retrials to the end, again with more room where it must."""
    room = splitting.room
    while True:
        world = make_world(compiled, window, seed, number, room)
        world.tables["stations"]["urgency"] = splitting.urgency
        _prepare(world, splitting)
        if world.run(run) == layout.DONE:
            return world
        if room >= window.max_copies:
            raise UnstableError(
                f"the limit of {window.max_copies:,} copies of events in the system was "
                f"reached; {ALLOW_MORE}"
            )
        room *= 2


def _prepare(world: World, splitting: Splitting) -> None:
    """Hang levels on a world, and the memory in which it is kept for each."""
    rows = list(zip(splitting.upper, splitting.lower, strict=True))
    levels = [(upper, lower, TRIALS, 0) for upper, lower in rows] + [(layout.NEVER, 0, 1, 0)]
    world.put("levels", np.array(levels, dtype=layout.LEVEL))
    arrays = [each for name, each in world.tables.items() if name not in NOT_KEPT and each.nbytes]
    arrays.append(world.record)
    ends = np.cumsum([each.nbytes for each in arrays])
    kept = np.zeros(int(ends[-1]) * len(rows), dtype=np.uint8)
    world.put("kept", kept)
    starts = zip(arrays, ends.tolist(), strict=True)
    spans = [
        (each.ctypes.data, each.nbytes, kept.ctypes.data + end - each.nbytes)
        for each, end in starts
    ]
    world.put("spans", np.array(spans, dtype=layout.SPAN))
    world.record[0].kept_stride = int(ends[-1])
    world.record[0].upper = splitting.upper[0]
