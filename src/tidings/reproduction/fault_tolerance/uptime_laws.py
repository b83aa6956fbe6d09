"""Laws fitted to times of which some are cut off, and how well they fit.

Every family is fitted twice by maximum likelihood: freely, which is what the literature quotes, and
with the mean of the measured law kept, which is what a system needs if only the *shape* of its
times is to differ. A time t that was cut off counts as P[X > t].
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, stats

from tidings.model.laws import Empirical, Exponential, Law, LogNormal, Weibull

Floats = NDArray[np.float64]
_BINS_PER_E = 20  # of the measured law: atoms this dense in the logarithm of time
_LEAST_SHAPE, _MOST_SHAPE = 0.1, 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Laws of a scale and a shape: log-density, log of P[X > t], and the law with a mean."""

    parameters: int
    likelihood: Callable[[float, float], stats.rv_continuous]  # frozen, by scale and shape
    with_mean: Callable[[float, float], Law]  # by mean and shape
    describe: Callable[[float, float], str]


def _hours(scale_s: float) -> str:
    return f"{scale_s / 3600:.3g} h"


FAMILIES = {
    "exponential": Family(
        parameters=1,
        likelihood=lambda scale, _: stats.expon(scale=scale),
        with_mean=lambda mean, _: Exponential(mean_s=mean),
        describe=lambda scale, _: f"mean {_hours(scale)}",
    ),
    "weibull": Family(
        parameters=2,
        likelihood=lambda scale, shape: stats.weibull_min(shape, scale=scale),
        with_mean=lambda mean, shape: Weibull(
            scale_s=mean / math.gamma(1.0 + 1.0 / shape), shape=shape
        ),
        describe=lambda scale, shape: f"shape {shape:.2f}, scale {_hours(scale)}",
    ),
    "lognormal": Family(
        parameters=2,
        likelihood=lambda scale, shape: stats.lognorm(shape, scale=scale),
        with_mean=lambda mean, shape: LogNormal(mean_s=mean, scv=math.expm1(shape**2)),
        describe=lambda scale, shape: f"sigma {shape:.2f}, median {_hours(scale)}",
    ),
}


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """A family on a sample: the likeliest law, and the likeliest of those with the mean kept."""

    family: str
    parameters: str  # of the free fit, in words
    aic: float  # of the free fit
    distance: float  # of the free fit
    law: Law  # the mean kept
    kept_distance: float


def measure(lengths_s: Floats, ended: NDArray[np.bool_]) -> Measured:
    """The product-limit estimate (Kaplan and Meier) from times of which some are cut off.

    >>> found = measure(np.array([1.0, 2.0, 3.0]), np.array([True, False, True]))
    >>> found.cdf.round(3).tolist(), found.times_s.tolist()
    ([0.333, 1.0], [1.0, 3.0])
    """
    times_s, place = np.unique(lengths_s, return_inverse=True)
    ends = np.bincount(place, ended)
    at_risk = lengths_s.size - np.concatenate([[0], np.cumsum(np.bincount(place))[:-1]])
    left = np.cumprod(1.0 - ends / at_risk)
    left[-1] = 0.0
    jumps = ends > 0
    jumps[-1] = True
    return Measured(
        times_s=times_s[jumps],
        cdf=1.0 - left[jumps],
        whole=int(ended.sum()),
        cut_off=int((~ended).sum()),
    )


def fit(name: str, lengths_s: Floats, ended: NDArray[np.bool_]) -> Fitted:
    """The family's likeliest law, freely and with the measured mean kept."""
    family, measured = FAMILIES[name], measure(lengths_s, ended)

    def cost(scale_s: float, shape: float) -> float:
        law = family.likelihood(scale_s, shape)
        return -float(law.logpdf(lengths_s[ended]).sum() + law.logsf(lengths_s[~ended]).sum())

    def cost_of_kept(log_shape: float) -> float:
        shape = math.exp(log_shape)
        unit_mean = float(family.likelihood(1.0, shape).mean())
        return cost(measured.mean_s / unit_mean, shape)

    logs = np.log(lengths_s)
    start = [float(logs.mean()), 0.0 if name == "weibull" else math.log(float(logs.std()))]
    free = optimize.minimize(
        lambda at: cost(math.exp(at[0]), math.exp(at[1])),
        start[: family.parameters] if family.parameters > 1 else [math.log(measured.mean_s), 0.0],
        method="Nelder-Mead",
        options={"xatol": 1e-5, "fatol": 1e-6},
    )
    kept = optimize.minimize_scalar(
        cost_of_kept, bounds=(math.log(_LEAST_SHAPE), math.log(_MOST_SHAPE)), method="bounded"
    )
    scale_s, shape = math.exp(free.x[0]), math.exp(free.x[1])
    law = family.with_mean(measured.mean_s, math.exp(kept.x))
    return Fitted(
        family=name,
        parameters=family.describe(scale_s, shape),
        aic=2.0 * (float(free.fun) + family.parameters),
        distance=measured.distance(family.likelihood(scale_s, shape).cdf),
        law=law,
        kept_distance=measured.distance(law.cdf),
    )
