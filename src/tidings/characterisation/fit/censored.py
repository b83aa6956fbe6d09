r"""Laws fitted to histograms of which only counts between bounds are known.

A time between two bounds counts as P[low < X ≤ high]: it is censored to that interval. Fitted are
mixtures of up to three gamma laws by maximum likelihood,

.. math:: \max_\theta \sum_i n_i \ln \bigl(F_\theta(b_i) - F_\theta(b_{i-1})\bigr),

with no more numbers than the filled intervals can tell apart. Whatever the law says between two
bounds, the share itself is known only to lie between those at the bounds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import optimize, special

from tidings.model.arrays import Floats
from tidings.model.delay_grid import EDGES_S
from tidings.model.laws import Empirical, Gamma, Law

_MOST_PARTS = 3
_LEAST_MASS = 1e-15
_LEAST_LOG_SHAPE, _MOST_LOG_SHAPE = math.log(0.2), math.log(400.0)
_NEGLIGIBLE = 1e-9  # of all events, in a bin of the law
_NEAR = 0.002  # of a share at the bounds: with as little, more parts are not tried
_FREE_BOUNDS = 40  # filled intervals from which on the histogram itself says all


@dataclass(frozen=True, slots=True, kw_only=True)
class Buckets:
    """Counts of times between bounds; of one or several histograms that add up.

    >>> fine = Buckets.of([(1.0, 30), (2.0, 90), (math.inf, 100)])
    >>> fine.share(2.0), fine.share(1.5)
    ((0.9, 0.9), (0.3, 0.9))
    """

    low_s: Floats
    high_s: Floats
    counts: Floats

    @classmethod
    def of(cls, bounds: Iterable[tuple[float, float]]) -> Buckets:
        """Make the buckets of one histogram: each bound, and how many took at most so long."""
        rows = sorted(bounds)
        high_s = np.array([bound for bound, _ in rows], dtype=np.float64)
        below = np.maximum.accumulate(np.array([count for _, count in rows], dtype=np.float64))
        low_s = np.concatenate([[0.0], high_s[:-1]])
        return cls(low_s=low_s, high_s=high_s, counts=np.diff(below, prepend=0.0))

    @classmethod
    def joined(cls, parts: Iterable[Buckets]) -> Buckets:
        """Join the buckets of several histograms."""
        every = list(parts)
        return cls(
            low_s=np.concatenate([each.low_s for each in every]),
            high_s=np.concatenate([each.high_s for each in every]),
            counts=np.concatenate([each.counts for each in every]),
        )

    @property
    def events(self) -> float:
        """How many times there are."""
        return float(self.counts.sum())

    def share(self, within_s: float) -> tuple[float, float]:
        """Bound the share of times of at most so long: what it is at least, and at most."""
        surely = float(self.counts[self.high_s <= within_s].sum())
        maybe = float(self.counts[self.low_s < within_s].sum())
        return surely / self.events, max(maybe, surely) / self.events

    def mean_s(self) -> tuple[float, float]:
        """Bound the mean, in seconds; at most infinite, where some exceed all bounds."""
        filled = self.counts > 0
        counts = self.counts[filled]
        low, high = counts @ self.low_s[filled], counts @ self.high_s[filled]
        return float(low) / self.events, float(high) / self.events


@dataclass(frozen=True, slots=True, kw_only=True)
class CensoredFit:
    """A law of a histogram: its family, and how far it is from the shares at the bounds."""

    law: Law
    family: str
    distance: float


def buckets_by_name(rows: pd.DataFrame) -> dict[tuple[str, str], Buckets]:
    """Group histograms by name and what they are of; join several series."""
    by_name = {}
    for (name, what), part in rows.groupby(["name", "what"]):
        series = [
            Buckets.of(zip(each["up_to_s"], each["events"], strict=True))
            for _, each in part.groupby(["series", "bounds"])
        ]
        whole = Buckets.joined(series)
        if whole.events > 0:
            by_name[str(name), str(what)] = whole
    return by_name


def fit_buckets(buckets: Buckets) -> CensoredFit:
    """Fit the law of a histogram: gamma, or a mixture of two or three, as far as bounds can tell.

    Histograms with very many filled intervals, such as long lists of quantiles, say themselves
    all that there is to know: the law is then straight between their bounds.
    """
    filled = int((buckets.counts > 0).sum())
    if filled > _FREE_BOUNDS:
        return CensoredFit(law=_as_it_is(buckets), family="empirical", distance=0.0)
    most = max(1, min(_MOST_PARTS, (filled + 1) // 3))
    fits = []
    for parts in range(1, most + 1):
        law, family = _law(_likeliest(buckets, parts))
        # Between bounds of others a series tells nothing: there the shares need not agree.
        ends = np.unique(buckets.high_s[np.isfinite(buckets.high_s)])
        off = max((_beyond(law, buckets, float(end)) for end in ends), default=0.0)
        fits.append(CensoredFit(law=law, family=family, distance=off))
        if off <= max(_NEAR, 0.5 / math.sqrt(buckets.events)):
            break
    return min(fits, key=lambda each: each.distance)


def _beyond(law: Law, buckets: Buckets, end_s: float) -> float:
    low, high = buckets.share(end_s)
    share = float(np.asarray(law.cdf(end_s)))
    return max(low - share, share - high, 0.0)


def _likeliest(buckets: Buckets, parts: int) -> Floats:
    """Seek weights, means and shapes of so many gamma laws, from two starting points."""
    seen = buckets.counts > 0
    low_s, high_s, shares = (
        buckets.low_s[seen], buckets.high_s[seen], buckets.counts[seen] / buckets.events,
    )  # fmt: skip
    ends_s, places = np.unique(np.concatenate([low_s, high_s]), return_inverse=True)

    def cost(point: Floats) -> float:
        below = _cdf(point, ends_s)[places]
        mass = below[low_s.size :] - below[: low_s.size]
        outside = np.abs(point) > 45.0  # far from anything that is meant
        return float(outside.sum() - shares @ np.log(np.maximum(mass, _LEAST_MASS)))

    tried = [
        optimize.minimize(
            cost,
            _start(buckets, parts, shape),
            method="Nelder-Mead",
            options={"maxiter": 400 * parts, "xatol": 1e-4, "fatol": 1e-9, "adaptive": True},
        )
        for shape in (1.0, 6.0)
    ]
    best = min(tried, key=lambda each: float(each.fun))
    return np.asarray(best.x, dtype=np.float64)


def _start(buckets: Buckets, parts: int, shape: float) -> Floats:
    """Choose where a fit starts: means at quantiles of the histogram, weights alike."""
    order = np.argsort(buckets.high_s, kind="stable")
    below = np.cumsum(buckets.counts[order]) / buckets.events
    shares = (np.arange(parts) + 0.5) / parts
    at = order[np.minimum(np.searchsorted(below, shares), order.size - 1)]
    largest = _largest(buckets)
    high_s = np.where(np.isfinite(buckets.high_s[at]), buckets.high_s[at], 2.0 * largest)
    means_s = np.maximum((buckets.low_s[at] + high_s) / 2.0, 1e-9)
    means_s *= 1.0 + 0.3 * np.arange(parts)  # apart, where quantiles share a bucket
    return np.concatenate([np.zeros(parts - 1), np.log(means_s), np.full(parts, math.log(shape))])


def _largest(buckets: Buckets) -> float:
    """Find the largest finite bound, in seconds; 1 where there is none."""
    finite = buckets.high_s[np.isfinite(buckets.high_s) & (buckets.high_s > 0)]
    return float(finite.max()) if finite.size else 1.0


def _unpacked(point: Floats) -> tuple[Floats, Floats, Floats]:
    parts = (point.size + 1) // 3
    weights = special.softmax(np.concatenate([[0.0], point[: parts - 1]]))
    means_s = np.exp(np.clip(point[parts - 1 : 2 * parts - 1], -40.0, 40.0))
    shapes = np.exp(np.clip(point[2 * parts - 1 :], _LEAST_LOG_SHAPE, _MOST_LOG_SHAPE))
    return weights, means_s, shapes


def _cdf(point: Floats, at_s: Floats) -> Floats:
    weights, means_s, shapes = _unpacked(point)
    finite = np.where(np.isfinite(at_s), at_s, 0.0)
    below = special.gammainc(shapes[:, None], shapes[:, None] * finite / means_s[:, None])
    share: Floats = np.where(np.isfinite(at_s), weights @ below, 1.0)
    return share


def _law(point: Floats) -> tuple[Law, str]:
    weights, means_s, shapes = _unpacked(point)
    if weights.size == 1:
        return Gamma(mean_s=float(means_s[0]), shape=float(shapes[0])), "gamma"
    edges_s = np.concatenate([[0.0], EDGES_S])
    mass = np.diff(_cdf(point, edges_s))
    filled = np.flatnonzero(mass > _NEGLIGIBLE)
    kept = slice(int(filled[0]), int(filled[-1]) + 1)
    shares = mass[kept] / mass[kept].sum()
    law = Empirical(
        edges_s=tuple(map(float, edges_s[kept.start : kept.stop + 1])),
        weights=tuple(map(float, shares)),
    )
    return law, f"{weights.size} gammas"


def _as_it_is(buckets: Buckets) -> Empirical:
    """Turn a histogram into a distribution, straight between bounds.

    It goes up to twice the last bound where that is open.
    """
    ends = np.unique(np.concatenate([buckets.low_s, buckets.high_s]))
    ends = np.where(np.isfinite(ends), ends, 2.0 * _largest(buckets))
    high_s = np.where(np.isfinite(buckets.high_s), buckets.high_s, ends[-1])
    width_s = np.maximum(high_s - buckets.low_s, 1e-12)
    share = np.clip((ends[:, None] - buckets.low_s) / width_s, 0.0, 1.0)
    below = np.where(ends[:, None] >= high_s, 1.0, share) @ buckets.counts / buckets.events
    mass = np.diff(below)
    filled = np.flatnonzero(mass > 0)
    first, last = int(filled[0]), int(filled[-1])
    return Empirical(
        edges_s=tuple(map(float, ends[first : last + 2])),
        weights=tuple(map(float, mass[first : last + 1] / mass[first : last + 1].sum())),
    )
