"""The simulation of a system: independent replications, as many as asked for or as are needed."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Unpack

import numpy as np

from tidings.errors import UnstableError
from tidings.kernels.replications import Clock, Series, side_by_side
from tidings.model.arrays import Floats
from tidings.model.features import require_only
from tidings.model.loads import FULL_LOAD, overload
from tidings.model.outcome import Outcome
from tidings.model.progress import Progress
from tidings.model.record_tables import names
from tidings.model.remarks import Remark
from tidings.model.system import System
from tidings.simulation.hot_partitions import compile_steady, given_up
from tidings.simulation.network import CompiledSystem
from tidings.simulation.options import SimulationChanges, SimulationOptions
from tidings.simulation.results import outcome_of, provenance_of, remarks_of
from tidings.simulation.splitting import Splitting, can_split, find_splitting, run_with_trials
from tidings.simulation.tally import Counts, count_world, find_units
from tidings.simulation.totals import Totals
from tidings.simulation.unsteady import unsteady_units
from tidings.simulation.windows import PLANNED, find_span, find_window
from tidings.simulation.world import (
    Window,
    make_world,
    overload_of_group,
    overload_of_peer,
    run_world,
)


class Shares(Series[Counts]):
    """Replications of a system, and how far the shares that matter are from what is wanted."""

    def __init__(
        self,
        totals: Totals,
        run: Callable[[range], Iterator[Counts]],
        options: SimulationOptions,
        clock: Clock,
        tell: Progress,
    ) -> None:
        super().__init__(totals, run, clock, tell)
        self.totals, self.options = totals, options

    @property
    def times_wanted(self) -> Floats:
        """[subscriber]: its half-width, in units of what is wanted of it."""
        unit = self.totals.units.of_subscriber
        wanted = self.options.wanted(self.totals.on_time.value[unit])
        times: Floats = self.totals.half_widths[unit] / wanted
        return times

    @property
    def shortfall(self) -> float:
        """The largest half-width in units of what is wanted of it; NaN where none is known."""
        times = self.times_wanted
        return float(np.nanmax(times)) if np.any(~np.isnan(times)) else math.nan

    @property
    def needed_s(self) -> float:
        """Estimate the CPU seconds after which all is known as well as is wanted."""
        unit = self.totals.units.of_subscriber
        wanted = self.options.wanted(self.totals.on_time.value[unit])
        return self.spent_s * float(np.nanmax(self.totals.seen_widths[unit] / wanted)) ** 2

    def begin(self) -> None:
        """Run the first replications; where a precision is wanted more may follow."""
        first = self.options.first_replications
        self.add(first, "" if self.options.precision is None else f"at least {first}")

    def until_precise(self) -> list[Remark]:
        """Add replications until all that matters is known well enough, or no more are allowed."""
        if self.options.precision is None:
            return []
        if not self.until(lambda: self.shortfall, self.options.max_replications):
            return [self._not_held()]
        unknown = math.isnan(self.shortfall) and self.totals.replications > 1
        return [_NOBODY] if unknown else []

    def _not_held(self) -> Remark:
        widths = self.totals.half_widths[self.totals.units.of_subscriber]
        rows = np.flatnonzero(self.times_wanted > 1.0)
        rows = rows[np.argsort(-widths[rows], kind="stable")]
        named = names(self.totals.compiled.asked.subscribers)
        bound = "seconds" if self.is_out_of_time else "replications"
        return Remark(
            kind="not held",
            what=f"on-time shares are less precise than asked: the allowed {bound} ran out",
            where=tuple(named[row] for row in rows[:20]),
            size=float(widths[rows].max()),
            unit="at worst (half-width, 95 %)",
            do=f"allow more {bound}, or accept a larger error",
        )


_NOBODY = Remark(
    kind="nobody",
    what="no subscriber wants anything that is published, so there are no on-time shares",
    do="compare the subscribers' filters with the contents that are published",
)


HANDLED = frozenset(
    {
        "failures",
        "failures of clients' links",
        "recovery",
        "bursts of losses",
        "delays by time of day",
        "bounded buffers",
        "bandwidth",
        "several servers",
        "other disciplines than fcfs",
        "demands by event type",
        "several stations in a broker",
        "random lifetimes",
        "lifetimes of subscribers",
        "subscribers with a count",
        "dropping expired events on the way",
        "one tree per topic",
        "connectivity",
        "connectivity from traces",
        "bounded buffers of peers",
        "subscriber's own queue",
        "consumer groups",
        "blocked publishers",
        "publishers that send in batches",
        "rates by time of day",
        "recorded publishing times",
        "publishers with clocks",
        "batches of publications",
        "bursts of publications",
        "subscription churn",
    }
)
FEW = 0.02  # misses below which splitting is tried
FIRST_SPLIT = 10_000_000  # number of the first replication that is split
COSTS_MORE = 10.0  # how many times as long a replication may take that is split
# Whoever runs replications of a system, of a window, a seed and these numbers, and gives their
# counts in order.
Replicate = Callable[[System, Window, int, range], Iterator[Counts]]


def simulate(
    system: System,
    options: SimulationOptions | None = None,
    *,
    progress: Progress | None = None,
    elsewhere: Replicate | None = None,
    counted: Callable[[Counts], None] = lambda _: None,
    **changes: Unpack[SimulationChanges],
) -> Outcome:
    """Simulate which share of the events each subscriber wants reaches it in time.

    Options are those of :class:`SimulationOptions`, also by name: ``simulate(system, seed=7,
    precision=0.005)``. Standard errors are over replications, which are independent; each can be
    repeated alone (:func:`replicate`). A subscriber whose own link loses or delays events stands
    for all of its ``count``. Replications run on the cores of this machine, or ``elsewhere``, with
    the same numbers; pilot runs for the warm-up always run here. ``counted`` is told what each
    replication counted.
    """
    chosen = dataclasses.replace(options or SimulationOptions(), **changes)
    tell = progress or (lambda _: None)
    require_only(system, HANDLED, "simulation")
    tell("contents and routes")
    compiled = compile_steady(system)
    refuse_overload(compiled)
    count = len(system.subscribers)
    span = find_span(compiled, _least(chosen.wanted(np.full(count, np.nan))))
    clock = Clock(chosen.seconds)
    if chosen.seconds is not None:
        tell("machine code of the simulator, compiled when it is first used")
        _compile(compiled)
    start_s = time.process_time()
    window, remarks = find_window(compiled, chosen, tell, span)
    clock.spend(time.process_time() - start_s)

    def run(numbers: range) -> Iterator[Counts]:
        if elsewhere is not None:
            return clock.watched(elsewhere(system, window, chosen.seed, numbers))
        return replications(compiled, window, chosen.seed, numbers, clock.spend)

    def heard(numbers: range) -> Iterator[Counts]:
        for counts in run(numbers):
            counted(counts)
            yield counts

    totals = Totals(compiled, find_units(compiled), window.length_s, span)
    series = Shares(totals, heard, chosen, clock, tell)
    series.begin()
    measured = window
    if chosen.split and elsewhere is None and can_split(compiled):
        series, measured = _split_if_better(series, window)
    return _completed(series, measured, remarks)


def _completed(series: Shares, window: Window, remarks: list[Remark]) -> Outcome:
    """Add replications until they are enough, and make an outcome of what they counted."""
    remarks = [*remarks, *series.until_precise(), *remarks_of(series.totals)]
    totals, clock = series.totals, series.clock
    remarks += [] if totals.span is None else totals.span.remarks(totals.measured_s)
    story = provenance_of(totals, window, series.options.seed)
    if clock.seconds is not None:
        story["cpu_s"] = clock.spent_s
    return outcome_of(totals, story, remarks, unsteady_units(totals), window)


def _split_if_better(plain: Shares, window: Window) -> tuple[Shares, Window]:
    """Give replications that are split where the same time gets nearer to what is wanted so."""
    totals, options, clock = plain.totals, plain.options, plain.clock
    short = totals.units.of_subscriber[plain.times_wanted > 1.0]
    missed = np.full(totals.units.count, np.nan)
    missed[short] = 1.0 - totals.on_time.value[short]
    if clock.is_over or not np.any(missed < FEW):
        return plain, window
    plain.tell("pilot runs for the levels of splitting")
    start_s = time.process_time()
    splitting = find_splitting(totals.compiled, totals.units, missed, window, options.seed)
    clock.spend(time.process_time() - start_s)
    if splitting is None:
        return plain, window
    shorter = _affordable(plain, window)

    def run(numbers: range) -> Iterator[Counts]:
        # What is counted must not depend on what the levels were chosen by.
        own = range(FIRST_SPLIT + numbers.start, FIRST_SPLIT + numbers.stop)
        return replications(
            totals.compiled, shorter, options.seed, own, clock.spend, splitting=splitting
        )

    counted = Totals(totals.compiled, totals.units, shorter.length_s, splitting=splitting)
    split = Shares(counted, run, options, clock, plain.tell)
    split.begin()
    if totals.are_known(short) and plain.needed_s < split.needed_s:
        return plain, window
    return split, shorter


def _affordable(plain: Shares, window: Window) -> Window:
    """Shorten what is measured so that the first replications that are split can be afforded."""
    clock = plain.clock
    if clock.seconds is None:
        return window
    expected_s = COSTS_MORE * plain.spent_s
    part = min(1.0, PLANNED * max(clock.seconds - clock.spent_s, 0.0) / expected_s)
    length_s = max(part * window.length_s, min(window.warmup_s, window.length_s))
    return dataclasses.replace(window, end_s=window.warmup_s + length_s)


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
    """Run one replication and give its counts, the same as inside a simulation of many."""
    require_only(system, HANDLED, "simulation")
    window = Window(warmup_s=warmup_s, end_s=warmup_s + duration_s)
    return next(replications(compile_steady(system), window, seed, [replication]))


def replications(
    compiled: CompiledSystem,
    window: Window,
    seed: int,
    numbers: Iterable[int],
    spend: Callable[[float], None] = lambda _: None,
    splitting: Splitting | None = None,
) -> Iterator[Counts]:
    """Yield replications in order, run side by side: compiled code does not hold the interpreter.

    ``spend`` is told the CPU seconds of each. With ``splitting`` misses are counted by weight.
    """
    units = find_units(compiled)

    def replication(number: int) -> Counts:
        start_s = time.thread_time()
        if splitting is not None:
            world = run_with_trials(compiled, window, splitting, seed, number)
        else:
            world = make_world(compiled, window, seed, number)
            run_world(world, compiled, window)
        counts = count_world(world, compiled, units)
        spend(time.thread_time() - start_s)
        return counts

    return side_by_side(replication, numbers)


def refuse_overload(compiled: CompiledSystem) -> None:
    """Raise UnstableError where a broker or peer is offered all it can do, or more.

    Where events are dropped, or not made while their publisher is blocked, the load cannot be known
    beforehand; then the limit on copies tells.
    """
    stations = compiled.tables["stations"]
    if compiled.drops_events or compiled.senders.pausing:
        return
    _refuse_overloaded_wires(compiled)
    if len(stations) == 0:
        return
    _refuse_overloaded_groups(compiled)
    carried = compiled.carried
    brokers = np.asarray(stations["place"])
    over = np.flatnonzero(carried.loads >= FULL_LOAD)
    if not over.size:
        _refuse_overloaded_peers(compiled)
        return
    worst = over[np.argsort(-carried.loads[over], kind="stable")]
    said: dict[int, str] = {}
    for station in worst:
        broker = int(brokers[station])
        name, rate = compiled.system.brokers[broker].name, float(carried.arrivals[broker])
        said.setdefault(broker, overload(name, float(carried.loads[station]), rate))
    first, *others = said.values()
    more = f"; and {', '.join(others)}" if others else ""
    raise UnstableError(
        f"{first}{more}. The queue would grow without limit: add servers, make it faster, "
        "or send it fewer events; 'tidings predict' shows which subscribers are affected"
    )


def overloaded_groups(system: System) -> dict[str, str]:
    """Find the consumer groups that are offered all they can do, or more, and say so of each.

    Those of which only some partitions are, and the others go on, are not among them.
    """
    return _overloaded_groups(compile_steady(system))


def _overloaded_groups(compiled: CompiledSystem) -> dict[str, str]:
    return {
        group.subscriber.name: overload_of_group(compiled, number)
        for number, group in enumerate(compiled.groups)
        if compiled.group_arrivals[number] >= FULL_LOAD * group.capacity_per_s
        and not given_up(compiled, number)
    }


def _refuse_overloaded_groups(compiled: CompiledSystem) -> None:
    for said in _overloaded_groups(compiled).values():
        raise UnstableError(f"{said}. The queue would grow without limit")


def _refuse_overloaded_wires(compiled: CompiledSystem) -> None:
    loads, rates = compiled.wire_loads
    over = np.flatnonzero(loads >= FULL_LOAD)
    if over.size:
        worst = int(over[np.argmax(loads[over])])
        what, name, _ = compiled.wires.keys[worst]
        said = overload(name, float(loads[worst]), float(rates[worst]), what=what)
        more = f"; and {over.size - 1} more" if over.size > 1 else ""
        raise UnstableError(
            f"{said}{more}. What waits to be sent would grow without limit: give it more "
            "bandwidth, smaller messages or fewer events"
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
            f"{said}{more}. The queue would grow without limit: give it longer connected "
            "times, a shorter service time, fewer events, or a buffer"
        )
