"""The simulation of a system: independent replications, as many as asked for or as are needed."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from tidings.errors import UnstableError
from tidings.kernels.replications import more_replications, side_by_side
from tidings.model.features import require_only
from tidings.model.loads import FULL_LOAD, overload
from tidings.model.outcome import Outcome
from tidings.model.record_tables import names
from tidings.model.remarks import Remark
from tidings.model.system import System
from tidings.simulation.network import CompiledSystem, compile_system
from tidings.simulation.options import Floats
from tidings.simulation.options import SimulationOptions as SimulationOptions
from tidings.simulation.provenance import provenance_of
from tidings.simulation.results import outcome_of
from tidings.simulation.tally import Counts, count_world, find_units
from tidings.simulation.totals import Totals
from tidings.simulation.windows import Progress, find_span, find_window
from tidings.simulation.world import Window, make_world, overload_of_peer, run_world

HANDLED = frozenset(
    {
        "failures",
        "recovery",
        "bounded buffers",
        "several servers",
        "several stations in a broker",
        "random lifetimes",
        "lifetimes of subscribers",
        "many subscribers in one",
        "dropping expired events on the way",
        "one tree per topic",
        "connectivity",
        "connectivity from traces",
        "bounded buffers of peers",
        "subscriber's own queue",
        "rates by time of day",
        "subscription churn",
    }
)
# Whoever runs replications of a system, of a window, a seed and these numbers, and gives their
# counts in order.
Replicate = Callable[[System, Window, int, range], Iterator[Counts]]


def simulate(
    system: System,
    options: SimulationOptions | None = None,
    *,
    progress: Progress | None = None,
    elsewhere: Replicate | None = None,
    **changes: Any,
) -> Outcome:
    """Which share of the events each subscriber wants reaches it in time, by simulation.

    Options are those of :class:`SimulationOptions`, also by name: ``simulate(system, seed=7,
    precision=0.005)``. Standard errors are over replications, which are independent; each can be
    repeated alone (:func:`replicate`). A subscriber whose own link loses or delays events stands
    for all of its ``count``. Replications run on the cores of this machine, or ``elsewhere``, with
    the same numbers; pilot runs for the warm-up always run here.
    """
    chosen = dataclasses.replace(options or SimulationOptions(), **changes)
    tell = progress or (lambda _: None)
    require_only(system, HANDLED, "simulation")
    tell("contents and routes")
    compiled = compile_system(system)
    refuse_overload(compiled)
    count = len(system.subscribers)
    span = find_span(compiled, _least(chosen.wanted(np.full(count, np.nan))))
    clock = Clock(chosen.seconds)
    if chosen.seconds is not None:
        _compile(compiled)
    start_s = time.process_time()
    window, notes = find_window(compiled, chosen, tell, span)
    clock.spend(time.process_time() - start_s)
    totals = Totals(compiled, find_units(compiled), window.length_s, span)

    def run(numbers: range) -> Iterator[Counts]:
        if elsewhere is not None:
            return clock.watched(elsewhere(system, window, chosen.seed, numbers))
        return replications(compiled, window, chosen.seed, numbers, clock.spend)

    remarks = _until_precise(totals, run, chosen, clock, tell)
    remarks += [] if span is None else span.remarks(totals.measured_s)
    story = provenance_of(totals, window, chosen.seed, notes)
    if chosen.seconds is not None:
        story["cpu_s"] = clock.spent_s
    return outcome_of(totals, story, remarks)


def _least(wanted: Floats) -> float | None:
    """Give the smallest half-width wanted of any share; None where none is, or not known yet."""
    known = wanted[np.isfinite(wanted)]
    return float(known.min()) if known.size else None


def _compile(compiled: CompiledSystem) -> None:
    """Compile the kernel by an empty run, so that no budget pays for it."""
    window = Window(warmup_s=0.0, end_s=0.0)
    run_world(make_world(compiled, window, 0, 0), compiled, window)


def replicate(
    system: System, *, seed: int, replication: int, warmup_s: float, duration_s: float
) -> Counts:
    """The counts of one replication, the same as inside a simulation of many."""
    require_only(system, HANDLED, "simulation")
    window = Window(warmup_s=warmup_s, end_s=warmup_s + duration_s)
    return next(replications(compile_system(system), window, seed, [replication]))


def replications(
    compiled: CompiledSystem,
    window: Window,
    seed: int,
    numbers: Iterable[int],
    spend: Callable[[float], None] = lambda _: None,
) -> Iterator[Counts]:
    """Replications in order, run side by side: compiled code does not hold the interpreter.

    ``spend`` is told the CPU seconds of each.
    """
    units = find_units(compiled)

    def replication(number: int) -> Counts:
        start_s = time.thread_time()
        world = make_world(compiled, window, seed, number)
        run_world(world, compiled, window)
        counts = count_world(world, compiled, units)
        spend(time.thread_time() - start_s)
        return counts

    return side_by_side(replication, numbers)


def refuse_overload(compiled: CompiledSystem) -> None:
    """Raise UnstableError where a broker or peer is offered all it can do, or more.

    Where events are dropped the load cannot be known beforehand; then the limit on copies tells.
    """
    stations = compiled.tables["stations"]
    if compiled.drops_events or len(stations) == 0:
        return
    found = compiled.carried
    brokers = np.asarray(stations["place"])
    over = np.flatnonzero(found.loads >= FULL_LOAD)
    if not over.size:
        _refuse_overloaded_peers(compiled)
        return
    worst = over[np.argsort(-found.loads[over], kind="stable")]
    said: dict[int, str] = {}
    for station in worst:
        broker = int(brokers[station])
        name, rate = compiled.system.brokers[broker].name, float(found.arrivals[broker])
        said.setdefault(broker, overload(name, float(found.loads[station]), rate))
    first, *others = said.values()
    more = f"; and {', '.join(others)}" if others else ""
    raise UnstableError(
        f"{first}{more}. Its queue would grow without end: give it servers or speed, or fewer "
        "events; 'tidings predict' shows who suffers"
    )


def _refuse_overloaded_peers(compiled: CompiledSystem) -> None:
    demands_s = [queue.demand_s for queue in compiled.peer_queues]
    loads = compiled.peer_arrivals * np.array(demands_s)
    over = np.flatnonzero(loads >= FULL_LOAD)
    if over.size:
        worst = over[np.argsort(-loads[over], kind="stable")]
        said = "; and ".join(overload_of_peer(compiled, int(each)) for each in worst[:3])
        more = f"; and {worst.size - 3} more" if worst.size > 3 else ""
        raise UnstableError(
            f"{said}{more}. Its queue would grow without end: give it longer times connected, a "
            "shorter service or fewer events, or a buffer"
        )


# ---- how often ---------------------------------------------------------------------------------


class Clock:
    """The CPU seconds that replications have taken, and how many they may take."""

    def __init__(self, seconds: float | None) -> None:
        self.seconds, self.spent_s = seconds, 0.0

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to spend."""
        return self.seconds is not None and self.spent_s >= self.seconds

    def spend(self, cpu_s: float) -> None:
        """Add what one replication took."""
        self.spent_s += cpu_s

    def watched(self, results: Iterator[Counts]) -> Iterator[Counts]:
        """Give results of another machine, whose time is taken by the clock on the wall."""
        start_s = time.perf_counter()
        for each in results:
            self.spend(time.perf_counter() - start_s)
            start_s = time.perf_counter()
            yield each


def _until_precise(
    totals: Totals,
    run: Callable[[range], Iterator[Counts]],
    options: SimulationOptions,
    clock: Clock,
    tell: Progress,
) -> list[Remark]:
    """Add replications until all shares that matter are known well enough, or no more are allowed.

    Their number grows by at most as many again, so that the half-widths are looked at a few times
    only, and the first look comes after all the replications that were asked for.
    """
    more = options.first_replications
    while True:
        done = totals.replications
        for number, counts in enumerate(run(range(done, done + more)), start=done + 1):
            totals.add(counts)
            tell(f"replication {number} of {done + more}")
            if clock.is_over and number > 1:
                break
        short = _shortfall(totals, options)
        room = options.max_replications - totals.replications
        if options.precision is None or short <= 1.0:
            return []
        if math.isnan(short):
            return [_NOBODY] if totals.replications > 1 else []
        if room <= 0 or clock.is_over:
            return [_not_held(totals, options, clock)]
        more = more_replications(totals.replications, short, 1.0, options.max_replications)
        tell(f"{short:.2g} times the error wanted after {totals.replications}, {more} more")


_NOBODY = Remark(
    kind="nobody",
    what="nobody wants anything that is published, so no share can be known",
    do="look at what subscribers want and publishers publish",
)


def _missed(totals: Totals, options: SimulationOptions) -> tuple[Floats, Floats]:
    """Give the half-width of each subscriber's share, and how many times the wanted one it is."""
    unit = totals.units.of_subscriber
    widths = totals.half_widths[unit]
    return widths, widths / options.wanted(totals.on_time.value[unit])


def _shortfall(totals: Totals, options: SimulationOptions) -> float:
    """Give the largest half-width in units of what is wanted of it; NaN where none is known."""
    _, times = _missed(totals, options)
    return float(np.nanmax(times)) if np.any(~np.isnan(times)) else math.nan


def _not_held(totals: Totals, options: SimulationOptions, clock: Clock) -> Remark:
    widths, times = _missed(totals, options)
    rows = np.flatnonzero(times > 1.0)
    rows = rows[np.argsort(-widths[rows], kind="stable")]
    named = names(totals.compiled.system.subscribers)
    bound = "seconds" if clock.is_over else "replications"
    return Remark(
        kind="not held",
        what=f"on-time shares are known less well than wanted when the {bound} allowed ended",
        where=tuple(named[row] for row in rows[:20]),
        size=float(widths[rows].max()),
        unit="(half-width, 95 %)",
        do=f"allow more {bound}, or want less",
    )
