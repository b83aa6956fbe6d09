"""What stands behind a plan: its prediction and its simulation, measured against the targets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tidings.model.outcome import Outcome
from tidings.model.system import System
from tidings.planning.scenarios import foretell
from tidings.planning.targets import Target
from tidings.simulation.run import SimulationOptions, simulate

SURELY = 2.0  # standard errors by which a simulated share may fall short of a target it meets
Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How a system stands to a target by one engine."""

    source: str
    on_time: float  # share of all events
    satisfied: float  # share of subscribers that get their target
    worst: str  # who falls furthest below its target, or comes nearest to it
    margin: float  # of that one: its share less its target
    meets: bool

    def to_document(self) -> dict[str, Any]:
        """The standing as plain data."""
        names = ("source", "on_time", "satisfied", "worst", "margin", "meets")
        return {name: getattr(self, name) for name in names}


def standing(system: System, target: Target, outcome: Outcome) -> Standing:
    """How a system stands to its target; simulated shares are given two standard errors."""
    wanted = target.wanted(system)
    rows = outcome.subscribers
    noise = np.nan_to_num(rows["on_time_se"].to_numpy()) if outcome.source == "simulated" else 0.0
    got = rows["on_time"].to_numpy() + SURELY * noise
    heads = rows["count"].to_numpy()
    asked = ~np.isnan(wanted) & ~np.isnan(got)
    satisfied = 1.0
    if asked.any():
        satisfied = float(heads[asked & (got >= wanted)].sum() / heads[asked].sum())
    margins = np.where(asked, rows["on_time"].to_numpy() - wanted, np.inf)
    least = int(np.argmin(margins))
    return Standing(
        source=outcome.source,
        on_time=outcome.on_time,
        satisfied=satisfied,
        worst=str(rows["subscriber"].iloc[least]) if asked.any() else "",
        margin=float(margins[least]) if asked.any() else float("nan"),
        meets=target.is_met(satisfied),
    )


def foreseen(system: System, target: Target) -> Standing:
    """How a system stands to its target, predicted."""
    return standing(system, target, foretell(system))


def played(
    system: System, target: Target, options: SimulationOptions, progress: Progress
) -> Standing:
    """How a system stands to its target, simulated."""
    return standing(system, target, simulate(system, options, progress=progress))
