"""What spreading means for notifications: T_sub, T_diff, the curve B(t), and r by area.

Everything here is as small as the model; ``spreading`` counts on Spark.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from tidings.errors import InvalidTracesError
from tidings.model.arrays import Floats
from tidings.model.delay_grid import EDGES_S

_SLOWEST = 10  # gaps below the worst from which its scatter is taken


@dataclass(frozen=True, slots=True, kw_only=True)
class Spreading:
    """How something spreads over the other brokers, from many times that it did, in seconds.

    Of spreads that reached all brokers that any from their origin did. ``mean_s`` is the mean delay
    over pairs of an origin and another broker, ``typical_s`` the mean over origins of the time
    until the last broker had it, ``worst_s`` the longest of these times. Errors take spreads as
    independent of each other; that of the worst is how it would scatter over recordings as long as
    this one (:func:`worst_error_s`).
    """

    spreads: int
    partial: int  # came less far than others from there, and count no further
    nowhere: int  # reached no other broker
    cut_off: int  # began so late that recording may have ended before all had it
    brokers: float  # reached by a spread, on average
    mean_s: float
    mean_se_s: float
    typical_s: float
    typical_se_s: float
    worst_s: float
    worst_se_s: float
    times_s: Floats  # of the curve B
    reached: Floats  # B: share of the brokers, of those reached in the end

    def times_to_s(self, shares: Sequence[float]) -> list[float]:
        """Find by when these shares of the brokers had it, in seconds."""
        return [float(self.times_s[np.argmax(self.reached >= share - 1e-12)]) for share in shares]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rapidity:
    """r of the power laws that give the same area, with its standard error."""

    value: float
    error: float
    within_s: float  # T_sub + T_diff
    within_se_s: float


def read_spreading(rows: pd.DataFrame, what: str) -> Spreading:
    """Sum up the rows of :func:`spread_statistics`; raise where nothing reached a second broker."""
    everywhere = rows[rows["statistic"] == "origins"]
    origins = everywhere[everywhere["spreads"] > 0].sort_values("origin")
    if origins.empty:
        raise InvalidTracesError(
            f"no {what} reached a second broker in these traces; wants 'learnt' rows, or "
            "hops, at other brokers"
        )
    spreads = origins["spreads"].to_numpy(dtype=np.float64)
    brokers = origins["reached"].to_numpy(dtype=np.float64) / spreads
    bins = rows[rows["statistic"] == "reach"]
    each = bins["origin"].map(dict(zip(origins["origin"], spreads, strict=True)))
    pairs = (bins["reached"] / each.astype(np.float64)).groupby(bins["bin"]).sum().sort_index()
    numbers, reached = pairs.index.to_numpy(dtype=np.int64), np.cumsum(pairs.to_numpy())
    mean_s, mean_se_s = _mean(origins, brokers, "mean_total_s", "mean_squares")
    alike = np.ones(len(origins))
    typical_s, typical_se_s = _mean(origins, alike, "longest_total_s", "longest_squares")
    return Spreading(
        spreads=int(spreads.sum()),
        partial=int(everywhere["partial"].sum()),
        nowhere=int(everywhere["nowhere"].sum()),
        cut_off=int(everywhere["cut_off"].sum()),
        brokers=float(origins["reached"].sum() / spreads.sum()),
        mean_s=mean_s,
        mean_se_s=mean_se_s,
        typical_s=typical_s,
        typical_se_s=typical_se_s,
        worst_s=float(origins["most_longest_s"].max()),
        worst_se_s=worst_error_s(rows.loc[rows["statistic"] == "parts", "most_longest_s"]),
        times_s=EDGES_S[np.minimum(numbers, len(EDGES_S) - 1)],
        reached=reached / reached[-1],
    )


def read_reached(rows: pd.DataFrame, origins: pd.DataFrame) -> list[tuple[float, float]]:
    """Compute B at some moments, with its standard errors, from the rows of :func:`reached_by`.

    ``origins`` are the rows of :func:`spread_statistics`: every pair of an origin and another
    broker counts alike.
    """
    counted = origins[(origins["statistic"] == "origins") & (origins["spreads"] > 0)]
    brokers = (counted["reached"] / counted["spreads"]).set_axis(counted["origin"])
    return [
        _mean(part, brokers.loc[part["origin"]].to_numpy(dtype=np.float64), "total", "squares")
        for _, part in rows.sort_values(["place", "origin"]).groupby("place")
    ]


def worst_error_s(slowest_s: ArrayLike) -> float:
    r"""Estimate how far the longest of many times would scatter between recordings, in seconds.

    From the longest of each part of the recording, t₁ ≥ t₂ ≥ …: where tails fall like exp(−t/β)
    the gaps i·(t_i − t_{i+1}) are exponential of mean β (Rényi), and the longest has standard
    deviation πβ/√6. From at most ten gaps, hence good to a third or so. Where tails end, as for
    uniform delays, it is too large; where they fall like a power, too small. NaN if a single part
    has any.

    >>> round(worst_error_s([3.0, 2.0, 1.0, 1.0]), 4)  # a gap of 1 s
    1.2825
    """
    times_s = np.sort(np.asarray(slowest_s, dtype=np.float64))[::-1]
    if times_s.size < 2:
        return math.nan
    gaps = min(_SLOWEST, max(times_s.size // 3, 1))
    return math.pi / math.sqrt(6.0) * float(times_s[:gaps].mean() - times_s[gaps])


def fit_rapidity(subscribing: Spreading, publishing: Spreading, *, worst: bool) -> Rapidity:
    """Compute r by area, r = A/(S − A) = S/E[X] − 1, X being both mean delays together.

    S is the worst time that either took, summed, or else (``worst`` false) the typical ones; the
    paper does not say which, and r depends on it. The error is that of the mean delays and of S.
    """
    both = (subscribing, publishing)
    within_s = sum(each.worst_s if worst else each.typical_s for each in both)
    within_se_s = math.hypot(*(each.worst_se_s if worst else each.typical_se_s for each in both))
    mean_s = sum(each.mean_s for each in both)
    if mean_s <= 0:
        return Rapidity(value=math.inf, error=math.nan, within_s=within_s, within_se_s=within_se_s)
    by_mean = within_s / mean_s**2 * math.hypot(*(each.mean_se_s for each in both))
    return Rapidity(
        value=within_s / mean_s - 1.0,
        error=math.hypot(by_mean, within_se_s / mean_s),
        within_s=within_s,
        within_se_s=within_se_s,
    )


def rapidity_by_area(area: tuple[float, float], within: tuple[float, float]) -> Rapidity:
    """Compute r = A/(S − A) from A = ∫f + ∫g and S, each with its standard error, in seconds.

    With a longer S, A is longer by as much, since later events are all notified: S − A stays.
    """
    (area_s, area_se_s), (within_s, within_se_s) = area, within
    left_s = within_s - area_s
    known = left_s > 0
    return Rapidity(
        value=area_s / left_s if known else math.nan,
        error=math.hypot(within_s * area_se_s / left_s, within_se_s) / left_s
        if known
        else math.nan,
        within_s=within_s,
        within_se_s=within_se_s,
    )


def _mean(origins: pd.DataFrame, weights: Floats, total: str, squares: str) -> tuple[float, float]:
    """Compute the weighted mean over origins and its standard error; NaN if none has two spreads.

    Spreads vary about the mean of their origin, by as much everywhere.
    """
    count, sums, of_squares = (
        origins[name].to_numpy(dtype=np.float64) for name in ("spreads", total, squares)
    )
    shares, means = weights / weights.sum(), sums / count
    mean, freedom = float(shares @ means), float((count - 1.0).sum())
    if freedom <= 0.0:
        return mean, math.nan
    variance = max(math.fsum(of_squares - count * means**2), 0.0) / freedom
    return mean, math.sqrt(variance * float((shares**2 / count).sum()))


def read_couples(rows: pd.DataFrame) -> tuple[int, list[float | None]]:
    """Read how many couples there are, and d for every stay; None where there is no couple."""
    couples, notified = rows.iloc[0]
    return int(couples), [None if value is None or value != value else value for value in notified]
