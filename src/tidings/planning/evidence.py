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
from tidings.theory.stated_errors import SURELY, possible_error

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
    foretold: str  # what the prediction tells within its error: MEETS, MISSES or OPEN
    verdict: str  # what both together do

    @property
    def meets(self) -> bool:
        """Whether the target is met as far as there is evidence."""
        return self.verdict == MEETS

    def to_document(self) -> dict[str, Any]:
        """The evidence as plain data: the predicted standing, the simulated one, the verdict."""
        simulated = None if self.simulated is None else self.simulated.to_document()
        told = {"foretold": self.foretold, "verdict": self.verdict}
        return {**self.predicted.to_document(), "simulated": simulated, **told}


def weigh(system: System, target: Target, play: Play | None = None) -> Evidence:
    """The evidence for a system: predicted, and played if there is a ``play``."""
    return _evidence(system, target, foretell(system), None if play is None else play(system))


def prove(system: System, target: Target, play: Play | None) -> Evidence:
    """The evidence for a candidate, which is played unless the prediction is sure to miss.

    What nobody knows of its error is left out there.
    """
    predicted = foretell(system)
    hopeless = True not in _answers(system, target, predicted, possible_error(predicted).share)
    played = None if play is None or hopeless else play(system)
    return _evidence(system, target, predicted, played)


def settle(system: System, target: Target, play: Play | None) -> Evidence:
    """The evidence for a system, which is played only where the prediction alone cannot tell."""
    predicted = foretell(system)
    found = _evidence(system, target, predicted, None)
    if play is None or found.foretold != OPEN:
        return found
    return _evidence(system, target, predicted, play(system))


def _evidence(
    system: System, target: Target, predicted: Outcome, simulated: Outcome | None
) -> Evidence:
    return Evidence(
        predicted=standing(system, target, predicted),
        simulated=None if simulated is None else standing(system, target, simulated),
        foretold=foretold(system, target, predicted),
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

    Where the prediction is sure within its error, the simulation must not be sure of the contrary;
    where the target is within that error, or there is no prediction, the simulation decides, and
    must be sure whatever its noise; where nobody knows the error, both must say the same. Without a
    simulation the prediction is taken at its word.
    """
    seen: set[bool] = set()
    if simulated is not None:
        noise = _noise(simulated)
        known = not np.isnan(noise[simulated.subscribers["on_time"].notna()]).any()
        sure = _answers(system, target, simulated, np.nan_to_num(noise))
        seen = sure if known else {True, False}
    if isinstance(predicted, UnsupportedError):
        return _told(seen)
    word = _answers(system, target, predicted, 0.0)
    if simulated is None:
        return _told(word)
    error = prediction_error(predicted)
    if error is None:
        return _told(seen | word)
    sure = _answers(system, target, predicted, error)
    return _told(seen if len(sure) > 1 else sure | (seen if len(seen) == 1 else set()))


def foretold(system: System, target: Target, predicted: Outcome) -> str:
    """What a prediction alone tells, wherever within its error each share may be."""
    error = prediction_error(predicted)
    return OPEN if error is None else _told(_answers(system, target, predicted, error))


def _answers(system: System, target: Target, outcome: Outcome, error: float | Floats) -> set[bool]:
    """Whether the target is met if all shares are lower by their error, and if all are higher."""
    shares = (target.satisfied(system, outcome, lower) for lower in (error, -error))
    return {target.is_met(each) for each in shares}


def _told(answers: set[bool]) -> str:
    return OPEN if len(answers) != 1 else MEETS if answers == {True} else MISSES


def prediction_error(predicted: Outcome | UnsupportedError) -> float | None:
    """How far the shares of a prediction can be off; None: not known, or there is none."""
    return None if isinstance(predicted, UnsupportedError) else possible_error(predicted).whole


def foreseen(system: System, target: Target) -> Standing:
    """How a system stands to its target, predicted."""
    return weigh(system, target).predicted


def surely_reached(simulated: Outcome, share: float) -> NDArray[np.bool_]:
    """Whose simulated share is at least this one whatever chance does."""
    least = simulated.subscribers["on_time"].to_numpy() - _noise(simulated)
    return np.asarray(least >= share)


def _noise(simulated: Outcome) -> Floats:
    """By how much each simulated share may be off by chance; NaN where that is not known."""
    found: Floats = SURELY * simulated.subscribers["on_time_se"].to_numpy()
    return found
