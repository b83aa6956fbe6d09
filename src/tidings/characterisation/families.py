"""The families of laws that are tried on a sample, each estimated from its sums.

Each function returns the law of its family that fits a sample best, or None where the family cannot
be meant (a logarithm of zero, no spread). By maximum likelihood, but for one thing: the mean, on
which loads depend, is always that of the sample (a uniform law is given by its ends instead).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import optimize, special

from tidings.characterisation.samples import Sample
from tidings.model.delay_grid import EDGES_S
from tidings.model.laws import Exponential, Gamma, Law, LogNormal, Shifted, Uniform, Weibull

Estimator = Callable[[Sample], Law | None]

_LEAST_MASS = 1e-300
_LEAST_SHAPE, _MOST_SHAPE = 0.06, 1e6
_EULER = 0.5772156649015329


def exponential(sample: Sample) -> Law | None:
    """Mean of the sample."""
    return Exponential(mean_s=sample.mean_s)


def shifted_exponential(sample: Sample) -> Law | None:
    """Begins at the least time seen; the rest is exponential."""
    if sample.lowest_s <= 0:
        return None
    return Shifted(law=Exponential(mean_s=sample.mean_s - sample.lowest_s), by_s=sample.lowest_s)


def uniform(sample: Sample) -> Law | None:
    """From the least to the greatest time seen."""
    return Uniform(low_s=sample.lowest_s, high_s=sample.highest_s)


def gamma(sample: Sample) -> Law | None:
    """Mean of the sample, and the shape k with ln k − ψ(k) = ln(mean) − mean of the logarithms."""
    if sample.lowest_s <= 0:
        return None
    gap = math.log(sample.mean_s) - sample.logs / sample.count
    if not gap > 1.0 / _MOST_SHAPE:
        return None

    def excess(log_shape: float) -> float:
        return log_shape - float(special.digamma(math.exp(log_shape))) - gap

    low, high = math.log(_LEAST_SHAPE), math.log(_MOST_SHAPE)
    if excess(low) <= 0:
        return None
    return Gamma(mean_s=sample.mean_s, shape=math.exp(float(optimize.brentq(excess, low, high))))


def lognormal(sample: Sample) -> Law | None:
    """Mean of the sample, variance of the logarithms."""
    variance = _variance_of_logs(sample)
    if variance is None or variance > 30.0:
        return None
    return LogNormal(mean_s=sample.mean_s, scv=math.expm1(variance))


def weibull(sample: Sample) -> Law | None:
    """The likeliest on the bins, sought from where the moments of the logarithms point."""
    variance = _variance_of_logs(sample)
    if variance is None:
        return None
    shape = math.pi / math.sqrt(6.0 * variance)
    start = np.array([sample.logs / sample.count + _EULER / shape, math.log(shape)])

    def law(point: Any) -> Weibull:
        shape = min(max(math.exp(point[1]), _LEAST_SHAPE), _MOST_SHAPE)
        return Weibull(scale_s=math.exp(point[0]), shape=shape)

    found = optimize.minimize(
        lambda point: -log_likelihood(sample, law(point)) / sample.count,
        start,
        method="Nelder-Mead",
        options={"xatol": 1e-6, "fatol": 1e-12, "maxiter": 400},
    )
    shape = law(found.x).shape
    return Weibull(scale_s=sample.mean_s / math.gamma(1.0 + 1.0 / shape), shape=shape)


def log_likelihood(sample: Sample, law: Law) -> float:
    """Ln P[histogram | law]: Σ nᵢ ln pᵢ over the bins of the delay grid."""
    below = np.append(law.cdf(EDGES_S[:-1]), 1.0)
    mass = np.diff(below, prepend=0.0)
    seen = sample.bins > 0
    return float(sample.bins[seen] @ np.log(np.maximum(mass[seen], _LEAST_MASS)))


def _variance_of_logs(sample: Sample) -> float | None:
    if sample.lowest_s <= 0:
        return None
    mean = sample.logs / sample.count
    variance = sample.squared_logs / sample.count - mean**2
    return variance if variance > 1e-12 else None


# Estimator and number of parameters.
FAMILIES: dict[str, tuple[Estimator, int]] = {
    "exponential": (exponential, 1),
    "uniform": (uniform, 2),
    "gamma": (gamma, 2),
    "lognormal": (lognormal, 2),
    "weibull": (weibull, 2),
    "shifted exponential": (shifted_exponential, 2),
}
