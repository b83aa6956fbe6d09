"""The experiments of the fault-tolerance paper: every scheme, on cheap and on dear machines.

Random systems are simulated and predicted under every recovery scheme; every subscriber is a point.
A run is simulated as the paper did it, or, with ``noise``, for as long as it takes until chance
alone accounts for no more than that of the mean absolute error: failures are rare, so it is
components' cycles that must be many, not events.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd

from studies.fault_tolerance.random_systems import (
    DURATION_S,
    EVERY_S,
    MACHINES,
    RUNS,
    TOPOLOGIES,
    random_system,
)
from studies.points_errors import MEAN_SIZE, errors, points_of
from tidings.errors import InvalidInputError
from tidings.model.outcome import Outcome
from tidings.model.outcome_files import plain
from tidings.model.system import System
from tidings.prediction.predict import predict
from tidings.simulation.run import simulate

SCHEMES = ("periodic", "buffering", "bypass", "bypass-buffering")
# In a tree there is nothing to bypass.
STATIC = ("periodic", "buffering")
NOISE = {"low-end": 0.002, "high-end": 0.0003}  # a third of the error that is worth knowing
MOST_RUNS = 4_000
_AMPLE = 1.2  # times as many runs as should do, for the noise is an estimate itself

RUN = ("topology", "machines", "scheme")
POINT_COLUMNS = (
    "seed",
    *RUN,
    "model",
    "subscriber",
    "broker",
    "events",  # that the simulated share was counted over
    "predicted",
    "actual",
    "actual_se",
)

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is run: how many systems, how long or how precisely."""

    systems: int = 2
    replications: int = RUNS
    duration_s: float = DURATION_S
    every_s: float = EVERY_S
    precise: bool = False  # simulate until the noise is as in NOISE
    topologies: tuple[str, ...] = TOPOLOGIES
    machines: tuple[str, ...] = tuple(MACHINES)
    seed: int = 1  # of the first system; the others follow

    def __post_init__(self) -> None:
        for name in ("systems", "replications", "duration_s", "every_s"):
            if not getattr(self, name) > 0:
                raise InvalidInputError(f"{name} is {getattr(self, name)}; wants a number above 0")

    @property
    def runs(self) -> list[tuple[int, str, str, str]]:
        """(seed, topology, machines, scheme) of every run."""
        return [
            (seed, topology, machines, scheme)
            for topology in self.topologies
            for machines in self.machines
            for scheme in (STATIC if topology == "tree" else SCHEMES)
            for seed in range(self.seed, self.seed + self.systems)
        ]

    def to_document(self) -> dict[str, Any]:
        """The plan as plain data for JSON."""
        return dict(plain({name: getattr(self, name) for name in self.__slots__}))


@dataclass(frozen=True, kw_only=True)
class Results:
    """What came out: every point, and the errors over groups of them."""

    plan: Plan
    points: pd.DataFrame

    @cached_property
    def by_run(self) -> pd.DataFrame:
        """Errors for each topology, kind of machines, scheme and model."""
        found = errors(self.points, (*RUN, "model"))
        means = self.points.groupby([*RUN, "model"], sort=False)[["predicted", "actual"]].mean()
        means["actual_se"] = mean_se(self.points)
        return found.merge(means.reset_index(), on=[*RUN, "model"])


def mean_se(points: pd.DataFrame) -> pd.Series:
    """At most so large is the standard error of the mean simulated share of each run and model.

    As if the subscribers of a system, who share brokers, were all off together; systems are
    independent of each other, and their means weigh as much as they have subscribers.
    """
    together = points.groupby([*RUN, "model", "seed"], sort=False)["actual_se"].sum()
    levels = [*RUN, "model"]
    off = together.pow(2).groupby(level=levels, sort=False).sum().pow(0.5)
    return off / points.groupby(levels, sort=False).size()


def reproduce(plan: Plan, *, progress: Progress = lambda _: None) -> Results:
    """Run the experiments; ``progress`` is told which run is under way."""
    parts = [pd.DataFrame(columns=list(POINT_COLUMNS))] if not plan.runs else []
    for number, run in enumerate(plan.runs, start=1):
        seed, topology, machines, scheme = run
        progress(f"run {number} of {len(plan.runs)}: {topology}, {machines}, {scheme}")
        found = pd.concat(list(_points(plan, *run)), ignore_index=True)
        labels = {"seed": seed, "topology": topology, "machines": machines, "scheme": scheme}
        parts.append(found.assign(**labels))
    points = pd.concat(parts, ignore_index=True)[list(POINT_COLUMNS)]
    return Results(plan=plan, points=points)


def _points(
    plan: Plan, seed: int, topology: str, machines: str, scheme: str
) -> Iterator[pd.DataFrame]:
    system = random_system(
        seed, topology=topology, machines=machines, scheme=scheme, every_s=plan.every_s
    )
    actual = _simulated(plan, system, seed, NOISE[machines] if plan.precise else math.inf)
    yield points_of(predict(system, delays=False, by="theory"), actual).assign(model="exact")
    if scheme.startswith("bypass"):
        paper = predict(system, delays=False, faults="paper", by="theory")
        yield points_of(paper, actual).assign(model="paper")


def _simulated(plan: Plan, system: System, seed: int, noise: float) -> Outcome:
    """The system simulated as planned, and again for longer where that was too noisy.

    Noise falls with the square root of the number of runs.
    """

    def run(replications: int) -> Outcome:
        return simulate(
            system,
            seed=seed,
            replications=replications,
            duration_s=plan.duration_s,
            warmup_s=0.0,  # every component starts in its stationary state
        )

    replications = plan.replications
    found = run(replications)
    while (level := MEAN_SIZE * float(found.subscribers["on_time_se"].mean())) > noise:
        if replications >= MOST_RUNS:
            break
        wanted = math.ceil(_AMPLE * replications * (level / noise) ** 2)
        replications = min(MOST_RUNS, wanted)
        found = run(replications)
    return found
