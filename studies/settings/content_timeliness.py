"""What the content-timeliness study can be asked for."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from tidings.theory.models import QUEUE_MODELS

INTERVALS = ("exponential", "deterministic", "uniform")
MATCHINGS = ("exponential", "uniform")
LOADS = {"low": 0.3, "high": 0.75}  # utilisation of the busiest broker
SETTINGS = tuple(product(INTERVALS, MATCHINGS))
ALPHAS = (0.5, 0.75, 1.0, 1.5, 2.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What is run: how many systems, how long, under which loads; None: what is usual."""

    systems: int | None = None
    seeds: int | None = None
    duration_s: float | None = None
    load: str | None = None
    latencies: Path | None = None
    where_it_holds: bool = False
    seed: int | None = None
    settings: tuple[tuple[str, str], ...] = SETTINGS
    alphas: tuple[float, ...] = ALPHAS
    models: tuple[str, ...] = tuple(QUEUE_MODELS)

    @property
    def loads(self) -> tuple[str, ...]:
        """The loads that are run."""
        return tuple(LOADS) if self.load in (None, "both") else (str(self.load),)

    @property
    def plan(self) -> dict[str, Any]:
        """What is run, as plain data, with what is usual filled in."""
        return {
            "systems": self.systems or 5,
            "replications": self.seeds or 16,  # phases of each system
            "duration_s": self.duration_s or 2_500.0,
            "loads": {load: LOADS[load] for load in self.loads},
            "settings": self.settings,
            "alphas": self.alphas,
            "models": self.models,
            "seed": 1 if self.seed is None else self.seed,  # of the first system
        }

    @property
    def runs(self) -> list[tuple[int, str, str, str]]:
        """(seed, load, publishing, matching) of every run."""
        first, systems = self.plan["seed"], self.plan["systems"]
        seeds = range(first, first + systems)
        return [
            (n, load, *setting) for load in self.loads for setting in self.settings for n in seeds
        ]
