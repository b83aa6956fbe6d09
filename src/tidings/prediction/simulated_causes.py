"""What causes cost where theory has no answer: the system is simulated again without each of them.

All runs have the same random numbers, so that little but the cause differs between them. Those that
are likelier to matter come first; when the seconds are over, the rest is not asked.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from tidings.errors import TidingsError
from tidings.model.arrays import Floats
from tidings.model.causes import ALL_PUBLISHERS, LEAST, MOST_OF_ONE, Cause, in_order
from tidings.model.outcome import Outcome, table
from tidings.model.progress import Progress
from tidings.model.record_tables import column, names
from tidings.model.system import System
from tidings.prediction.suspects import Suspect, all_suspects, beyond_theory, has_failures
from tidings.simulation.options import SimulationOptions
from tidings.simulation.run import simulate

SECONDS = 10.0  # CPU seconds of all runs together
_EVENTS, _RUNS = 4_000, 5  # of each system
_SURE = 1.0  # standard errors of two runs that know nothing of each other
_FAILING_SECONDS = 2.0  # CPU seconds of a run with failures
_MOSTLY = 0.8  # of what bursts cost together


@dataclass(frozen=True, slots=True, kw_only=True)
class Playing:
    """How systems are played: CPU seconds of all runs together, and what to leave out of each.

    Without ``warmup_s``, pilot runs say what to leave out.
    """

    seed: int
    seconds: float = SECONDS
    warmup_s: float | None = None
    progress: Progress = lambda _: None


def simulated_causes(system: System, how: Playing) -> pd.DataFrame:
    """Make the table of causes: what each costs each subscriber, the dearest first."""
    return _asked(system, how, lambda before: all_suspects(system, before))


def causes_beyond_theory(system: System, how: Playing) -> pd.DataFrame:
    """Make the table of those causes that theory has no answer for: bursts, groups, outages."""
    return _asked(system, how, lambda before: beyond_theory(system, before))


def _asked(
    system: System, how: Playing, suspects: Callable[[Outcome], Iterator[Suspect]]
) -> pd.DataFrame:
    how.progress("causes")
    before = _played(system, how)
    begin_s = time.process_time()  # the first run may have had to compile what it runs
    everybody = names(system.subscribers)
    costs: list[dict[Cause, float]] = [{} for _ in everybody]
    every = list(suspects(before))
    for number, suspect in enumerate(every, start=1):
        how.progress(f"without {suspect.cause.words}, {number} of at most {len(every)} causes")
        if time.process_time() - begin_s > how.seconds:
            break
        try:
            after = _played(suspect.system, how, before)
        except TidingsError:
            continue
        least = np.maximum(_noise(before, after), LEAST)
        for place, (cause, cost) in enumerate(_gains(suspect, before, after)):
            if cost > least[place]:
                costs[place][cause] = cost
    rows = [
        {"subscriber": name, "cause": cause.kind, "place": cause.place, "cost": cost}
        for name, own in zip(everybody, costs, strict=True)
        for cause, cost in in_order(_told_apart(own))[:MOST_OF_ONE]
    ]
    return table("causes", rows)


def _told_apart(costs: dict[Cause, float]) -> dict[Cause, float]:
    """Leave out bursts of all publishers together where one of them makes most of it."""
    together = Cause("bursts", ALL_PUBLISHERS)
    most = max((cost for cause, cost in costs.items()
                if cause.kind == "bursts" and cause != together), default=0.0)  # fmt: skip
    if most >= _MOSTLY * costs.get(together, 0.0):
        return {cause: cost for cause, cost in costs.items() if cause != together}
    return costs


def _played(system: System, how: Playing, as_in: Outcome | None = None) -> Outcome:
    """Simulate for a short while; for as long as another run."""
    options = SimulationOptions(
        seed=how.seed, replications=_RUNS, events=_EVENTS, warmup_s=how.warmup_s
    )
    if has_failures(system):
        # Long enough for some failures to come, as far as the seconds allow.
        options = replace(options, events=None, seconds=_FAILING_SECONDS)
    if as_in is not None:
        times = {name: as_in.provenance[name] for name in ("duration_s", "warmup_s")}
        options = replace(options, events=None, seconds=None, **times)
    return simulate(system, options)


def _gains(suspect: Suspect, before: Outcome, after: Outcome) -> Iterator[tuple[Cause, float]]:
    """Yield each subscriber's gain, under the name of what is gained most of."""
    old, new = before.subscribers, after.subscribers
    if suspect.cause.kind == "deadline":
        own = column(suspect.system.subscribers, "lifetime").where(lambda each: each is not None)
        named = {int(place) for place in own}
        for place, late in enumerate(new["late"].fillna(0.0)):
            name = str(new["subscriber"].iloc[place]) if place in named else ""
            yield Cause("deadline", name), float(late)
        return
    gained = (new["on_time"] - old["on_time"]).fillna(0.0)
    for place, gain in enumerate(gained):
        cause = suspect.cause
        if suspect.when_lost is not None:
            lost, other = suspect.when_lost
            if old[lost].iloc[place] - new[lost].iloc[place] > 0.5 * gain:
                cause = other
        yield cause, float(gain)


def _noise(before: Outcome, after: Outcome) -> Floats:
    """Compute what a gain must exceed, [subscriber]; less is chance."""
    squares = before.subscribers["on_time_se"] ** 2 + after.subscribers["on_time_se"] ** 2
    # Runs with the same random numbers differ by less than two that know nothing of each other.
    noise: Floats = _SURE * np.sqrt(squares.fillna(0.0).to_numpy())
    return noise
