"""The simulation of a net: independent replications, warm-up found, as many as are needed."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from tidings.errors import InvalidInputError
from tidings.kernels.ratios import Ratio
from tidings.kernels.replications import (
    PILOT_SAMPLES,
    detect_warmup,
    more_replications,
    side_by_side,
)
from tidings.model import delay_grid
from tidings.model.delay_grid import Histogram
from tidings.petri.net import Net
from tidings.petri.outcome import QUANTILES, NetOutcome
from tidings.petri.reading import checked
from tidings.petri.traffic import refuse_overload, solve_traffic
from tidings.petri.world import CompiledNet, Window, compile_net, make_world, run_world

Floats = NDArray[np.float64]
Progress = Callable[[str], None]

USUAL_FIRINGS = 200_000  # in each replication, about, when nothing else is asked for
PILOT_FIRINGS = 10_000
TRIAL_FIRINGS = 2_000
MOST_CURVES = 2_000  # places and colours whose quantiles are kept: 30 kB each, for every run


@dataclass(frozen=True, slots=True, kw_only=True)
class NetOptions:
    """How long and how often to simulate a net."""

    seed: int = 1
    replications: int = 10  # at least so many; with a precision more, up to max_replications
    duration_s: float | None = None  # measured time of each replication
    warmup_s: float | None = None  # left out before; found by pilot runs if not given
    precision: float | None = None  # wanted half-width (95 %) of mean residence times, as a share
    max_replications: int = 1_000
    max_tokens: int = 1_000_000  # in the net at once; above it, a population keeps growing
    quantiles: bool = True

    def __post_init__(self) -> None:
        for name in ("replications", "duration_s", "precision", "max_replications", "max_tokens"):
            value = getattr(self, name)
            if value is not None and not (value > 0 and math.isfinite(value)):
                raise InvalidInputError(f"{name} is {value}; wants a number above 0")
        if self.warmup_s is not None and not 0 <= self.warmup_s < math.inf:
            raise InvalidInputError(f"warmup_s is {self.warmup_s}; wants 0 or more")


@dataclass(frozen=True, slots=True, kw_only=True)
class NetCounts:
    """What one replication counted in its window; arrays over cells, then over queues."""

    length_s: float
    arrivals: Floats
    departures: Floats
    residence_s: Floats
    aged: Floats  # departures of tokens that have an age
    age_s: Floats
    population_s: Floats  # token seconds
    busy_s: Floats  # server seconds, of queues
    residence_bins: Any
    age_bins: Any
    fired: Floats  # of modes


def simulate_net(
    net: Net,
    options: NetOptions | None = None,
    *,
    progress: Progress | None = None,
    **changes: Any,
) -> NetOutcome:
    """Throughput, population, residence and age of tokens at every place, by simulation.

    Options are those of :class:`NetOptions`, also by name. Standard errors are over replications,
    which are independent; each can be repeated alone (:func:`replicate_net`).
    """
    chosen = dataclasses.replace(options or NetOptions(), **changes)
    tell = progress or (lambda _: None)
    compiled = compile_net(checked(net))
    refuse_overload(solve_traffic(compiled.cells))
    notes: list[str] = []
    if chosen.quantiles and len(compiled.cells.all) > MOST_CURVES:
        chosen = dataclasses.replace(chosen, quantiles=False)
        notes.append(f"no quantiles: there are more than {MOST_CURVES:,} places and colours")
    tell("pilot runs for the warm-up")
    pace_s = _seconds_per_firing(compiled, chosen)
    warmup_s = chosen.warmup_s
    if warmup_s is None:
        warmup_s, said = detect_warmup(_pilot(compiled, chosen), PILOT_FIRINGS * pace_s)
        notes += said
    length_s = chosen.duration_s or USUAL_FIRINGS * pace_s
    totals = NetTotals(compiled, quantiles=chosen.quantiles)

    def add(first: int, count: int) -> Iterator[int]:
        numbers = range(first, first + count)
        for counts in side_by_side(
            lambda number: _replication(compiled, chosen, warmup_s, length_s, number), numbers
        ):
            totals.add(counts)
            yield totals.replications

    for done in add(0, chosen.replications):
        tell(f"replication {done} of {chosen.replications}")
    notes += _until_precise(totals, add, chosen, tell)
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
    """The counts of one replication, the same as inside a simulation of many."""
    options = NetOptions(seed=seed)
    return _replication(compile_net(checked(net)), options, warmup_s, duration_s, replication)


def _replication(
    compiled: CompiledNet, options: NetOptions, warmup_s: float, length_s: float, number: int
) -> NetCounts:
    """Run to the end of the warm-up, forget what was counted, run on, and count."""
    window = Window(end_s=warmup_s, curves=options.quantiles, max_tokens=options.max_tokens)
    world = make_world(compiled, window, options.seed, number)
    run_world(world, compiled, window)
    start_s = float(world.record[0].now)
    present_before = _ages(world, compiled, start_s)
    _bring_up_to_date(world, start_s)
    _forget(world)
    world.record[0].end = warmup_s + length_s
    run_world(world, compiled, window)
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
    )


def _ages(world: Any, compiled: CompiledNet, now_s: float) -> Floats:
    """How long the tokens of each cell have been at their place, added up, in seconds."""
    tokens = world.tables["tokens"]
    there = tokens[tokens.cell >= 0]
    count = len(compiled.cells.all)
    weights = np.asarray(now_s - there.entered, dtype=np.float64)
    found: Floats = np.zeros(count)
    np.add.at(found, there.cell, weights)
    return found


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
    """How much time passes between two firings, in seconds; from trials that double in length."""
    length_s = _shortest_time_s(compiled)
    while True:
        window = Window(end_s=length_s, curves=False, max_tokens=options.max_tokens)
        world = make_world(compiled, window, options.seed, -1000)
        run_world(world, compiled, window)
        fired = int(world.tables["modes"].fired.sum())
        if fired >= TRIAL_FIRINGS:
            return length_s / fired
        if length_s > 1e15:
            raise InvalidInputError(
                f"transitions fired {fired} times in {length_s:.3g} simulated seconds: this net "
                "comes to a standstill. Give it sources, or tokens that go round"
            )
        length_s *= 4.0


def _shortest_time_s(compiled: CompiledNet) -> float:
    """The least mean of all laws above 0, in seconds; from there on trials grow."""
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


def _pilot(compiled: CompiledNet, options: NetOptions) -> Callable[[int, float], ArrayLike]:
    """Runs that note how many tokens there are at regular moments."""

    def pilot(number: int, length_s: float) -> ArrayLike:
        window = Window(
            end_s=length_s,
            samples=PILOT_SAMPLES,
            curves=False,
            max_tokens=options.max_tokens,
        )
        world = make_world(compiled, window, options.seed, number)
        run_world(world, compiled, window)
        found: ArrayLike = world.tables["samples"].value
        return found

    return pilot


def _until_precise(
    totals: NetTotals,
    add: Callable[[int, int], Iterator[int]],
    options: NetOptions,
    tell: Progress,
) -> list[str]:
    """Add replications until mean residence times are known well enough, or there are too many."""
    wanted = options.precision
    while wanted is not None:
        reached, done = totals.relative_half_width(), totals.replications
        if reached <= wanted:
            break
        if done >= options.max_replications:
            return [
                f"the half-width wanted of mean residence times is {wanted:g} of them; after "
                f"{done} replications, the most allowed, it is {reached:.2g}"
            ]
        more = more_replications(done, reached, wanted, options.max_replications)
        tell(f"±{reached:.2g} after {done} replications, {more} more")
        for _ in add(done, more):
            pass
    return []


# ---- what comes of it --------------------------------------------------------------------------


class NetTotals:
    """Counts of many replications added up, with standard errors over the replications."""

    def __init__(self, compiled: CompiledNet, *, quantiles: bool) -> None:
        cells, queues = len(compiled.cells.all), len(compiled.queue_names)
        self.compiled, self.replications = compiled, 0
        self.throughput, self.population = Ratio(cells), Ratio(cells)
        self.residence, self.age = Ratio(cells), Ratio(cells)
        self.utilisation = Ratio(queues)
        self.fired = np.zeros(len(compiled.cells.modes))
        shape = (cells, delay_grid.BINS) if quantiles else (0, 0)
        self._bins = {name: _empty_bins(shape) for name in ("residence", "age")}

    def add(self, counts: NetCounts) -> None:
        """One replication more."""
        self.replications += 1
        cells = np.ones(len(self.compiled.cells.all))
        self.throughput.add(counts.departures, counts.length_s * cells)
        self.population.add(counts.population_s, counts.length_s * cells)
        self.residence.add(counts.residence_s, counts.departures)
        self.age.add(counts.age_s, counts.aged)
        servers = np.array([max(1, each) for each in self._servers()], dtype=np.float64)
        self.utilisation.add(counts.busy_s, counts.length_s * servers)
        self.fired += counts.fired
        for name, bins in (("residence", counts.residence_bins), ("age", counts.age_bins)):
            value, lowest, highest = self._bins[name]
            if value.size:
                table = bins.reshape(value.shape)
                some = table["value"] > 0
                value += table["value"]
                np.minimum(lowest, np.where(some, table["lowest"], np.inf), out=lowest)
                np.maximum(highest, np.where(some, table["highest"], 0.0), out=highest)

    def _servers(self) -> Iterator[int]:
        places = self.compiled.cells.places
        for name in self.compiled.queue_names:
            queue = places[name].queue
            assert queue is not None
            yield 1 if queue.discipline == "infinite-server" else queue.servers

    def relative_half_width(self) -> float:
        """Half the widest confidence interval of mean residence times, as a share of them.

        Of cells that matter: those where tokens stay at all, and not next to never come.
        """
        seen = self.residence.w > 0.01 * self.residence.w.max(initial=0.0)
        seen &= self.residence.x > 0.0
        return self.residence.relative_half_width(seen)

    def outcome(self, provenance: dict[str, Any]) -> NetOutcome:
        """Everything as tables."""
        cells = self.compiled.cells
        table = pd.DataFrame(
            {
                "place": [cell[0] for cell in cells.all],
                "colour": [cell[1] for cell in cells.all],
                **_columns("throughput", self.throughput, "_per_s"),
                **_columns("population", self.population, ""),
                **_columns("residence_mean", self.residence, "_s"),
                **self._quantiles("residence"),
                **_columns("age_mean", self.age, "_s"),
                **self._quantiles("age"),
            }
        )
        busy = self.utilisation
        names = self.compiled.queue_names
        here = table.groupby("place", sort=False)[["throughput_per_s", "population"]].sum()
        places = pd.DataFrame(
            {
                "place": names,
                "servers": list(self._servers()),
                "discipline": [_discipline(cells, name) for name in names],
                "throughput_per_s": [_of(here, name, "throughput_per_s") for name in names],
                "population": [_of(here, name, "population") for name in names],
                # Of an infinite server: how many are busy, on average.
                "utilisation": busy.value,
                "utilisation_se": busy.standard_error,
            }
        )
        return NetOutcome(cells=table, places=places, provenance=provenance)

    def _quantiles(self, name: str) -> dict[str, list[float]]:
        value, lowest, highest = self._bins[name]
        if not value.size:
            return {}
        found = [
            Histogram(counts=counts, lowest_s=low, highest_s=high).quantiles(list(QUANTILES))
            for counts, low, high in zip(value, lowest, highest, strict=True)
        ]
        return {
            f"{name}_p{round(100 * share)}_s": [each[at] for each in found]
            for at, share in enumerate(QUANTILES)
        }


def _empty_bins(shape: tuple[int, int]) -> tuple[Floats, Floats, Floats]:
    return np.zeros(shape), np.full(shape, np.inf), np.zeros(shape)


def _columns(name: str, ratio: Ratio, unit: str) -> dict[str, Floats]:
    return {f"{name}{unit}": ratio.value, f"{name}_se{unit}": ratio.standard_error}


def _discipline(cells: Any, name: str) -> str:
    return str(cells.places[name].queue.discipline)


def _of(table: pd.DataFrame, name: str, column: str) -> float:
    return float(table[column].get(name, 0.0))
