"""How well laws fit times that were measured: a table of fits, and curves of P[X > t]."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidings.characterisation.duration_laws import Fitted, in_hours, in_seconds, likeliest
from tidings.characterisation.durations import Measured
from tidings.model.study import Curves, Grid, Points

AS_MEASURED = "as measured"
_POINTS = 80  # of a curve
_Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """A unit of time to show times in."""

    plural: str
    short: str
    seconds: float

    def write(self, time_s: float) -> str:
        """A time with this unit."""
        return (in_hours if self.short == "h" else in_seconds)(time_s)


HOURS = Unit(plural="hours", short="h", seconds=3600.0)
SECONDS = Unit(plural="seconds", short="s", seconds=1.0)


def goodness(
    title: str,
    measured: Mapping[str, Measured],
    fits: Mapping[str, Sequence[Fitted]],
    unit: Unit,
) -> Grid:
    """Every law of every state: its numbers, how much worse than the best, how far off."""
    rows = []
    for state, each in fits.items():
        best = likeliest(each).aic
        rows += [
            (
                state,
                fit.family,
                fit.parameters,
                f"{fit.aic - best:,.0f}",
                f"{fit.distance:.3f}",
                f"{fit.kept_distance:.3f}",
            )
            for fit in each
        ]
    return Grid(
        title=title,
        columns=("state", "law", "parameters", "AIC", "distance", "mean kept"),
        rows=tuple(rows),
        names=3,
        caption="; ".join(
            f"mean time {state} {each.mean_s / unit.seconds:,.4g} {unit.short}"
            for state, each in measured.items()
        ),
    )


def longer_than(title: str, measured: Measured, fits: Sequence[Fitted], unit: Unit) -> Curves:
    """P[X > t], as measured and by the laws with the measured mean, both axes logarithmic."""
    return Curves(
        title=title,
        lines={AS_MEASURED: _steps(measured, unit), **_fitted(measured, fits, unit)},
        x_label=unit.plural,
        y_label="share of times",
        x_log=True,
        y_log=True,
    )


def _steps(measured: Measured, unit: Unit) -> Points:
    """Shares of times that are longer, from the shortest on, at places even in logarithm."""
    times_s = measured.times_s[:-1]
    places = np.geomspace(times_s[0], times_s[-1], _POINTS)
    at = np.unique(np.searchsorted(times_s, places, side="right") - 1)
    return _points(times_s[at], 1.0 - measured.cdf[at], unit)


def _fitted(measured: Measured, fits: Sequence[Fitted], unit: Unit) -> dict[str, Points]:
    """The fitted laws over the same times, down to the least share that was measured."""
    least = 1.0 - float(measured.cdf[-2])
    times_s = np.geomspace(measured.times_s[0], measured.times_s[-1], _POINTS)
    shares = {fit.family: 1.0 - fit.law.cdf(times_s) for fit in fits}
    return {
        name: _points(times_s[share >= least], share[share >= least], unit)
        for name, share in shares.items()
    }


def _points(times_s: _Floats, shares: _Floats, unit: Unit) -> Points:
    pairs = zip((times_s / unit.seconds).tolist(), shares.tolist(), strict=True)
    return tuple(pair for pair in pairs if pair[1] > 0)
