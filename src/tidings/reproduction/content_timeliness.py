"""The experiments of the content-timeliness paper: six traffic settings, and imprecise contents.

Random systems are simulated and predicted by every queue model; every subscriber of every run is a
point, predicted against actual. In the exponential setting predictions are made from skewed content
laws too, while the simulation follows the true one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd

from tidings.errors import InvalidInputError
from tidings.model.outcome import Outcome
from tidings.model.outcome_files import plain
from tidings.model.system import System
from tidings.model.writing import write_file
from tidings.prediction.predicting import predict
from tidings.prediction.queue_models import QUEUE_MODELS
from tidings.reproduction.accuracy import POINT_COLUMNS, by_setting, by_skewness, points_of
from tidings.reproduction.claims import Finding, findings
from tidings.reproduction.latencies import LinkDelays, wide_area
from tidings.reproduction.random_systems import (
    CHOICES,
    INTERVALS,
    MATCHINGS,
    PAPER,
    RUNS,
    random_system,
    rate_for_load,
)
from tidings.reproduction.skewness import skewed
from tidings.simulation.run import simulate

TITLE = "Content-based timeliness: the paper's experiments, run again"
LOADS = {"low": 0.3, "high": 0.75}  # utilisation of the busiest broker
SETTINGS = tuple(product(INTERVALS, MATCHINGS))
ALPHAS = (0.5, 0.75, 1.0, 1.5, 2.0)
WARMUP_S = 100.0  # the busiest broker forgets an empty start within some ten seconds
MARKER = "reproduction.json"  # a folder with this file is ours to write to

PHASES = (
    "A run is simulated several times, with other phases of its publishers, and its shares are "
    "taken over all of them: publishers of equal period keep their phases for ever, and one phase "
    "alone says little of a model. With --seeds 1 --duration 10000s it is one run, as in the paper."
)

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
class Study:
    """What came out: every point, and what follows from them."""

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

    @cached_property
    def findings(self) -> list[Finding]:
        """The paper's claims, and what these runs say to them."""
        return findings(self.points, self.by_setting, self.by_skewness)

    def to_document(self) -> dict[str, Any]:
        """The study as plain data for JSON; the points are in a table of their own."""
        document = {
            "paper": "content-timeliness",
            "paper_settings": PAPER,
            "choices": [*CHOICES, PHASES],
            "notes": list(self.notes),
            "plan": self.plan.to_document(),
            "models": {name: QUEUE_MODELS[name].assumes for name in self.plan.models},
            "by_setting": self.by_setting.to_dict("records"),
            "by_skewness": self.by_skewness.to_dict("records"),
            "claims": [asdict(each) for each in self.findings],
        }
        return dict(plain(document))


def reproduce(
    plan: Plan, *, notes: tuple[str, ...] = (), progress: Progress = lambda _: None
) -> Study:
    """Run the experiments; ``progress`` is told which run is under way."""
    parts = []
    for number, run in enumerate(plan.runs, start=1):
        progress(f"run {number} of {len(plan.runs)}: {_label(*run)}")
        parts.append(_points_of_run(plan, *run))
    points = pd.concat(parts, ignore_index=True)[list(POINT_COLUMNS)]
    return Study(plan=plan, points=points, notes=notes)


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
            outcome = predict(known, model=model, delays=False)
            yield points_of(outcome, actual).assign(model=model, alpha=alpha)


def check_folder(folder: Path) -> None:
    """Refuse a folder that holds something else."""
    if folder.exists() and not (folder / MARKER).exists() and any(folder.iterdir()):
        raise InvalidInputError(f"{folder} exists and is not of ours; choose another with --to")


def save(study: Study, folder: Path) -> None:
    """Write the points and errors as CSV and the whole study as JSON."""
    check_folder(folder)
    text = json.dumps(study.to_document(), indent=1, ensure_ascii=False, allow_nan=False)
    write_file(folder / MARKER, text.encode())
    tables = {
        "points.csv": study.points,
        "by_setting.csv": study.by_setting,
        "by_skewness.csv": study.by_skewness,
    }
    for name, table in tables.items():
        write_file(folder / name, table.to_csv(index=False).encode())
