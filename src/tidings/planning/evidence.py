"""What stands behind a plan: its prediction and its simulation, measured against the targets.

One rule for all plans says what the two together tell: :func:`verdict`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidings.errors import UnsupportedError
from tidings.model.outcome import Outcome
from tidings.model.system import System
from tidings.planning.scenarios import foretell
from tidings.planning.targets import Floats, Target

SURELY = 2.0  # standard errors within which numbers are not told apart
MEETS, MISSES, OPEN = "meets", "misses", "cannot be told"

Progress = Callable[[str], None]
Play = Callable[[System], Outcome]  # a simulation of a plan


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
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What the engines say of a plan, and what that amounts to."""

    predicted: Standing
    simulated: Standing | None  # None where it was not played
    verdict: str  # MEETS, MISSES or OPEN

    @property
    def meets(self) -> bool:
        """Whether the target is met as far as there is evidence."""
        return self.verdict == MEETS

    def to_document(self) -> dict[str, Any]:
        """The evidence as plain data: the predicted standing, the simulated one, the verdict."""
        simulated = None if self.simulated is None else self.simulated.to_document()
        return {**self.predicted.to_document(), "simulated": simulated, "verdict": self.verdict}


def weigh(system: System, target: Target, play: Play | None = None) -> Evidence:
    """The evidence for a system: predicted, and played if there is a ``play``."""
    return _evidence(system, target, foretell(system), None if play is None else play(system))


def prove(system: System, target: Target, play: Play | None) -> Evidence:
    """The evidence for a candidate, which is played only where the prediction is for it."""
    predicted = foretell(system)
    found = _evidence(system, target, predicted, None)
    if play is None or not found.meets:
        return found
    return _evidence(system, target, predicted, play(system))


def _evidence(
    system: System, target: Target, predicted: Outcome, simulated: Outcome | None
) -> Evidence:
    return Evidence(
        predicted=standing(system, target, predicted),
        simulated=None if simulated is None else standing(system, target, simulated),
        verdict=verdict(system, target, predicted, simulated),
    )


def standing(system: System, target: Target, outcome: Outcome) -> Standing:
    """How a system stands to its target; simulated shares are given two standard errors."""
    rows = outcome.subscribers
    wanted, got = target.wanted(system), rows["on_time"].to_numpy()
    noise = np.nan_to_num(_noise(outcome)) if outcome.source == "simulated" else 0.0
    satisfied = target.satisfied(system, outcome, -noise)
    asked = ~np.isnan(wanted) & ~np.isnan(got)
    margins = np.where(asked, got - wanted, np.inf)
    least = int(np.argmin(margins))
    return Standing(
        source=outcome.source,
        on_time=outcome.on_time,
        satisfied=satisfied,
        worst=str(rows["subscriber"].iloc[least]) if asked.any() else "",
        margin=float(margins[least]) if asked.any() else math.nan,
        meets=target.is_met(satisfied),
    )


def verdict(
    system: System,
    target: Target,
    predicted: Outcome | UnsupportedError,
    simulated: Outcome | None,
) -> str:
    """Whether the target is met, wherever within its error each share may be.

    Where it is known how far a prediction can be off, the simulation must not be sure of the
    contrary; where nobody knows, it must say the same, whatever its noise; where there is no
    prediction, it speaks alone. Without a simulation the prediction is taken at its word.
    """

    def answers(outcome: Outcome, error: float | Floats) -> set[bool]:
        shares = (target.satisfied(system, outcome, lower) for lower in (error, -error))
        return {target.is_met(each) for each in shares}

    error = prediction_error(predicted)
    seen: set[bool] = set()
    if simulated is not None:
        noise = _noise(simulated)
        told = not np.isnan(noise[simulated.subscribers["on_time"].notna()]).any()
        seen = answers(simulated, np.nan_to_num(noise)) if told else {True, False}
    if isinstance(predicted, UnsupportedError):
        found = seen
    elif error is None:
        found = seen | answers(predicted, 0.0)
    else:
        found = answers(predicted, error) | (seen if len(seen) == 1 else set())
    return OPEN if len(found) != 1 else MEETS if found == {True} else MISSES


def prediction_error(predicted: Outcome | UnsupportedError) -> float | None:
    """How far the shares of a prediction can be off, as far as its methods say; None: unknown.

    One way may meet them all, so they add up; of random states it is two standard errors.
    """
    if isinstance(predicted, UnsupportedError):
        return None
    rows = predicted.provenance.get("faults", {}).get("methods", ())
    known = [row for row in rows if row["of"] == "shares on time"]
    if any(row["error"] is None for row in known):
        return None
    return math.fsum(
        row["error"] * (SURELY if "sampled" in row["method"] else 1.0) for row in known
    )


def foreseen(system: System, target: Target) -> Standing:
    """How a system stands to its target, predicted."""
    return weigh(system, target).predicted


def surely_below(simulated: Outcome, share: float) -> NDArray[np.bool_]:
    """Whose simulated share is below this one beyond what chance explains."""
    most = simulated.subscribers["on_time"].to_numpy() + _noise(simulated)
    return np.asarray(most < share)


def _noise(simulated: Outcome) -> Floats:
    """By how much each simulated share may be off by chance; NaN where that is not known."""
    found: Floats = SURELY * simulated.subscribers["on_time_se"].to_numpy()
    return found
