"""The one grid on which delays are counted, so that histograms from anywhere can be added.

Fifty logarithmic bins a decade from a microsecond to ten million seconds, 4.7 % wide. A quantile is
interpolated between the least and the greatest delay in its bin where these are known, so that it
is exact for delays of few values, and usually within a few thousandths.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

BINS_PER_DECADE = 50
LOWEST_S = 1e-6
DECADES = 13
# Bin 0 holds what is at or below the lowest edge, bin i what is in (edge i−1, edge i].
BINS = BINS_PER_DECADE * DECADES + 1
EDGES_S: NDArray[np.float64] = LOWEST_S * 10.0 ** (np.arange(BINS) / BINS_PER_DECADE)


def bin_of(delay_s: NDArray[np.float64]) -> NDArray[np.int64]:
    """Find the bin of each delay, in seconds; the last bin also takes all longer delays.

    >>> bin_of(np.array([0.0, 1e-6, 1.001e-6, 1e99])).tolist()
    [0, 0, 1, 650]
    """
    with np.errstate(divide="ignore"):
        position = np.ceil(np.log10(np.asarray(delay_s) / LOWEST_S) * BINS_PER_DECADE - 1e-9)
    bins: NDArray[np.int64] = np.clip(np.nan_to_num(position, neginf=0.0), 0, BINS - 1).astype(
        np.int64
    )
    return bins


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram:
    """Delays counted in the bins, and between which they lie in each bin that has any."""

    counts: NDArray[np.float64]
    lowest_s: NDArray[np.float64]
    highest_s: NDArray[np.float64]

    @classmethod
    def of(cls, delays_s: NDArray[np.float64]) -> Histogram:
        """Make the histogram of some delays, in seconds.

        >>> Histogram.of(np.array([0.008, 0.008, 0.008])).quantiles([0.5, 0.99])
        [0.008, 0.008]
        """
        bins = bin_of(delays_s)
        lowest_s, highest_s = np.full(BINS, np.inf), np.zeros(BINS)
        np.minimum.at(lowest_s, bins, delays_s)
        np.maximum.at(highest_s, bins, delays_s)
        counts = np.bincount(bins, minlength=BINS).astype(np.float64)
        return cls(counts=counts, lowest_s=lowest_s, highest_s=highest_s)

    @classmethod
    def between_edges(cls, counts: NDArray[np.float64]) -> Histogram:
        """Make a histogram of counts of which only the edges of their bins are known."""
        lower = np.concatenate([[LOWEST_S], EDGES_S[:-1]])
        return cls(counts=counts, lowest_s=lower, highest_s=EDGES_S)

    def quantiles(self, shares: list[float]) -> list[float]:
        """Compute quantiles of the delays, in seconds; NaN where nothing was counted."""
        total = self.counts.sum()
        if total <= 0:
            return [float("nan")] * len(shares)
        cumulative = np.cumsum(self.counts) / total
        times_s = []
        for share in shares:
            index = int(np.searchsorted(cumulative, share - 1e-12))
            below = cumulative[index - 1] if index else 0.0
            inside = (share - below) / (cumulative[index] - below)
            low_s, high_s = float(self.lowest_s[index]), float(self.highest_s[index])
            times_s.append(float(low_s + min(inside, 1.0) * (high_s - low_s)))
        return times_s
