"""How well laws fit times that were measured: a table of fits, and curves of P[X > t]."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from studies.harness import grid, line
from tidings.characterisation.fit.duration_laws import Fitted, likeliest
from tidings.characterisation.fit.durations import Measured
from tidings.model.arrays import Floats
from tidings.model.study import Curves, Points, TextTable

AS_MEASURED = "as measured"
_POINTS = 80  # of a curve


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """A unit of time to show times in."""

    plural: str
    short: str
    seconds: float


HOURS = Unit(plural="hours", short="h", seconds=3600.0)
SECONDS = Unit(plural="seconds", short="s", seconds=1.0)


def goodness(
    title: str, measured: Mapping[str, Measured], fits: Mapping[str, Sequence[Fitted]], unit: Unit
) -> TextTable:
    """Show every law of every state: its numbers, how much worse than the best, how far off."""
    rows = [
        {"state": state, "fit": fit, "worse": fit.aic - likeliest(each).aic}
        for state, each in fits.items()
        for fit in each
    ]
    return grid(
        title,
        rows,
        "state = {state} | law = {fit.family} | parameters = {fit.parameters} | AIC = {worse:,.0f} "
        "| distance = {fit.distance:.3f} | mean kept = {fit.kept_distance:.3f}",
        names=3,
        caption="; ".join(
            f"mean time {state} {each.mean_s / unit.seconds:,.4g} {unit.short}"
            for state, each in measured.items()
        ),
    )


def longer_than(title: str, measured: Measured, fits: Sequence[Fitted], unit: Unit) -> Curves:
    """Plot P[X > t], as measured and by the laws with the measured mean, both axes logarithmic.

    Measured shares are shown at times even in logarithm; laws down to the least measured share.
    """
    times_s = measured.times_s[:-1]
    places = np.geomspace(times_s[0], times_s[-1], _POINTS)
    at = np.unique(np.searchsorted(times_s, places, side="right") - 1)
    drawn = {AS_MEASURED: _points(times_s[at], 1.0 - measured.cdf[at], unit)}
    least = 1.0 - float(measured.cdf[-2])
    law_s = np.geomspace(measured.times_s[0], measured.times_s[-1], _POINTS)
    for fit in fits:
        shares = 1.0 - fit.law.cdf(law_s)
        drawn[fit.family] = _points(law_s[shares >= least], shares[shares >= least], unit)
    return Curves(
        title=title,
        lines=drawn,
        x_label=unit.plural,
        y_label="share of times",
        x_log=True,
        y_log=True,
    )


def _points(times_s: Floats, shares: Floats, unit: Unit) -> Points:
    return line(times_s[shares > 0] / unit.seconds, shares[shares > 0])
