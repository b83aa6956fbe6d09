"""What stands behind a plan: what is asked, its prediction and its simulation.

A target is an on-time share that subscribers should get. One rule for all plans: it is met where
shares less their errors reach it, and missed where shares and their errors together do not. Else
the simulator is asked, as precisely as it takes to decide; what it leaves open is undecided. A plan
whose own simulation lies below the target is never said to meet it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tidings.errors import InvalidInputError, UnstableError, UnsupportedError
from tidings.model.arrays import Floats
from tidings.model.outcome import Outcome, by_share
from tidings.model.record_tables import column
from tidings.model.shown import Shown
from tidings.model.system import System
from tidings.prediction.predict import predict
from tidings.simulation.options import Wanted


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """An on-time share for everybody who has no target of their own in the system.

    It is met when at least ``of`` of all subscribers (a share of heads, not of events) get theirs.
    """

    share: float | None = None
    of: float = 1.0

    def __post_init__(self) -> None:
        for name, value in (("share", self.share), ("of", self.of)):
            if value is None:
                continue
            if not isinstance(value, int | float) or not 0.0 <= value <= 1.0:
                raise InvalidInputError(
                    f"the target's {name} is {value!r}; wants a share from 0 to 1, such as 0.995"
                )

    def wanted(self, system: System) -> Floats:
        """Give each subscriber's target share, as :meth:`shares`; refuse where nobody has one."""
        shares = self.shares(system)
        if np.isnan(shares).all():
            raise InvalidInputError(
                "there is no target to check; give --target, or set a 'target' for "
                "subscribers in the system file"
            )
        return shares

    def shares(self, system: System) -> Floats:
        """Give each subscriber's target share; NaN for those of whom nothing is asked."""
        common = math.nan if self.share is None else self.share
        own = [each.target for each in system.subscribers]
        return np.array([common if each is None else each for each in own], dtype=np.float64)

    def satisfied(self, system: System, outcome: Outcome, lower: float | Floats = 0.0) -> float:
        """Compute which share of the subscribers that have a target get it.

        ``lower`` asks what it would be if shares on time (all, or each) were so much lower.
        """
        return self.satisfied_by(system, outcome.subscribers["on_time"].to_numpy() - lower)

    def satisfied_by(self, system: System, shares: Floats) -> float:
        """Compute the same from on-time shares [subscriber].

        A share is NaN for those who want nothing that is published; they are left out.
        """
        wanted, counts = self.wanted(system), column(system.subscribers, "count")
        heads = np.array(counts.values)[counts.codes]
        # Who wants nothing that is published is not let down.
        asked = ~np.isnan(wanted) & ~np.isnan(shares)
        if not asked.any():
            return 1.0
        return float(heads[asked & (shares >= wanted)].sum() / heads[asked].sum())

    def is_met(self, satisfied: float) -> bool:
        """Test whether this share of satisfied subscribers is enough."""
        return satisfied >= self.of


MEETS, MISSES, OPEN = "meets", "misses", "undecided"
ROUGHLY, FEW_SECONDS = 0.01, 10.0  # error and CPU seconds of what is simulated for want of theory
FINEST = 1e-3  # error of a share down to which the simulator is asked
ENOUGH = 0.8  # of the distance to a target: an error that leaves no doubt

# A simulation of a plan, to half-widths (95 %) that depend on what shares turn out to be.
Play = Callable[[System, Wanted], Outcome]


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetStanding:
    """How a system stands to a target by one engine."""

    source: str
    on_time: float  # share of all events
    satisfied: float  # share of subscribers that get their target
    worst: str  # who falls furthest below its target, or comes nearest to it
    margin: float  # of that one: its share less its target
    error: float  # half-width (95 %) of that share
    meets: bool  # if all shares were as they are given
    tells: str  # wherever within its error each share may be: MEETS, MISSES or OPEN

    def to_document(self) -> dict[str, Any]:
        """Give the standing as plain data."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Evidence(Shown):
    """What the engines say of a plan, and what that amounts to."""

    _table = "subscribers"
    _columns = ("subscriber", "on_time", "error", "broker", "by")

    predicted: TargetStanding
    simulated: TargetStanding | None  # None where it was not played
    verdict: str  # what both together tell
    outcome: Outcome  # the rows that decided it: of each the one with the smaller error

    @property
    def meets(self) -> bool:
        """Whether the target is met as far as there is evidence."""
        return self.verdict == MEETS

    @property
    def subscribers(self) -> pd.DataFrame:
        """The rows that decided it, the lowest share first."""
        return by_share(self.outcome.subscribers)

    def to_document(self) -> dict[str, Any]:
        """Give the evidence as plain data: predicted standing, simulated one, verdict."""
        simulated = None if self.simulated is None else self.simulated.to_document()
        return {
            **self.predicted.to_document(),
            "simulated": simulated,
            "verdict": self.verdict,
        }


def foretell(system: System) -> Outcome:
    """Predict as whoever asks hundreds of times needs it: by theory, with its measured errors.

    Simulated, roughly, is only what theory has not.
    """
    known = by_theory(system)
    if known is not None:
        return known
    return predict(
        system, by="simulation", within=ROUGHLY, seconds=FEW_SECONDS, delays=False, causes=False
    )


def by_theory(system: System) -> Outcome | None:
    """Predict by theory alone, with its measured errors; None where it has no answer."""
    try:
        return predict(system, by="theory", delays=False, error_bars=False, causes=False)
    except UnsupportedError:
        return None


def weigh(
    system: System, target: Target, play: Play | None = None, *, always: bool = False
) -> Evidence:
    """Give the evidence for a system, played where the prediction alone cannot tell.

    With ``always`` it is played in any case.
    """
    predicted = foretell(system)
    stands = standing(system, target, predicted)
    simulated = None
    if play is not None and (always or stands.tells == OPEN):
        simulated = played(system, target, predicted, play)
    return Evidence(
        predicted=stands,
        simulated=None if simulated is None else standing(system, target, simulated),
        verdict=verdict(system, target, predicted, simulated),
        outcome=predicted if simulated is None else better(predicted, simulated),
    )


def played(system: System, target: Target, predicted: Outcome, play: Play) -> Outcome | None:
    """Play a system as precisely as decides it; None where it cannot be, as when overloaded."""
    try:
        return play(system, deciding(system, target, predicted))
    except (UnstableError, UnsupportedError):
        return None


def deciding(system: System, target: Target, predicted: Outcome | None) -> Wanted:
    """Give the half-widths that decide what a prediction leaves open; infinity where nothing is.

    Without a prediction all is open of which something is asked.
    """
    wanted = target.shares(system)
    undecided = ~np.isnan(wanted)
    if predicted is not None:
        share, error = predicted.subscribers["on_time"].to_numpy(), errors(predicted)
        undecided = (share - error < wanted) & (share + error >= wanted)

    def precision(shares: Floats) -> Floats:
        enough = np.maximum(ENOUGH * np.abs(shares - wanted), FINEST)
        return np.where(undecided, enough, np.inf)

    return precision


def standing(system: System, target: Target, outcome: Outcome) -> TargetStanding:
    """Say how a system stands to its target if all shares are as they are given."""
    rows = outcome.subscribers
    wanted, share = target.wanted(system), rows["on_time"].to_numpy()
    satisfied = target.satisfied(system, outcome)
    asked = ~np.isnan(wanted) & ~np.isnan(share)
    margins = np.where(asked, share - wanted, np.inf)
    least = int(np.argmin(margins.round(9)))  # further digits depend on the processor
    return TargetStanding(
        source=outcome.source,
        on_time=outcome.on_time,
        satisfied=satisfied,
        worst=str(rows["subscriber"].iloc[least]) if asked.any() else "",
        margin=float(margins[least]) if asked.any() else math.nan,
        error=float(rows["error"].iloc[least]) if asked.any() else math.nan,
        meets=target.is_met(satisfied),
        tells=_within_errors(system, target, outcome),
    )


def verdict(
    system: System, target: Target, predicted: Outcome, simulated: Outcome | None = None
) -> str:
    """Say whether the target is met, wherever within its error each share may be."""
    if simulated is None:
        return _within_errors(system, target, predicted)
    answer = _within_errors(system, target, better(predicted, simulated))
    below = not target.is_met(target.satisfied(system, simulated))
    surely_met = _within_errors(system, target, simulated) == MEETS
    contradicts = below if answer == MEETS else surely_met if answer == MISSES else False
    return OPEN if contradicts else answer


def _within_errors(system: System, target: Target, outcome: Outcome) -> str:
    """Say whether the target is met if all shares are lower by their error, and if higher."""
    error = errors(outcome)
    shares = (target.satisfied(system, outcome, lower) for lower in (error, -error))
    answers = {target.is_met(each) for each in shares}
    return OPEN if len(answers) > 1 else MEETS if answers == {True} else MISSES


def better(predicted: Outcome, simulated: Outcome) -> Outcome:
    """Give the prediction, with the simulated row wherever that has the smaller error."""
    closer = errors(simulated) < errors(predicted)
    both = (simulated.subscribers, predicted.subscribers)
    rows = {name: np.where(closer, *(each[name] for each in both)) for name in both[1]}
    return replace(predicted, subscribers=predicted.subscribers.assign(**rows))


def errors(outcome: Outcome) -> Floats:
    """Give how far each share can be off (half-width, 95 %); infinite where nobody knows."""
    known: Floats = outcome.subscribers["error"].to_numpy()
    return np.where(np.isnan(known), np.inf, known)


def surely_reached(outcome: Outcome, share: float) -> NDArray[np.bool_]:
    """Find whose share is at least this one, whatever its error."""
    return np.asarray(outcome.subscribers["on_time"].to_numpy() - errors(outcome) >= share)
