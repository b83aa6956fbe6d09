"""What the mobile-onoff study can be asked for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tidings.cli import options


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What is run: real traces in place of synthetic ones, and how much is simulated."""

    sessions: Path | None = None
    activity: Path | None = None
    runs: int = 20
    cycles: float = 1000.0
    off_kbps: float = 20.0
    seed: options.Seed = 1
    master: options.Master = None
