"""What the performance-methodology study can be asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import typer

from studies.settings.places import USUAL_FOLDER, Folder
from tidings.cli import options
from tidings.errors import InvalidInputError

_NOT_REAL, _REAL = ("events", "seeds"), ("factor", "load", "duration_s", "repetitions")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What is run: how precisely and by which seed, or how on real brokers; None: what is usual."""

    precision: float = 0.01
    events: int | None = None
    seeds: int | None = None
    real: bool = False
    factor: float | None = None
    load: float | None = None
    duration_s: float | None = None
    repetitions: int | None = None
    seed: options.Seed = 1
    to: Folder = USUAL_FOLDER

    def __post_init__(self) -> None:
        for name in _NOT_REAL if self.real else _REAL:
            if getattr(self, name) is not None:
                does = "does not go" if self.real else "goes only"
                raise typer.BadParameter(f"--{name.removesuffix('_s')} {does} with --real")
        if not self.precision > 0:
            raise InvalidInputError(f"precision is {self.precision}; wants a number above 0")

    @property
    def plan(self) -> dict[str, Any]:
        """What is run by the three engines, as plain data, with what is usual filled in."""
        return {
            "precision": self.precision,  # half-width of residence times, as a share of them
            "events": self.events or 100_000,  # published in each replication of the simulator
            "replications": self.seeds or 10,
            "seed": self.seed,
        }
