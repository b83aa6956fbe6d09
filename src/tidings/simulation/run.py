"""The simulation of a system: independent replications, as many as asked for or as are needed."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tidings.errors import InvalidInputError, UnstableError
from tidings.kernels.replications import (
    PILOT_SAMPLES,
    detect_warmup,
    more_replications,
    side_by_side,
)
from tidings.model.features import has_churn, require_only
from tidings.model.loads import FULL_LOAD, overload
from tidings.model.outcome import Outcome
from tidings.model.system import System
from tidings.simulation.network import CompiledSystem, compile_system
from tidings.simulation.provenance import provenance_of
from tidings.simulation.results import outcome_of
from tidings.simulation.tally import Counts, count_world, find_units
from tidings.simulation.totals import Totals
from tidings.simulation.world import (
    MOST_COPIES,
    Window,
    make_world,
    overload_of_peer,
    run_world,
)

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
USUAL_EVENTS = 50_000  # published in each replication when nothing else is asked for
MOST_EVENTS = 1e12  # the same; so many take days
PILOT_EVENTS = 5_000

Progress = Callable[[str], None]
# Whoever runs replications of a system, of a window, a seed and these numbers, and gives their
# counts in order.
Replicate = Callable[[System, Window, int, range], Iterator[Counts]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationOptions:
    """How long and how often to simulate."""

    seed: int = 1
    replications: int = 10  # at least so many; with a precision more, up to max_replications
    duration_s: float | None = None  # measured time of each replication, or ...
    events: int | None = None  # ... events published in it, on average
    warmup_s: float | None = None  # left out before; found by pilot runs if not given
    precision: float | None = None  # wanted half-width (95 %) of every on-time share
    max_replications: int = 1_000
    max_copies: int = MOST_COPIES  # of events in the system at once; above it, it is unstable

    def __post_init__(self) -> None:
        if self.duration_s is not None and self.events is not None:
            raise InvalidInputError("give a duration or a number of events, not both")
        for name in (
            "replications",
            "duration_s",
            "events",
            "precision",
            "max_copies",
            "max_replications",
        ):
            value = getattr(self, name)
            if value is not None and not (value > 0 and math.isfinite(value)):
                raise InvalidInputError(f"{name} is {value}; wants a number above 0")
        if self.warmup_s is not None and not 0 <= self.warmup_s < math.inf:
            raise InvalidInputError(f"warmup_s is {self.warmup_s}; wants 0 or more")

    @property
    def first_replications(self) -> int:
        """How many are run before the precision is looked at; the cap holds for them too."""
        if self.precision is None:
            return self.replications
        return min(self.replications, self.max_replications)


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
    has_churn(system, "simulation")
    tell("contents and routes")
    compiled = compile_system(system)
    refuse_overload(compiled)
    units = find_units(compiled)
    window, notes = find_window(compiled, chosen, tell)
    totals = Totals(compiled, units, window.length_s)
    first = chosen.first_replications

    def run(numbers: range) -> Iterator[Counts]:
        if elsewhere is not None:
            return elsewhere(system, window, chosen.seed, numbers)
        return replications(compiled, window, chosen.seed, numbers)

    for number, counts in enumerate(run(range(first)), start=1):
        totals.add(counts)
        tell(f"replication {number} of {first}")
    notes += _until_precise(totals, run, chosen, tell)
    return outcome_of(totals, provenance_of(totals, window, chosen.seed, notes))


def replicate(
    system: System, *, seed: int, replication: int, warmup_s: float, duration_s: float
) -> Counts:
    """The counts of one replication, the same as inside a simulation of many."""
    require_only(system, HANDLED, "simulation")
    window = Window(warmup_s=warmup_s, end_s=warmup_s + duration_s)
    return next(replications(compile_system(system), window, seed, [replication]))


def replications(
    compiled: CompiledSystem, window: Window, seed: int, numbers: Iterable[int]
) -> Iterator[Counts]:
    """Replications in order, run side by side: compiled code does not hold the interpreter."""
    units = find_units(compiled)

    def replication(number: int) -> Counts:
        world = make_world(compiled, window, seed, number)
        run_world(world, compiled, window)
        return count_world(world, compiled, units)

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


# ---- how long ----------------------------------------------------------------------------------


def find_window(
    compiled: CompiledSystem, options: SimulationOptions, tell: Progress
) -> tuple[Window, list[str]]:
    """Which part of a replication is measured, and what to know about it."""
    rate = float(compiled.publisher_rates.sum())
    length_s = options.duration_s or (options.events or USUAL_EVENTS) / rate
    _refuse_endless(rate, length_s + (options.warmup_s or 0.0))
    warmup_s = options.warmup_s
    notes: list[str] = []
    if compiled.day_s:
        length_s, notes = _whole_days(compiled, options, length_s)
    if warmup_s is None:
        warmup_s = compiled.day_s  # the day before
        if compiled.has_queues and not compiled.day_s:
            tell("pilot runs for the warm-up")
            warmup_s, notes = detect_warmup(_pilot(compiled, options), PILOT_EVENTS / rate)
        warmup_s = max(warmup_s, compiled.settling_s)
    window = Window(warmup_s=warmup_s, end_s=warmup_s + length_s, max_copies=options.max_copies)
    return window, notes


def _refuse_endless(rate_per_s: float, length_s: float) -> None:
    events = rate_per_s * length_s
    if events > MOST_EVENTS:
        raise InvalidInputError(
            f"each replication would last {length_s:.3g} s and publish {events:.3g} events; wants "
            f"at most {MOST_EVENTS:.0e}: give a shorter duration, or fewer events"
        )


def _whole_days(
    compiled: CompiledSystem, options: SimulationOptions, length_s: float
) -> tuple[float, list[str]]:
    """How long to measure where rates change: from the start of a day, whole days if not told."""
    day_s = compiled.day_s
    if options.duration_s is None:
        again = any(each.rates and each.rates.repeat for each in compiled.system.publishers)
        return day_s * (max(1, math.ceil(length_s / day_s - 1e-9)) if again else 1), []
    days = length_s / day_s
    if abs(days - round(days)) < 1e-9 * days:
        return length_s, []
    return length_s, [
        f"measured were {days:.4g} days of the rates by time of day, from the start of a day; "
        "shares are of that time"
    ]


def _pilot(
    compiled: CompiledSystem, options: SimulationOptions
) -> Callable[[int, float], ArrayLike]:
    """Runs that note how many copies there are at regular moments."""

    def pilot(number: int, length_s: float) -> ArrayLike:
        window = Window(
            warmup_s=0.0, end_s=length_s, samples=PILOT_SAMPLES, max_copies=options.max_copies
        )
        world = make_world(compiled, window, options.seed, number)
        run_world(world, compiled, window)
        found: ArrayLike = world.tables["samples"].value
        return found

    return pilot


def _until_precise(
    totals: Totals,
    run: Callable[[range], Iterator[Counts]],
    options: SimulationOptions,
    tell: Progress,
) -> list[str]:
    """Add replications until every on-time share is known well enough, or there are too many."""
    wanted = options.precision
    if wanted is None:
        return []
    while True:
        reached = totals.on_time.half_width()
        if math.isnan(reached) and totals.replications > 1:
            return ["nobody wants anything that is published, so no share can be known"]
        room = options.max_replications - totals.replications
        if reached <= wanted:
            return []
        if room <= 0:
            return [
                f"the half-width wanted of every on-time share is {wanted:g}; after "
                f"{totals.replications} replications, the most allowed, it is {reached:.2g}"
            ]
        done = totals.replications
        count = more_replications(done, reached, wanted, options.max_replications)
        tell(f"±{reached:.2g} after {done} replications, {count} more")
        for counts in run(range(done, done + count)):
            totals.add(counts)
