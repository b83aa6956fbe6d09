"""How long periods last, where observation cuts some of them off: what was measured, as a law.

A period whose end was not seen counts with the length that was seen, as at least that long. One
whose beginning was not seen is older than anybody knows and must be left out. Both are true to the
law of whole periods.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tidings.model.arrays import Floats
from tidings.model.laws import Empirical

LEAST_PERIODS = 5  # whole ones of each kind, to tell how a component fails or a peer comes and goes
ENOUGH_PERIODS = 30  # whole ones, to tell one law from another, and more than a mean
TRIED_FAMILIES = ("exponential", "weibull", "lognormal")  # the first where periods are too few
_BINS_PER_E = 20  # of the measured law: atoms this dense in the logarithm of time


@dataclass(frozen=True, slots=True, kw_only=True)
class Durations:
    """Lengths in seconds, how often each was seen, and whether the end was seen with it."""

    lengths_s: Floats
    ended: NDArray[np.bool_]
    counts: Floats

    @property
    def whole(self) -> int:
        """How many ends were seen."""
        return round(float(self.counts[self.ended].sum()))

    @property
    def cut_off(self) -> int:
        """How many were not."""
        return round(float(self.counts[~self.ended].sum()))


def durations(lengths_s: Floats, ended: NDArray[np.bool_]) -> Durations:
    """Each of these lengths once."""
    return Durations(lengths_s=lengths_s, ended=ended, counts=np.ones(lengths_s.size))


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What was measured: P[X ≤ t] by the product-limit estimate, at the times at which it jumps.

    If the longest time was cut off it is taken to end there, so the mean is rather too short.
    """

    times_s: Floats
    cdf: Floats
    whole: int
    cut_off: int

    @property
    def mean_s(self) -> float:
        """The mean of the measured law, in seconds."""
        return float(self.times_s @ np.diff(self.cdf, prepend=0.0))

    @property
    def scv(self) -> float:
        """The squared coefficient of variation of the measured law."""
        square_s2 = float(self.times_s**2 @ np.diff(self.cdf, prepend=0.0))
        return square_s2 / self.mean_s**2 - 1.0

    @property
    def law(self) -> Empirical:
        """The measured law as atoms: times within a twentieth of an e-fold become their mean."""
        weights = np.diff(self.cdf, prepend=0.0)
        _, place = np.unique(np.floor(_BINS_PER_E * np.log(self.times_s)), return_inverse=True)
        share = np.bincount(place, weights)
        means_s = np.bincount(place, weights * self.times_s)[share > 0] / share[share > 0]
        between = np.zeros(2 * means_s.size - 1)
        between[::2] = share[share > 0] / share.sum()
        return Empirical(edges_s=tuple(np.repeat(means_s, 2)), weights=tuple(between))

    def distance(self, cdf: Callable[[Floats], Floats]) -> float:
        """The largest difference of a law's P[X ≤ t] from the measured one."""
        there = cdf(self.times_s)
        before = np.concatenate([[0.0], self.cdf[:-1]])
        return float(np.maximum(np.abs(there - self.cdf), np.abs(there - before)).max())


def measure(seen: Durations) -> Measured:
    """The product-limit estimate (Kaplan and Meier) from times of which some are cut off.

    >>> law = measure(durations(np.array([1.0, 2.0, 3.0]), np.array([True, False, True])))
    >>> law.cdf.round(3).tolist(), law.times_s.tolist()
    ([0.333, 1.0], [1.0, 3.0])
    """
    times_s, place = np.unique(seen.lengths_s, return_inverse=True)
    ends = np.bincount(place, seen.ended * seen.counts)
    gone = np.cumsum(np.bincount(place, seen.counts))
    at_risk = seen.counts.sum() - np.concatenate([[0.0], gone[:-1]])
    left = np.cumprod(1.0 - ends / at_risk)
    left[-1] = 0.0
    jumps = ends > 0
    jumps[-1] = True
    return Measured(
        times_s=times_s[jumps], cdf=1.0 - left[jumps], whole=seen.whole, cut_off=seen.cut_off
    )


def durations_by_path(cells: pd.DataFrame) -> dict[str, dict[bool, Durations]]:
    """Collected cells as lengths: by path, and by whether peers are connected meanwhile.

    Lengths in one bin (they differ by less than 4.7 %) become their mean.
    """
    lengths: dict[str, dict[bool, Durations]] = {}
    for (path, connected), rows in cells.sort_values(["path", "bin"]).groupby(
        ["path", "connected"]
    ):
        lengths.setdefault(str(path), {})[bool(connected)] = durations_of(rows)
    return lengths


def durations_of(cells: pd.DataFrame) -> Durations:
    """Cells of one kind as lengths, each as long as the mean of its bin.

    Reads ``ended``, ``count`` (above 0) and ``total_s``.
    """
    counts = cells["count"].to_numpy(np.float64)
    return Durations(
        lengths_s=cells["total_s"].to_numpy(np.float64) / counts,
        ended=cells["ended"].to_numpy(np.bool_),
        counts=counts,
    )
