"""What the notification-loss study can be asked for."""

from __future__ import annotations

from dataclasses import dataclass

from tidings.cli import options


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What is run."""

    topologies: int = 5
    couples: int = 250
    publications: int = 1
    seed: options.Seed = 1  # of the first topology; the others follow
