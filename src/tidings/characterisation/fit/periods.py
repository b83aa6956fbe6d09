"""Fit the law of periods: times up and down, connected and away, subscribed and not."""

from __future__ import annotations

from tidings.characterisation.fit.duration_laws import fit, likeliest, with_mean
from tidings.characterisation.fit.durations import LEAST_PERIODS, Durations, Measured, measure
from tidings.characterisation.fit.nearness import ENOUGH_TIMES, allowed_distance, unlike
from tidings.characterisation.fit.parameters import FittedPeriods
from tidings.model.laws import Deterministic, Exponential, Law

FAMILIES = ("exponential", "weibull", "lognormal")
MIXTURES = ("hyperexponential", "pareto")  # tried where no family is near
_EQUAL = 1e-6  # of their mean: periods that differ by less are all the same


def fit_periods(
    seen: Durations, mean_s: float | None = None, *, shaped: bool = True
) -> FittedPeriods:
    """Fit a distribution with a mean in seconds to periods, by its distance from what was measured.

    Of the families that are near, the likeliest; else a mixture that is; else the measured law
    itself. All of them have the mean, and its standard error is that of the periods, whatever their
    law. Few periods are exponential unless that cannot be; those of no ``shaped`` law are. Without
    a mean it is the measured one, or, where the longest were cut off, that of the likeliest family.
    """
    measured = measure(seen)
    if mean_s is None:
        mean_s = _likeliest_mean_s(seen, measured)
    if _are_equal(seen, mean_s):
        same = Deterministic(value_s=mean_s)
        return _fitted(seen, same, ("deterministic", 0.0), "all the same")
    enough = seen.whole >= ENOUGH_TIMES
    if not shaped:
        plain = Exponential(mean_s=mean_s)
        by = "exponential", measured.distance(plain.cdf)
        return _fitted(seen, plain, by, "assumed, as there are many")
    allowed = allowed_distance(seen.whole)
    nearest = ("", 1.0)
    for names in (FAMILIES, MIXTURES) if enough else (FAMILIES[:1], FAMILIES[1:]):
        laws: dict[str, tuple[Law, float]] = {name: with_mean(name, seen, mean_s) for name in names}
        far = {name: measured.distance(law.cdf) for name, (law, _) in laws.items()}
        near = [name for name in names if far[name] <= allowed]
        if near:
            best = min(near, key=lambda name: laws[name][1])
            said = "fits" if enough else f"assumed: fewer than {ENOUGH_TIMES} complete periods"
            return _fitted(seen, laws[best][0], (best, far[best]), said)
        nearest = min(nearest, *far.items(), key=lambda each: each[1])
    law = measured.law(mean_s)
    said = unlike(*nearest, allowed)
    return _fitted(seen, law, ("empirical", measured.distance(law.cdf)), said, nearest[1])


def _likeliest_mean_s(seen: Durations, measured: Measured) -> float:
    if not measured.is_open:
        return measured.mean_s
    names = FAMILIES if seen.whole >= ENOUGH_TIMES else FAMILIES[:1]
    return float(likeliest([fit(name, seen) for name in names]).free.mean())


def _are_equal(seen: Durations, mean_s: float) -> bool:
    """Test whether all periods are of one length, and none that was cut off is longer."""
    least_s = float(seen.lowest_s[seen.ended].min())
    longest_s = float(seen.highest_s.max())
    return seen.whole >= LEAST_PERIODS and longest_s - least_s <= _EQUAL * mean_s


def _fitted(
    seen: Durations, law: Law, by: tuple[str, float], verdict: str, nearest: float = 0.0
) -> FittedPeriods:
    return FittedPeriods(
        law=law,
        family=by[0],
        count=seen.whole,
        mean_se_s=seen.mean_se_s(law.mean_s),
        distance=by[1],
        verdict=verdict,
        nearest=nearest,
    )
