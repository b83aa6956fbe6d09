"""A sample of times as sums that merge: what laws are fitted to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from tidings.model.delay_grid import BINS, bin_of

Reals = NDArray[np.float64]
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
    return _sample(*_columns(rows[rows["count"] > 0]))


def samples_by(rows: pd.DataFrame, keys: Sequence[str]) -> dict[tuple[Any, ...], Sample]:
    """Read the samples in the rows of a statistic, one for each combination of some columns.

    Rows without one of them, and combinations without times, are left out.
    """
    ordered = rows[rows["count"] > 0].dropna(subset=[*keys]).sort_values([*keys], kind="stable")
    if ordered.empty:
        return {}
    names = ordered[[*keys]].reset_index(drop=True)
    starts = np.flatnonzero(~names.duplicated().to_numpy())
    ends = np.append(starts[1:], len(names))
    sums, extremes_s, whole = _columns(ordered)
    return {
        tuple(key): _sample(sums[:, a:b], extremes_s[:, a:b], whole[:, a:b])
        for key, a, b in zip(names.iloc[starts].to_numpy(), starts, ends, strict=True)
    }


def _columns(known: pd.DataFrame) -> tuple[Reals, Reals, NDArray[np.int64]]:
    """Give sums, extremes, and bins with their counts, as rows of arrays."""
    return (
        known[list(_SUMS)].fillna(0.0).to_numpy(dtype=np.float64).T,
        known[["lowest_s", "highest_s"]].to_numpy(dtype=np.float64).T,
        known[["bin", "count"]].to_numpy(dtype=np.int64).T,
    )


def _sample(sums: Reals, extremes_s: Reals, whole: NDArray[np.int64]) -> Sample:
    if not sums.shape[1]:
        return EMPTY
    totals = dict(zip(_SUMS, map(math.fsum, sums), strict=True))
    bins = np.zeros(BINS, dtype=np.int64)
    np.add.at(bins, whole[0], whole[1])
    return Sample(
        count=int(totals.pop("count")),
        **totals,
        lowest_s=float(np.fmin.reduce(extremes_s[0])),
        highest_s=float(np.fmax.reduce(extremes_s[1])),
        bins=bins,
    )
