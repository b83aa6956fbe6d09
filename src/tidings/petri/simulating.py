"""The simulation of a net: independent replications, warm-up found, as many as are needed."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tidings.errors import InvalidInputError
from tidings.kernels.replications import (
    PILOT_SAMPLES,
    Clock,
    Series,
    detect_warmup,
    side_by_side,
)
from tidings.model.arrays import Bools, Floats
from tidings.model.progress import Progress
from tidings.petri.compiling import CompiledNet, compile_net
from tidings.petri.growth import LEGS, Growth, may_grow
from tidings.petri.net import Net
from tidings.petri.options import NetOptions
from tidings.petri.outcome import NetOutcome
from tidings.petri.reading import checked
from tidings.petri.settling import RUN_TIMES, WARMUP_TIMES, slowest, unsettled
from tidings.petri.totals import RARE, NetCounts, NetTotals
from tidings.petri.traffic import NetTraffic, refuse_overload, solve_traffic
from tidings.petri.world import NetWindow, make_world, run_world

USUAL_FIRINGS = 200_000  # in each replication, about, when nothing else is asked for
MOST_FIRINGS = 20_000_000  # however slowly a net forgets how it began
PILOT_FIRINGS = 10_000
TRIAL_FIRINGS = 2_000
MOST_CURVES = 2_000  # places and colours whose quantiles are kept: 30 kB each, for every run


def simulate_net(
    net: Net,
    options: NetOptions | None = None,
    *,
    progress: Progress | None = None,
    **changes: Any,
) -> NetOutcome:
    """Simulate throughput, population, residence and age of tokens at every place.

    Options are those of :class:`NetOptions`, also by name. Standard errors are over replications,
    which are independent; each can be repeated alone (:func:`replicate_net`).
    """
    chosen = dataclasses.replace(options or NetOptions(), **changes)
    tell = progress or (lambda _: None)
    compiled = compile_net(checked(net))
    traffic = solve_traffic(compiled.cells)
    refuse_overload(traffic)
    growing = may_grow(compiled.cells, traffic)
    notes: list[str] = []
    if chosen.quantiles and len(compiled.cells.all) > MOST_CURVES:
        chosen = dataclasses.replace(chosen, quantiles=False)
        notes.append(f"no quantiles: there are more than {MOST_CURVES:,} places and colours")
    tell("pilot runs for the warm-up")
    pace_s = _seconds_per_firing(compiled, chosen)
    warmup_s = chosen.warmup_s
    least_s, needed_s, said = _long_enough(compiled, traffic, pace_s)
    if chosen.duration_s is None:
        notes += said
    if warmup_s is None:
        pilots = _Pilots(compiled, chosen, growing)
        warmup_s, remarks = detect_warmup(pilots, PILOT_FIRINGS * pace_s, tell)
        said = [each.sentence() for each in remarks]
        if said:  # it does not settle: slowly, or never
            pilots.refuse_growth()
        notes += said
        warmup_s = max(warmup_s, least_s)
    length_s = chosen.duration_s or needed_s
    totals = NetTotals(compiled, quantiles=chosen.quantiles)
    growth = Growth(compiled, growing)

    clock = Clock(chosen.seconds)

    def run(numbers: range) -> Iterator[NetCounts]:
        for counts in side_by_side(replication, numbers):
            growth.add(counts.present)
            yield counts
        growth.refuse(length_s)

    def replication(number: int) -> NetCounts:
        start_s = time.thread_time()
        counts = _replication(compiled, chosen, warmup_s, length_s, number)
        clock.spend(time.thread_time() - start_s)
        return counts

    series = Series(totals, run, clock, tell)
    series.add(chosen.replications)
    notes += _until_precise(series, totals, chosen)
    notes += unsettled(totals, traffic, length_s)
    return totals.outcome(
        {
            "engine": "queueing Petri net",
            "seed": chosen.seed,
            "replications": totals.replications,
            "warmup_s": warmup_s,
            "duration_s": length_s,
            "firings": int(totals.fired.sum()),
            "notes": notes,
        }
    )


def replicate_net(
    net: Net, *, seed: int, replication: int, warmup_s: float, duration_s: float
) -> NetCounts:
    """Run one replication and give its counts, the same as inside a simulation of many."""
    options = NetOptions(seed=seed)
    return _replication(compile_net(checked(net)), options, warmup_s, duration_s, replication)


def _replication(
    compiled: CompiledNet, options: NetOptions, warmup_s: float, length_s: float, number: int
) -> NetCounts:
    """Run to the end of the warm-up, forget what was counted, run on, and count."""
    window = NetWindow(end_s=warmup_s, curves=options.quantiles, max_tokens=options.max_tokens)
    world = make_world(compiled, window, options.seed, number)
    run_world(world, compiled, window)
    start_s = float(world.record[0].now)
    present_before = _ages(world, compiled, start_s)
    _bring_up_to_date(world, start_s)
    _forget(world)
    present = _in_legs(world, compiled, window, (warmup_s, warmup_s + length_s))
    end_s = float(world.record[0].now)
    _bring_up_to_date(world, end_s)
    cells, tables = world.tables["cells"], world.tables
    return NetCounts(
        length_s=length_s,
        arrivals=cells.arrivals.astype(np.float64),
        departures=cells.departures.astype(np.float64),
        residence_s=cells.residence.copy(),
        aged=cells.aged.astype(np.float64),
        age_s=cells.age.copy(),
        # Of each token the part of its stay that lies in the window.
        population_s=cells.residence - present_before + _ages(world, compiled, end_s),
        busy_s=tables["queues"].busy.copy(),
        residence_bins=tables["residence_bins"],
        age_bins=tables["age_bins"],
        fired=tables["modes"].fired.astype(np.float64),
        present=present,
    )


def _in_legs(
    world: Any, compiled: CompiledNet, window: NetWindow, part_s: tuple[float, float]
) -> Floats:
    """Run on from one moment to another; populations then, and in between: [moment, cell]."""
    populations = [_present(world, compiled)]
    for end_s in np.linspace(*part_s, LEGS + 1)[1:]:
        world.record[0].end = end_s
        run_world(world, compiled, window)
        populations.append(_present(world, compiled))
    return np.array(populations)


def _present(world: Any, compiled: CompiledNet) -> Floats:
    """Count the tokens that each cell holds."""
    owners = world.tables["tokens"].cell
    counts = np.bincount(owners[owners >= 0], minlength=len(compiled.cells.all))
    return counts.astype(np.float64)


def _ages(world: Any, compiled: CompiledNet, now_s: float) -> Floats:
    """Add up how long the tokens of each cell have been at their place, in seconds."""
    tokens = world.tables["tokens"]
    there = tokens[tokens.cell >= 0]
    count = len(compiled.cells.all)
    weights = np.asarray(now_s - there.entered, dtype=np.float64)
    ages_s: Floats = np.zeros(count)
    np.add.at(ages_s, there.cell, weights)
    return ages_s


def _bring_up_to_date(world: Any, now_s: float) -> None:
    """Let queues have worked until a moment at which nothing happens."""
    queues = world.tables["queues"]
    working = np.minimum(queues.active, queues.servers)
    passed = now_s - queues.changed
    queues.busy += passed * working
    queues.work += np.where(queues.active > 0, passed * working / np.maximum(queues.active, 1), 0.0)
    queues.changed = now_s


def _forget(world: Any) -> None:
    """Set back to nothing what was counted so far."""
    for name in ("arrivals", "departures", "residence", "aged", "age"):
        world.tables["cells"][name] = 0
    world.tables["queues"]["busy"] = 0.0
    world.tables["modes"]["fired"] = 0
    for name in ("residence_bins", "age_bins"):
        world.tables[name]["value"] = 0


# ---- how long ----------------------------------------------------------------------------------


def _seconds_per_firing(compiled: CompiledNet, options: NetOptions) -> float:
    """Measure the time between two firings, in seconds; from trials that double in length."""
    length_s = _shortest_time_s(compiled)
    while True:
        window = NetWindow(end_s=length_s, curves=False, max_tokens=options.max_tokens)
        world = make_world(compiled, window, options.seed, -1000)
        run_world(world, compiled, window)
        fired = int(world.tables["modes"].fired.sum())
        if fired >= TRIAL_FIRINGS:
            return length_s / fired
        if length_s > 1e15:
            raise InvalidInputError(
                f"transitions fired {fired} times in {length_s:.3g} simulated seconds: "
                "this net comes to a standstill, so there is nothing to measure. Give it "
                "sources, or tokens that circulate"
            )
        length_s *= 4.0


def _long_enough(
    compiled: CompiledNet, traffic: NetTraffic, pace_s: float
) -> tuple[float, float, list[str]]:
    """Compute the least time to leave out and the time to measure, in seconds.

    Also gives what to say where that is much.
    """
    name, relaxation_s = slowest(compiled.cells, traffic)
    usual_s, most_s = USUAL_FIRINGS * pace_s, MOST_FIRINGS * pace_s
    wanted_s = RUN_TIMES * relaxation_s
    if wanted_s <= usual_s:
        return WARMUP_TIMES * relaxation_s, usual_s, []
    length_s = min(wanted_s, most_s)
    note = (
        f"'{name}' is busy {100 * traffic.loads[name]:.4g} % of the time and takes about "
        f"{relaxation_s:.3g} s to reach steady state: each run measures {length_s:.3g} s"
    )
    if wanted_s > most_s:
        note += (
            f" but needs {wanted_s:.3g} s, so results may be biased; use a longer --duration "
            "and --warmup"
        )
    return min(WARMUP_TIMES * relaxation_s, 0.1 * most_s), length_s, [note]


def _shortest_time_s(compiled: CompiledNet) -> float:
    """Find the least mean above 0 of all distributions, in seconds; from there on trials grow."""
    cells = compiled.cells
    laws = [mode.after for mode in cells.modes]
    for cell in cells.all:
        queue = cells.queue_of(cell)
        laws.append(None if queue is None else queue.law_of(cell[1]))
    means = [law.mean_s for law in laws if law is not None and law.mean_s > 0.0]
    if not means:
        raise InvalidInputError(
            "no time passes in this net; give a place a queue, or a mode a time 'after'"
        )
    return min(means)


class _Pilots:
    """Runs that note how many tokens there are at regular moments, and what grows at the end."""

    def __init__(self, compiled: CompiledNet, options: NetOptions, growing: Bools) -> None:
        self._compiled, self._options, self._growing = compiled, options, growing
        self._latest: dict[int, tuple[float, Floats]] = {}  # by number: length, populations

    def __call__(self, number: int, length_s: float) -> ArrayLike:
        """Run a pilot of a number and a length, in seconds, and give its samples."""
        compiled = self._compiled
        window = NetWindow(
            end_s=length_s,
            samples=PILOT_SAMPLES,
            curves=False,
            max_tokens=self._options.max_tokens,
        )
        world = make_world(compiled, window, self._options.seed, number)
        world.record[0].end = length_s / 2.0
        run_world(world, compiled, window)
        second_half = (length_s / 2.0, length_s)
        self._latest[number] = length_s, _in_legs(world, compiled, window, second_half)
        samples: ArrayLike = world.tables["samples"].value
        return samples

    def refuse_growth(self) -> None:
        """Raise UnstableError where a population still grew in the second half of the longest."""
        growth = Growth(self._compiled, self._growing)
        for _, present in self._latest.values():
            growth.add(present)
        growth.refuse(max(length_s for length_s, _ in self._latest.values()) / 2.0)


def _until_precise(series: Series[NetCounts], totals: NetTotals, options: NetOptions) -> list[str]:
    """Add replications until mean residence times are known well enough, or there are too many."""
    wanted = options.precision
    if wanted is None:
        return []
    if series.until(lambda: totals.relative_half_width() / wanted, options.max_replications):
        return _left_out(totals)
    bound = "seconds" if series.is_out_of_time else "replications"
    reached = totals.relative_half_width()
    return [
        f"mean residence times are less precise than asked: known to {reached:.2g} of "
        f"them (half-width, 95 %), not to {wanted:g}, when the allowed {bound} ran out; "
        "allow more, or accept a larger error",
        *_left_out(totals),
    ]


def _left_out(totals: NetTotals) -> list[str]:
    """Warn where the precision of some mean residence times is not looked at."""
    rare = int(totals.rare().sum())
    if not rare:
        return []
    return [
        f"the precision does not hold for {rare} of {rare + int(totals.frequent().sum())} "
        f"places and colours, which less than {100 * RARE:g} % as many tokens leave as "
        "the busiest; see their own standard errors"
    ]
