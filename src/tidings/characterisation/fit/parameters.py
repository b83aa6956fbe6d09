"""Every fitted number, where it stands in the system, and how sure it is."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from tidings.model.laws import Law

if TYPE_CHECKING:
    from tidings.characterisation.fit.laws import FittedLaw

# What numbers are learnt from, the surest first.
TRACES, HISTOGRAMS, LEVELS = "traces", "histograms", "levels"
PARAMETER_COLUMNS = (
    "path", "estimate", "standard_error", "count", "family", "goodness", "unit", "verdict",
    "source", "bound",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One fitted number: its path in the system, its estimate, and from how many observations.

    ``goodness`` is the Kolmogorov distance of a law from the histogram (0: none is smaller).
    ``source`` says what it was learnt from, ``bound`` how far off it can be at most for what that
    source leaves open (half of the width): 0 for traces, which leave nothing open.
    """

    path: str
    estimate: float
    standard_error: float
    count: int
    unit: str
    family: str = ""
    goodness: float = math.nan
    verdict: str = ""
    nearest: float = 0.0  # the distance of the nearest family, where none is near enough
    fitted: FittedLaw | None = None  # the law whose mean, or rate, it is
    source: str = TRACES
    bound: float = 0.0


def law_parameter(path: str, fitted: FittedLaw) -> Parameter:
    """Make the parameter of a fitted distribution that is its mean, in seconds."""
    return Parameter(
        path=path,
        estimate=fitted.law.mean_s,
        standard_error=fitted.mean_se_s,
        count=fitted.count,
        unit="s",
        family=fitted.family,
        goodness=fitted.distance,
        verdict=fitted.verdict,
        nearest=fitted.nearest,
        fitted=fitted,
    )


def parameter_table(parameters: Iterable[Parameter]) -> pd.DataFrame:
    """Make a table of parameters, one row each."""
    rows = [[getattr(each, name) for name in PARAMETER_COLUMNS] for each in parameters]
    return pd.DataFrame(rows, columns=list(PARAMETER_COLUMNS))


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedPeriods:
    """The law of periods of one kind, how many whole ones there were, and how well it fits."""

    law: Law
    family: str
    count: int
    mean_se_s: float
    distance: float
    verdict: str
    nearest: float = 0.0  # the distance of the nearest family, where none is near enough

    def parameter(self, path: str) -> Parameter:
        """Give the mean as a parameter, in seconds, with what it was fitted to."""
        return Parameter(
            path=path,
            estimate=self.law.mean_s,
            standard_error=self.mean_se_s,
            count=self.count,
            unit="s",
            family=self.family,
            goodness=self.distance,
            verdict=self.verdict,
            nearest=self.nearest,
        )


def unfitted_notes(parameters: Iterable[Parameter]) -> list[str]:
    """Note the distributions that no family is near: how many, how far at most, and so what.

    Intervals between publications are told of apart.
    """
    learnt = [each for each in parameters if each.family and each.unit == "s"]
    unlike = [each for each in learnt if each.nearest > 0]
    if not unlike:
        return []
    worst = max(unlike, key=lambda each: each.nearest)
    return [
        f"{len(unlike)} of {len(learnt)} times fit no standard distribution (the farthest, "
        f"{worst.path}, is {worst.nearest:.2g} off in P[X ≤ t]); the measured ones are used "
        "as they are: nothing longer than what was recorded is predicted. Record for longer where "
        "rare long times matter"
    ]
