"""What spreading means for notifications: T_sub, T_diff, the curve B(t), and r by area.

Everything here is as small as the model; ``spreading`` counts on Spark.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tidings.errors import InvalidTracesError
from tidings.model.delay_grid import EDGES_S

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spreading:
    """How something spreads over the brokers, from many times that it did, in seconds.

    ``typical_s`` is the mean over spreads of the time until the last broker had it, ``worst_s`` the
    longest of these times; ``mean_s`` the mean delay to a broker. Errors take spreads as
    independent of each other.
    """

    spreads: int
    brokers: float  # reached by a spread, on average
    mean_s: float
    mean_se_s: float
    typical_s: float
    typical_se_s: float
    worst_s: float
    times_s: Floats  # of the curve B
    reached: Floats  # B: share of the brokers, of those reached in the end

    def area_s(self, within_s: float) -> float:
        """∫ B up to a time by which all are reached: the time less the mean delay."""
        return within_s - self.mean_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Rapidity:
    """r of the power laws that give the same area, with its standard error."""

    value: float
    error: float
    within_s: float  # T_sub + T_diff


def read_spreading(rows: pd.DataFrame, what: str) -> Spreading:
    """The rows of :func:`spread_statistics`, summed up."""
    origins = rows[rows["statistic"] == "origins"]
    count = int(origins["spreads"].sum())
    if count == 0:
        raise InvalidTracesError(
            f"no {what} was seen to spread; wants rows of 'learnt' or hops beside them"
        )
    bins = rows[rows["statistic"] == "reach"].sort_values("bin")
    numbers = bins["bin"].to_numpy(dtype=np.int64)
    reached = np.cumsum(bins["reached"].to_numpy(dtype=np.float64))
    mean_s, mean_se_s = _mean(origins, count, "mean_total_s", "mean_squares")
    typical_s, typical_se_s = _mean(origins, count, "longest_total_s", "longest_squares")
    return Spreading(
        spreads=count,
        brokers=float(origins["reached"].sum()) / count,
        mean_s=mean_s,
        mean_se_s=mean_se_s,
        typical_s=typical_s,
        typical_se_s=typical_se_s,
        worst_s=float(origins["most_longest_s"].max()),
        times_s=EDGES_S[np.minimum(numbers, len(EDGES_S) - 1)],
        reached=reached / reached[-1],
    )


def fit_rapidity(subscribing: Spreading, publishing: Spreading, *, worst: bool) -> Rapidity:
    """R by area, r = A/(S − A) = S/E[X] − 1, X being both mean delays together.

    S is the worst time that either took, summed, or else (``worst`` false) the typical ones; the
    paper does not say which, and r depends on it. The error is that of the mean delays, and for
    typical times of these as well.
    """
    both = (subscribing, publishing)
    within_s = sum(each.worst_s if worst else each.typical_s for each in both)
    mean_s = sum(each.mean_s for each in both)
    if mean_s <= 0:
        return Rapidity(value=math.inf, error=math.nan, within_s=within_s)
    value = within_s / mean_s - 1.0
    squares = (within_s / mean_s**2) ** 2 * sum(each.mean_se_s**2 for each in both)
    if not worst:
        squares += sum(each.typical_se_s**2 for each in both) / mean_s**2
    return Rapidity(value=value, error=math.sqrt(squares), within_s=within_s)


def _mean(rows: pd.DataFrame, count: int, total: str, squares: str) -> tuple[float, float]:
    """The mean over spreads and its standard error; NaN of one."""
    mean = math.fsum(rows[total]) / count
    if count < 2:
        return mean, math.nan
    variance = max(math.fsum(rows[squares]) / count - mean**2, 0.0) / (count - 1)
    return mean, math.sqrt(variance)
