from __future__ import annotations

import numpy as np
import pytest

from tidings.characterisation.fit.duration_laws import FAMILIES, fit, in_seconds, pareto_phases
from tidings.characterisation.fit.durations import Durations, durations, measure
from tidings.model.laws import Exponential, HyperExponential, LogNormal, Weibull

PLANTED = {
    "exponential": Exponential(mean_s=5000.0),
    "weibull": Weibull(scale_s=3000.0, shape=0.5),
    "lognormal": LogNormal(mean_s=5000.0, scv=6.0),
    "hyperexponential": HyperExponential(weights=(0.8, 0.2), means_s=(1000.0, 21_000.0)),
    "pareto": pareto_phases(6000.0, 2.2),
}


def censored(law, size=4000, seed=5):
    """A sample of which about a third is cut off, at random and independently."""
    rng = np.random.default_rng(seed)
    lengths_s = law.sample(rng, size)
    limits_s = rng.exponential(2.0 * law.mean_s, size)
    return durations(np.minimum(lengths_s, limits_s), lengths_s <= limits_s)


def test_without_cut_off_times_the_measured_law_is_the_sample():
    lengths_s = np.array([1.0, 2.0, 2.0, 7.0])
    found = measure(durations(lengths_s, np.ones(4, dtype=bool)))
    assert found.times_s.tolist() == [1.0, 2.0, 7.0]
    assert found.cdf == pytest.approx([0.25, 0.75, 1.0], rel=1e-12)
    assert found.mean_s == pytest.approx(3.0, rel=1e-12)
    assert found.law().cdf([0.99, 1.0, 2.0, 6.9, 7.0]) == pytest.approx([0, 0.25, 0.75, 0.75, 1])


def test_a_time_cut_off_passes_its_weight_on_to_longer_ones():
    found = measure(durations(np.array([1.0, 2.0, 3.0, 4.0]), np.array([True, False, True, True])))
    assert found.times_s.tolist() == [1.0, 3.0, 4.0]
    assert found.cdf == pytest.approx([1 / 4, 1 / 4 + 3 / 8, 1.0], rel=1e-12)


def test_the_measured_law_as_atoms_keeps_mean_and_spread():
    lengths_s = PLANTED["weibull"].sample(np.random.default_rng(1), 3000)
    found = measure(durations(lengths_s, np.ones(3000, dtype=bool)))
    assert found.law().mean_s == pytest.approx(lengths_s.mean(), rel=1e-12)
    assert found.law().scv == pytest.approx(lengths_s.var() / lengths_s.mean() ** 2, rel=2e-3)


@pytest.mark.statistical
@pytest.mark.parametrize("planted", PLANTED)
def test_planted_laws_are_recognised_though_times_are_cut_off(planted):
    seen = censored(PLANTED[planted])
    assert 0.2 < seen.cut_off / seen.counts.sum() < 0.4
    fits = {name: fit(name, seen) for name in FAMILIES}
    best = min(fits.values(), key=lambda each: each.aic)
    if planted == "exponential":  # others have it as a limit: parameters for nothing
        assert all(fits[name].aic < best.aic + 12.0 for name in ("weibull", "hyperexponential"))
        assert fits["lognormal"].aic > best.aic + 50.0
    else:
        assert best.family == planted
        assert min(fits[name].aic for name in FAMILIES if name != planted) > best.aic + 8.0
    # Five standard errors of an empirical CDF, made larger by what was cut off.
    assert fits[planted].distance < 5 * 0.5 / seen.whole**0.5
    kept = {name: each.law.mean_s for name, each in fits.items()}
    assert kept == pytest.approx(dict.fromkeys(FAMILIES, measure(seen).mean_s), rel=1e-12)


def test_whole_times_give_the_textbook_estimates():
    lengths_s = np.array([100.0, 400.0, 1600.0, 6400.0] * 10)
    seen = durations(lengths_s, np.ones(40, dtype=bool))
    assert fit("exponential", seen).parameters == "mean 0.59 h"  # 2125 s
    sigma = np.log(lengths_s).std()
    assert fit("lognormal", seen).parameters == f"sigma {sigma:.2f}, median 0.222 h"  # 800 s


def test_lengths_seen_several_times_count_as_often():
    once = durations(np.array([1.0, 2.0, 2.0, 2.0, 5.0]), np.array([True, True, True, False, True]))
    counted = Durations(
        lengths_s=np.array([1.0, 2.0, 2.0, 5.0]),
        ended=np.array([True, True, False, True]),
        counts=np.array([1.0, 2.0, 1.0, 1.0]),
        lowest_s=np.array([1.0, 2.0, 2.0, 5.0]),
        highest_s=np.array([1.0, 2.0, 2.0, 5.0]),
    )
    assert measure(counted).cdf == pytest.approx(measure(once).cdf, rel=1e-12)
    assert (counted.whole, counted.cut_off) == (once.whole, once.cut_off) == (4, 1)
    for name in ("exponential", "weibull"):
        assert fit(name, counted).aic == pytest.approx(fit(name, once).aic, rel=1e-9)


@pytest.mark.parametrize("tail", [1.2, 2.0, 6.0, 40.0])
def test_a_pareto_law_of_phases_follows_its_power(tail):
    times_s = 7.0 * np.linspace(0.0, 0.01 ** (-1.0 / tail) - 1.0, 30)
    exact = (1.0 + times_s / 7.0) ** -tail
    found = 1.0 - pareto_phases(7.0, tail).cdf(times_s)
    assert found == pytest.approx(exact, rel=0.01)  # the mean is kept, at the cost of so much
    assert pareto_phases(7.0, tail).mean_s == pytest.approx(7.0 / (tail - 1.0), rel=1e-12)


def test_a_mixture_of_regular_times_is_one_law():
    """Times less variable than exponential ones: no second law is likelier than none."""
    lengths_s = np.random.default_rng(5).gamma(3.0, 2.0, 400)
    found = fit("hyperexponential", durations(lengths_s, np.ones(400, dtype=bool)), in_seconds)
    assert isinstance(found.law, Exponential)
    assert found.law.mean_s == pytest.approx(lengths_s.mean(), rel=1e-9)
    assert found.parameters.endswith("a second component does not help")
