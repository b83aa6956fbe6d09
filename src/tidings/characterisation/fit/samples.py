"""A sample of times as sums that merge: what laws are fitted to."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from tidings.model.delay_grid import BINS, bin_of

_SUMS = ("count", "total_s", "squares", "logs", "squared_logs")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Count, sums of powers and of logarithms, extremes and histogram of some times in seconds.

    ``logs`` and ``squared_logs`` are over the times above 0; ``bins`` counts by the delay grid.

    >>> sample_of([1.0, 2.0, 3.0]).mean_s
    2.0
    """

    count: int
    total_s: float
    squares: float
    logs: float
    squared_logs: float
    lowest_s: float
    highest_s: float
    bins: NDArray[np.int64]

    @property
    def mean_s(self) -> float:
        """The mean, in seconds; NaN of nothing."""
        return self.total_s / self.count if self.count else math.nan

    @property
    def variance_s2(self) -> float:
        """The sample variance (n − 1), in seconds squared; NaN of fewer than two."""
        if self.count < 2:
            return math.nan
        spread = self.squares - self.total_s**2 / self.count
        return max(spread, 0.0) / (self.count - 1)

    @property
    def scv(self) -> float:
        """The squared coefficient of variation."""
        return self.variance_s2 / self.mean_s**2 if self.total_s else math.nan

    @property
    def mean_se_s(self) -> float:
        """The standard error of the mean of independent times, in seconds."""
        return math.sqrt(self.variance_s2 / self.count) if self.count >= 2 else math.nan

    def merged(self, other: Sample) -> Sample:
        """Merge two samples into one."""
        return Sample(
            **{name: getattr(self, name) + getattr(other, name) for name in _SUMS},
            lowest_s=min(self.lowest_s, other.lowest_s),
            highest_s=max(self.highest_s, other.highest_s),
            bins=self.bins + other.bins,
        )


EMPTY = Sample(
    count=0,
    total_s=0.0,
    squares=0.0,
    logs=0.0,
    squared_logs=0.0,
    lowest_s=math.inf,
    highest_s=-math.inf,
    bins=np.zeros(BINS, dtype=np.int64),
)


def sample_of(times_s: ArrayLike) -> Sample:
    """Make the sample of these times, in seconds."""
    times = np.atleast_1d(np.asarray(times_s, dtype=np.float64))
    if times.size == 0:
        return EMPTY
    logs = np.log(times[times > 0])
    return Sample(
        count=int(times.size),
        total_s=float(times.sum()),
        squares=float((times**2).sum()),
        logs=float(logs.sum()),
        squared_logs=float((logs**2).sum()),
        lowest_s=float(times.min()),
        highest_s=float(times.max()),
        bins=np.bincount(bin_of(times), minlength=BINS).astype(np.int64),
    )


def sample_from_rows(rows: pd.DataFrame) -> Sample:
    """Read the sample in the rows of a statistic: one per bin, with the columns of ``SAMPLE``."""
    known = rows[rows["count"] > 0]
    if known.empty:
        return EMPTY
    sums = {name: math.fsum(known[name].fillna(0.0)) for name in _SUMS}
    bins = np.zeros(BINS, dtype=np.int64)
    np.add.at(bins, known["bin"].to_numpy(dtype=np.int64), known["count"].to_numpy(dtype=np.int64))
    return Sample(
        count=int(sums["count"]),
        total_s=sums["total_s"],
        squares=sums["squares"],
        logs=sums["logs"],
        squared_logs=sums["squared_logs"],
        lowest_s=float(known["lowest_s"].min()),
        highest_s=float(known["highest_s"].max()),
        bins=bins,
    )
