"""Which law times follow: several families tried, the best one named, or the histogram itself."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tidings.characterisation.families import FAMILIES, log_likelihood
from tidings.characterisation.samples import Sample
from tidings.errors import InvalidInputError
from tidings.model.delay_grid import EDGES_S
from tidings.model.laws import Deterministic, Empirical, Gamma, Law, LogNormal

# A Kolmogorov distance of 1.63/√n is exceeded by one true law in a hundred, and by fewer when its
# parameters were fitted. A distance of half a percent moves no on-time share by more than that,
# however many times were measured.
_SIGNIFICANT = 1.63
_NEGLIGIBLE = 0.005
# Times that agree this well, or to two nanoseconds, are one time.
_EQUAL_RATIO, _EQUAL_S = 1e-6, 2e-9
# Of a gamma law: beyond them all times are alike, or almost all of them next to none.
_MOST_SHAPE, _MOST_SCV = 1e6, 10.0


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

    @property
    def count(self) -> int:
        """How many times tell it."""
        return self.sample.count

    @property
    def mean_se_s(self) -> float:
        """The standard error of their mean, in seconds."""
        return math.hypot(self.sample.mean_se_s, self.systematic_s)


def fit_law(sample: Sample, as_good_as: int | None = None) -> FittedLaw:
    """The law that fits a sample best, by the Bayesian information criterion on the bins.

    BIC = k ln n − 2 ln L, with k parameters and n times, so that a family with more parameters must
    earn them: the exponential law wins where it is true. Where even the best family is further from
    the histogram than chance allows, the histogram itself is the law. Times that depend on each
    other tell less than they are many: ``as_good_as`` is how many independent ones tell as much.

    >>> from tidings.characterisation.samples import sample_of
    >>> fit_law(sample_of([0.005] * 10)).law
    Deterministic(value_s=0.005)
    """
    if sample.count == 0:
        raise ValueError("a law cannot be fitted to no times at all")
    if sample.highest_s - sample.lowest_s <= _EQUAL_RATIO * sample.mean_s + _EQUAL_S:
        equal = sample.lowest_s == sample.highest_s
        law = Deterministic(value_s=sample.lowest_s if equal else sample.mean_s)
        return _chosen(sample, law, "deterministic", 0.0, "all times are equal")
    independent = as_good_as or sample.count
    candidates = sorted(_candidates(sample, independent), key=lambda one: one.bic)
    best = candidates[0]
    allowed = max(_SIGNIFICANT / math.sqrt(independent), _NEGLIGIBLE)
    if best.distance <= allowed:
        return _chosen(sample, best.law, best.family, best.distance, "fits", candidates)
    verdict = (
        f"the nearest family ({best.family}) is {best.distance:.3g} away, more than {allowed:.3g}; "
        "the histogram itself is used"
    )
    return _chosen(sample, histogram_law(sample), "empirical", 0.0, verdict, candidates)


def law_of_moments(sample: Sample) -> tuple[str, Law]:
    """A law with the mean and the variance of a sample of which no more is known, and its family.

    >>> from tidings.characterisation.samples import sample_of
    >>> law_of_moments(sample_of([1.0, 3.0]))
    ('gamma', Gamma(mean_s=2.0, shape=2.0))
    """
    scv = sample.scv if sample.count > 1 and sample.total_s > 0 else 0.0
    if not scv > 1.0 / _MOST_SHAPE:
        return "deterministic", Deterministic(value_s=sample.mean_s)
    if scv > _MOST_SCV:
        return "lognormal", LogNormal(mean_s=sample.mean_s, scv=scv)
    return "gamma", Gamma(mean_s=sample.mean_s, shape=1.0 / scv)


def kolmogorov_distance(sample: Sample, law: Law) -> float:
    """The greatest difference between sample and law in P[X ≤ t], over the edges of the bins."""
    seen = np.cumsum(sample.bins)[:-1] / sample.count
    return float(np.abs(seen - law.cdf(EDGES_S[:-1])).max())


def histogram_law(sample: Sample) -> Empirical:
    """The histogram as a law: uniform within bins, with the extremes and mean of the sample."""
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


def _candidates(sample: Sample, independent: int) -> list[Candidate]:
    found = []
    weight = independent / sample.count
    for family, (estimate, parameters) in FAMILIES.items():
        try:
            law = estimate(sample)
        except InvalidInputError:  # beyond what the family allows
            continue
        if law is None:
            continue
        likelihood = weight * log_likelihood(sample, law)
        bic = parameters * math.log(independent) - 2.0 * likelihood
        distance = kolmogorov_distance(sample, law)
        found.append(Candidate(family=family, law=law, bic=bic, distance=distance))
    return found


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
