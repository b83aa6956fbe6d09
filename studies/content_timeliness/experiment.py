"""The experiments of the content-timeliness paper: six traffic settings, and imprecise contents.

Random systems are simulated and predicted by every queue model; every subscriber of every run is a
point, predicted against actual. In the exponential setting predictions are made from skewed content
laws too, while the simulation follows the true one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import Any

import pandas as pd

from studies.content_timeliness.points import POINT_COLUMNS, by_setting, by_skewness
from studies.content_timeliness.random_systems import (
    INTERVALS,
    MATCHINGS,
    RUNS,
    random_system,
    rate_for_load,
)
from studies.latencies import LinkDelays, wide_area
from studies.points_errors import points_of
from tidings.errors import InvalidInputError
from tidings.model.outcome import Outcome
from tidings.model.outcome_files import plain
from tidings.model.skewness import skewed
from tidings.model.system import System
from tidings.prediction.predict import predict
from tidings.prediction.published import QUEUE_MODELS
from tidings.simulation.run import simulate

LOADS = {"low": 0.3, "high": 0.75}  # utilisation of the busiest broker
SETTINGS = tuple(product(INTERVALS, MATCHINGS))
ALPHAS = (0.5, 0.75, 1.0, 1.5, 2.0)
WARMUP_S = 100.0  # the busiest broker forgets an empty start within some ten seconds

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is run: how many systems, how long, under which loads and settings."""

    systems: int = RUNS
    replications: int = 16  # phases of each system
    duration_s: float = 2_500.0  # of each replication
    loads: tuple[str, ...] = tuple(LOADS)
    settings: tuple[tuple[str, str], ...] = SETTINGS
    alphas: tuple[float, ...] = ALPHAS
    models: tuple[str, ...] = field(default_factory=lambda: tuple(QUEUE_MODELS))
    seed: int = 1  # of the first system; the others follow
    delays: LinkDelays = wide_area

    def __post_init__(self) -> None:
        unknown = [load for load in self.loads if load not in LOADS]
        if unknown:
            raise InvalidInputError(f"there is no load '{unknown[0]}'; wants {', '.join(LOADS)}")
        for name in ("systems", "replications", "duration_s"):
            if not getattr(self, name) > 0:
                raise InvalidInputError(f"{name} is {getattr(self, name)}; wants a number above 0")

    @property
    def runs(self) -> list[tuple[int, str, str, str]]:
        """(seed, load, publishing, matching) of every run."""
        seeds = range(self.seed, self.seed + self.systems)
        return [
            (n, load, *setting) for load in self.loads for setting in self.settings for n in seeds
        ]

    def to_document(self) -> dict[str, Any]:
        """The plan as plain data for JSON."""
        document = {name: getattr(self, name) for name in self.__slots__ if name != "delays"}
        document["loads"] = {load: LOADS[load] for load in self.loads}
        return dict(plain(document))


@dataclass(frozen=True, kw_only=True)
class Results:
    """What came out: every point, and the errors over groups of them."""

    plan: Plan
    points: pd.DataFrame
    notes: tuple[str, ...] = ()

    @cached_property
    def by_setting(self) -> pd.DataFrame:
        """Errors for each load, setting and model."""
        return by_setting(self.points)

    @cached_property
    def by_skewness(self) -> pd.DataFrame:
        """Errors for each load, skewness and model, all exponential."""
        return by_skewness(self.points)


def reproduce(
    plan: Plan, *, notes: tuple[str, ...] = (), progress: Progress = lambda _: None
) -> Results:
    """Run the experiments; ``progress`` is told which run is under way."""
    parts = []
    for number, run in enumerate(plan.runs, start=1):
        progress(f"run {number} of {len(plan.runs)}: {_label(*run)}")
        parts.append(_points_of_run(plan, *run))
    points = pd.concat(parts, ignore_index=True)[list(POINT_COLUMNS)]
    return Results(plan=plan, points=points, notes=notes)


def _label(seed: int, load: str, publishing: str, matching: str) -> str:
    return f"system {seed}, {load} load, {publishing} publishing, {matching} matching"


def _points_of_run(
    plan: Plan, seed: int, load: str, publishing: str, matching: str
) -> pd.DataFrame:
    rate_per_s = rate_for_load(seed, LOADS[load], plan.delays)
    system = random_system(
        seed, publishing=publishing, matching=matching, rate_per_s=rate_per_s, delays=plan.delays
    )
    actual = simulate(
        system,
        seed=seed,
        replications=plan.replications,
        duration_s=plan.duration_s,
        warmup_s=WARMUP_S,
    )
    exponential = publishing == matching == "exponential"
    alphas = tuple(sorted({1.0, *plan.alphas})) if exponential else (1.0,)
    found = pd.concat(list(_predicted(system, actual, plan.models, alphas)), ignore_index=True)
    return found.assign(
        seed=seed,
        load=load,
        utilisation=LOADS[load],
        rate_per_s=rate_per_s,
        publishing=publishing,
        matching=matching,
    )


def _predicted(
    system: System, actual: Outcome, models: tuple[str, ...], alphas: tuple[float, ...]
) -> Iterator[pd.DataFrame]:
    for alpha in alphas:
        known = skewed(system, alpha)
        for model in models:
            outcome = predict(known, model=model, delays=False, by="theory")
            yield points_of(outcome, actual).assign(model=model, alpha=alpha)
