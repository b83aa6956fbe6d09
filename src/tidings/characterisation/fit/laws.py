"""Fit the law of a sample of times: each family from its sums, the best by likelihood."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import optimize, special

from tidings.characterisation.fit.duration_laws import with_mean
from tidings.characterisation.fit.durations import durations
from tidings.characterisation.fit.nearness import NEAR, allowed_distance, unlike
from tidings.characterisation.fit.samples import Sample
from tidings.errors import InvalidInputError
from tidings.model.delay_grid import BINS_PER_DECADE, EDGES_S
from tidings.model.laws import (
    Deterministic,
    Empirical,
    Exponential,
    Gamma,
    Law,
    LogNormal,
    Shifted,
    Uniform,
    Weibull,
)

Estimator = Callable[[Sample], Law | None]
_LEAST_MASS = 1e-300
_LEAST_SHAPE, _MOST_SHAPE = 0.06, 1e6
_EULER = 0.5772156649015329
# Times that agree this well, or to two nanoseconds, are one time.
_EQUAL_RATIO, _EQUAL_S = 1e-6, 2e-9
# Of a gamma law: beyond them all times are alike, or almost all of them next to none.
_EQUAL_SHAPE, _MOST_SCV = 1e6, 10.0


def exponential(sample: Sample) -> Law | None:
    """Fit an exponential distribution with the mean of the sample."""
    return Exponential(mean_s=sample.mean_s)


def shifted_exponential(sample: Sample) -> Law | None:
    """Fit an exponential distribution that begins at the least time seen; None where that is 0."""
    if sample.lowest_s <= 0:
        return None
    return Shifted(law=Exponential(mean_s=sample.mean_s - sample.lowest_s), by_s=sample.lowest_s)


def uniform(sample: Sample) -> Law | None:
    """Fit a uniform distribution around the mean, as far as the time seen farthest from it."""
    reach_s = max(sample.mean_s - sample.lowest_s, sample.highest_s - sample.mean_s)
    if reach_s > sample.mean_s:
        return None
    return Uniform(low_s=sample.mean_s - reach_s, high_s=sample.mean_s + reach_s)


def gamma(sample: Sample) -> Law | None:
    """Fit a gamma distribution with the mean of the sample.

    Its shape is the k with ln k − ψ(k) = ln(mean) − mean of the logarithms.
    """
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
    """Fit a lognormal distribution: mean of the sample, variance of the logarithms."""
    variance = _variance_of_logs(sample)
    if variance is None or variance > 30.0:
        return None
    return LogNormal(mean_s=sample.mean_s, scv=math.expm1(variance))


def weibull(sample: Sample) -> Law | None:
    """Fit the Weibull distribution that is likeliest on the bins.

    It is sought from where the moments of the logarithms point, and keeps the mean of the sample.
    """
    variance = _variance_of_logs(sample)
    if variance is None:
        return None
    shape = math.pi / math.sqrt(6.0 * variance)
    start = np.array([sample.logs / sample.count + _EULER / shape, math.log(shape)])

    seen = np.flatnonzero(sample.bins)
    counts = sample.bins[seen] / sample.count
    edges_s = np.array([np.append(0.0, EDGES_S)[seen], np.append(EDGES_S[:-1], np.inf)[seen]])

    def shape_at(point: Any) -> float:
        return min(max(math.exp(point[1]), _LEAST_SHAPE), _MOST_SHAPE)

    def cost(point: Any) -> float:
        """Compute −:func:`log_likelihood` of an event from the filled bins; most are empty."""
        with np.errstate(over="ignore"):
            below = -np.expm1(-((edges_s / math.exp(point[0])) ** shape_at(point)))
        return -float(counts @ np.log(np.maximum(below[1] - below[0], _LEAST_MASS)))

    optimum = optimize.minimize(
        cost, start, method="Nelder-Mead", options={"xatol": 1e-6, "fatol": 1e-12, "maxiter": 400}
    )
    shape = shape_at(optimum.x)
    return Weibull(scale_s=sample.mean_s / math.gamma(1.0 + 1.0 / shape), shape=shape)


def log_likelihood(sample: Sample, law: Law) -> float:
    """Compute ln P[histogram | law]: Σ nᵢ ln pᵢ over the bins of the delay grid."""
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


def hyperexponential(sample: Sample) -> Law | None:
    """Fit two exponential distributions with the mean of the sample, the likeliest."""
    seen = np.flatnonzero(sample.bins)
    if sample.lowest_s <= 0 or sample.scv <= 1.0:
        return None
    middle_s = EDGES_S[seen] * 10.0 ** (-0.5 / BINS_PER_DECADE)
    ended = np.ones(seen.size, dtype=np.bool_)
    counts = sample.bins[seen].astype(np.float64)
    return with_mean(
        "hyperexponential", replace(durations(middle_s, ended), counts=counts), sample.mean_s
    )[0]


# Estimator and number of parameters.
FAMILIES: dict[str, tuple[Estimator, int]] = {
    "exponential": (exponential, 1),
    "uniform": (uniform, 2),
    "gamma": (gamma, 2),
    "lognormal": (lognormal, 2),
    "weibull": (weibull, 2),
    "shifted exponential": (shifted_exponential, 2),
}
MIXTURES: dict[str, tuple[Estimator, int]] = {"hyperexponential": (hyperexponential, 3)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One family as it fits a sample: less ``bic`` is better, ``distance`` is Kolmogorov's."""

    family: str
    law: Law
    bic: float
    distance: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedLaw:
    """The law chosen for a sample, how well it fits, and what else was tried."""

    law: Law
    family: str
    sample: Sample
    distance: float
    verdict: str
    alternatives: tuple[Candidate, ...] = ()
    systematic_s: float = 0.0  # an error of the mean that more times do not make less
    nearest: float = 0.0  # the distance of the nearest family, where none is near enough

    @property
    def count(self) -> int:
        """How many times it was fitted to."""
        return self.sample.count

    @property
    def mean_se_s(self) -> float:
        """The standard error of their mean, in seconds."""
        return math.hypot(self.sample.mean_se_s, self.systematic_s)


FitLaw = Callable[[Sample], FittedLaw]


def fit_law(sample: Sample, as_good_as: int | None = None, near: float = NEAR) -> FittedLaw:
    """Fit a distribution to a sample, with its mean, by its distance from the histogram.

    Of the families that are near (:func:`allowed_distance`) the best by the Bayesian information
    criterion on the bins, BIC = k ln n − 2 ln L with k parameters and n times, so that one with
    more parameters must earn them: the exponential law wins where it is true. Else a mixture that
    is near, else the histogram itself. Times that depend on each other tell less than they are
    many: ``as_good_as`` is how many independent ones tell as much.

    >>> from tidings.characterisation.fit.samples import sample_of
    >>> fit_law(sample_of([0.005] * 10)).law
    Deterministic(value_s=0.005)
    """
    if sample.count == 0:
        raise ValueError("no times were recorded, so no distribution can be fitted")
    if sample.highest_s - sample.lowest_s <= _EQUAL_RATIO * sample.mean_s + _EQUAL_S:
        equal = sample.lowest_s == sample.highest_s
        law = Deterministic(value_s=sample.lowest_s if equal else sample.mean_s)
        return _chosen(sample, law, "deterministic", 0.0, "all times are equal")
    independent = as_good_as or sample.count
    allowed = allowed_distance(independent, near)
    tried: list[Candidate] = []
    for families in (FAMILIES, MIXTURES):
        candidates = sorted(_candidates(sample, independent, families), key=lambda one: one.bic)
        tried += candidates
        for each in candidates:
            if each.distance <= allowed:
                verdict = "fits" if each.distance <= NEAR else "not refuted by so few"
                return _chosen(sample, each.law, each.family, each.distance, verdict, tried)
    best = min(tried, key=lambda one: one.distance)
    verdict = unlike(best.family, best.distance, allowed)
    fitted = _chosen(sample, histogram_law(sample), "empirical", 0.0, verdict, tried)
    return replace(fitted, nearest=best.distance)


def law_of_moments(sample: Sample) -> tuple[str, Law]:
    """Make a distribution with the mean and the variance of a sample, where no more is known.

    Its family comes first.

    >>> from tidings.characterisation.fit.samples import sample_of
    >>> law_of_moments(sample_of([1.0, 3.0]))
    ('gamma', Gamma(mean_s=2.0, shape=2.0))
    """
    scv = sample.scv if sample.count > 1 and sample.total_s > 0 else 0.0
    if not scv > 1.0 / _EQUAL_SHAPE:
        return "deterministic", Deterministic(value_s=sample.mean_s)
    if scv > _MOST_SCV:
        return "lognormal", LogNormal(mean_s=sample.mean_s, scv=scv)
    return "gamma", Gamma(mean_s=sample.mean_s, shape=1.0 / scv)


def fit_moments(sample: Sample) -> FittedLaw:
    """Fit a distribution to the mean and the variance of a sample alone, which takes no search."""
    family, law = law_of_moments(sample)
    return _chosen(sample, law, family, math.nan, "by mean and variance")


def kolmogorov_distance(sample: Sample, law: Law) -> float:
    """Compute the greatest difference of sample and distribution in P[X ≤ t], at edges of bins."""
    seen = np.cumsum(sample.bins)[:-1] / sample.count
    return float(np.abs(seen - law.cdf(EDGES_S[:-1])).max())


def histogram_law(sample: Sample) -> Empirical:
    """Turn a histogram into a distribution.

    It is uniform within bins, with the extremes and mean of the sample.
    """
    filled = np.flatnonzero(sample.bins)
    edges = [sample.lowest_s]
    weights: list[float] = []
    for index in filled:
        low = EDGES_S[index - 1] if index else 0.0
        if low > edges[-1]:  # nothing was seen up to this bin
            edges.append(float(low))
            weights.append(0.0)
        high = min(EDGES_S[index], sample.highest_s) if index < filled[-1] else sample.highest_s
        edges.append(max(float(high), edges[-1]))
        weights.append(sample.bins[index] / sample.count)
    if weights[0] == 0.0:
        edges, weights = edges[1:], weights[1:]
    law = Empirical(edges_s=tuple(edges), weights=tuple(weights))
    return law.scaled(sample.mean_s / law.mean_s) if law.mean_s > 0 else law


def _candidates(
    sample: Sample, independent: int, families: Mapping[str, tuple[Estimator, int]]
) -> list[Candidate]:
    candidates = []
    weight = independent / sample.count
    for family, (estimate, parameters) in families.items():
        try:
            law = estimate(sample)
        except InvalidInputError:  # beyond what the family allows
            continue
        if law is None:
            continue
        likelihood = weight * log_likelihood(sample, law)
        bic = parameters * math.log(independent) - 2.0 * likelihood
        distance = kolmogorov_distance(sample, law)
        candidates.append(Candidate(family=family, law=law, bic=bic, distance=distance))
    return candidates


def _chosen(
    sample: Sample,
    law: Law,
    family: str,
    distance: float,
    verdict: str,
    candidates: list[Candidate] | None = None,
) -> FittedLaw:
    return FittedLaw(
        law=law,
        family=family,
        sample=sample,
        distance=distance,
        verdict=verdict,
        alternatives=tuple(candidates or ()),
    )
