from __future__ import annotations

import numpy as np
import pytest

from tidings.model.laws import Exponential, LogNormal, Weibull
from tidings.reproduction.fault_tolerance.uptime_laws import FAMILIES, fit, measure

PLANTED = {
    "exponential": Exponential(mean_s=5000.0),
    "weibull": Weibull(scale_s=3000.0, shape=0.5),
    "lognormal": LogNormal(mean_s=5000.0, scv=6.0),
}


def censored(law, size=4000, seed=5):
    """A sample of which about a third is cut off, at random and independently."""
    rng = np.random.default_rng(seed)
    lengths_s = law.sample(rng, size)
    limits_s = rng.exponential(2.0 * law.mean_s, size)
    return np.minimum(lengths_s, limits_s), lengths_s <= limits_s


def test_without_cut_off_times_the_measured_law_is_the_sample():
    lengths_s = np.array([1.0, 2.0, 2.0, 7.0])
    found = measure(lengths_s, np.ones(4, dtype=bool))
    assert found.times_s.tolist() == [1.0, 2.0, 7.0]
    assert found.cdf == pytest.approx([0.25, 0.75, 1.0], rel=1e-12)
    assert found.mean_s == pytest.approx(3.0, rel=1e-12)
    assert found.law.cdf([0.99, 1.0, 2.0, 6.9, 7.0]) == pytest.approx([0, 0.25, 0.75, 0.75, 1])


def test_a_time_cut_off_passes_its_weight_on_to_longer_ones():
    found = measure(np.array([1.0, 2.0, 3.0, 4.0]), np.array([True, False, True, True]))
    assert found.times_s.tolist() == [1.0, 3.0, 4.0]
    assert found.cdf == pytest.approx([1 / 4, 1 / 4 + 3 / 8, 1.0], rel=1e-12)


def test_the_measured_law_as_atoms_keeps_mean_and_spread():
    lengths_s = PLANTED["weibull"].sample(np.random.default_rng(1), 3000)
    found = measure(lengths_s, np.ones(3000, dtype=bool))
    assert found.law.mean_s == pytest.approx(lengths_s.mean(), rel=1e-12)
    assert found.law.scv == pytest.approx(lengths_s.var() / lengths_s.mean() ** 2, rel=2e-3)


@pytest.mark.statistical
@pytest.mark.parametrize("planted", PLANTED)
def test_planted_laws_are_recognised_though_times_are_cut_off(planted):
    lengths_s, ended = censored(PLANTED[planted])
    assert 0.2 < 1.0 - ended.mean() < 0.4
    fits = {name: fit(name, lengths_s, ended) for name in FAMILIES}
    best = min(fits.values(), key=lambda each: each.aic)
    if planted == "exponential":  # also a Weibull law of shape 1: one parameter for nothing
        assert abs(fits["weibull"].aic - fits["exponential"].aic) < 12.0
        assert fits["lognormal"].aic > best.aic + 50.0
    else:
        assert best.family == planted
        assert min(fits[name].aic for name in FAMILIES if name != planted) > best.aic + 50.0
    # Five standard errors of an empirical CDF, made larger by what was cut off.
    assert fits[planted].distance < 5 * 0.5 / ended.sum() ** 0.5
    kept = {name: each.law.mean_s for name, each in fits.items()}
    assert kept == pytest.approx(
        dict.fromkeys(FAMILIES, measure(lengths_s, ended).mean_s), rel=1e-12
    )


def test_whole_times_give_the_textbook_estimates():
    lengths_s, ended = np.array([100.0, 400.0, 1600.0, 6400.0] * 10), np.ones(40, dtype=bool)
    assert fit("exponential", lengths_s, ended).parameters == "mean 0.59 h"  # 2125 s
    sigma = np.log(lengths_s).std()
    found = fit("lognormal", lengths_s, ended)
    assert found.parameters == f"sigma {sigma:.2f}, median 0.222 h"  # 800 s
