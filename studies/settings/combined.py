"""What the study of effects together can be asked for."""

from __future__ import annotations

from dataclasses import dataclass

from tidings.cli import options


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What is run, and how long."""

    scheme: str = "periodic"
    events: int = 60_000
    events_of_all: int = 300_000
    replications: int = 10
    pairs: bool = True
    seed: options.Seed = 1
