from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.characterisation.fit.laws import FAMILIES, fit_law, histogram_law, kolmogorov_distance
from tidings.characterisation.fit.samples import sample_of
from tidings.model.laws import (
    Deterministic,
    Empirical,
    Exponential,
    Gamma,
    LogNormal,
    Shifted,
    Uniform,
    Weibull,
)

N = 20_000
# How to draw each family with NumPy alone, and what should be found.
TRUTHS = {
    "exponential": (lambda rng: rng.exponential(0.02, N), Exponential(mean_s=0.02)),
    "uniform": (lambda rng: rng.uniform(0.001, 0.02, N), Uniform(low_s=0.001, high_s=0.02)),
    "gamma": (lambda rng: rng.gamma(3.0, 0.002, N), Gamma(mean_s=0.006, shape=3.0)),
    "lognormal": (
        lambda rng: rng.lognormal(math.log(0.01) - 0.5 * math.log(2), math.sqrt(math.log(2)), N),
        LogNormal(mean_s=0.01, scv=1.0),
    ),
    "weibull": (lambda rng: 0.01 * rng.weibull(0.6, N), Weibull(scale_s=0.01, shape=0.6)),
    "shifted exponential": (
        lambda rng: 0.005 + rng.exponential(0.003, N),
        Shifted(law=Exponential(mean_s=0.003), by_s=0.005),
    ),
}


@pytest.mark.statistical
@pytest.mark.parametrize("family", TRUTHS)
def test_the_true_family_is_found_with_its_parameters(family):
    draw, truth = TRUTHS[family]
    sample = sample_of(draw(np.random.default_rng(11)))
    fitted = fit_law(sample)
    assert fitted.family == family
    assert fitted.verdict == "fits"
    assert fitted.distance < 1.63 / math.sqrt(N)
    assert fitted.mean_se_s < 0.02 * truth.mean_s
    assert abs(fitted.law.mean_s - truth.mean_s) < 5 * fitted.mean_se_s
    # four standard errors of the shape parameters of these sizes are well under a tenth
    assert fitted.law.scv == pytest.approx(truth.scv, rel=0.1)
    assert set(FAMILIES) >= {one.family for one in fitted.alternatives}


@pytest.mark.statistical
def test_the_exponential_law_wins_where_it_is_true():
    wins = sum(
        fit_law(sample_of(np.random.default_rng(seed).exponential(0.01, 5000))).family
        == "exponential"
        for seed in range(40)
    )
    # BIC prefers a richer family with probability P[chi² > ln 5000] of about 0.004 per family
    assert wins >= 38


@pytest.mark.parametrize("spread_s", [0.0, 1e-9])
def test_equal_times_are_deterministic_in_spite_of_rounding(spread_s):
    fitted = fit_law(sample_of([0.005, 0.005 + spread_s, 0.005]))
    assert isinstance(fitted.law, Deterministic)
    assert fitted.law.mean_s == pytest.approx(0.005, abs=1e-9)


def test_no_times_at_all_take_no_time():
    assert fit_law(sample_of([0.0, 0.0])).law == Deterministic(value_s=0.0)


def test_two_humps_are_no_family_and_keep_their_histogram():
    rng = np.random.default_rng(5)
    times = np.concatenate([rng.uniform(0.001, 0.002, 5000), rng.uniform(0.1, 0.2, 5000)])
    sample = sample_of(times)
    fitted = fit_law(sample)
    assert fitted.family == "empirical"
    assert isinstance(fitted.law, Empirical)
    assert "the measured distribution itself is used" in fitted.verdict
    assert fitted.law.mean_s == pytest.approx(sample.mean_s, rel=1e-12)
    assert fitted.law.scv == pytest.approx(sample.scv, rel=0.01)
    assert kolmogorov_distance(sample, fitted.law) < 0.002


def test_zeros_among_other_times_are_no_logarithms():
    times = np.concatenate([np.zeros(3000), np.random.default_rng(1).exponential(0.01, 3000)])
    fitted = fit_law(sample_of(times))
    assert fitted.family == "empirical"
    assert fitted.law.cdf([1e-6])[0] == pytest.approx(0.5, abs=0.01)


@given(st.lists(st.floats(0.0, 1e8), min_size=1, max_size=40))
@settings(deadline=None)
def test_whatever_the_times_the_law_has_their_mean_and_is_one(values):
    sample = sample_of(values)
    fitted = fit_law(sample)
    assert math.isfinite(fitted.law.mean_s)
    assert fitted.law.cdf([2e8])[0] >= 0.0
    if fitted.family != "empirical":
        assert fitted.law.mean_s == pytest.approx(sample.mean_s, rel=1e-9)


@given(st.lists(st.floats(0.0, 1e6), min_size=2, max_size=40))
@settings(deadline=None)
def test_a_histogram_as_a_law_has_the_mean_of_its_sample(values):
    sample = sample_of(values)
    assert histogram_law(sample).mean_s == pytest.approx(sample.mean_s, rel=1e-9, abs=1e-12)


def test_a_law_of_nothing_is_refused():
    with pytest.raises(ValueError, match="no times were recorded"):
        fit_law(sample_of([]))
