from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, special

from tidings.model.laws import Deterministic, Exponential, Gamma, LogNormal, Uniform
from tidings.theory.delay_tables import Extent, Tables, mixtures
from tidings.theory.path_laws import Workshop
from tidings.theory.stage_columns import stage_columns
from tidings.theory.stages import NOTHING, in_series, law_stage

SHARES = [0.001, 0.05, 0.5, 0.95, 0.99, 0.999]


def series(*laws):
    stage = NOTHING
    for law in laws:
        stage = in_series(stage, law_stage(law))
    return stage


def mixed(stages, weights):
    extent = Extent()
    extent.include(stage_columns(stages))
    return mixtures(Tables(extent.times_s(), Workshop()), stages, np.atleast_2d(weights))


@pytest.mark.parametrize(
    "law",
    [
        Exponential(mean_s=0.3),
        Gamma(mean_s=5.0, shape=30.0),
        LogNormal(mean_s=1e-3, scv=3.0),
    ],
)
def test_quantiles_of_a_single_law(law):
    found = mixed([law_stage(law)], [1.0]).quantiles(SHARES)[0]
    assert law.cdf(found) == pytest.approx(SHARES, abs=2e-5)


def test_quantiles_beside_a_corner_are_within_a_step_of_the_grid():
    found = mixed([law_stage(Uniform(low_s=1.0, high_s=2.0))], [1.0]).quantiles(SHARES)[0]
    assert found - 1.0 == pytest.approx(SHARES, rel=0.03)  # the step, in the logarithm


def test_quantiles_of_a_sum():
    stage = series(*[Exponential(mean_s=0.2)] * 6, Deterministic(value_s=1.0))
    found = mixed([stage], [1.0]).quantiles(SHARES)[0]
    assert special.gammainc(6, (found - 1.0) / 0.2) == pytest.approx(SHARES, abs=2e-5)


def test_quantiles_of_a_mixture_behind_different_shifts():
    stages = [
        series(Deterministic(value_s=0.1), Exponential(mean_s=0.05)),
        series(Deterministic(value_s=2.0), Exponential(mean_s=0.5)),
        series(Deterministic(value_s=0.7)),
    ]
    weights = np.array([[2.0, 1.0, 1.0], [0.0, 3.0, 0.0], [0.0, 0.0, 5.0]])
    found = mixed(stages, weights).quantiles([0.2, 0.6, 0.9])

    def cdf(t):
        first = -math.expm1(-max(t - 0.1, 0.0) / 0.05)
        second = -math.expm1(-max(t - 2.0, 0.0) / 0.5)
        return 0.5 * first + 0.25 * second + 0.25 * (t >= 0.7)

    assert found[0, 0] == pytest.approx(0.1 - 0.05 * math.log(0.6), rel=1e-5)
    assert found[0, 1] == pytest.approx(0.7, rel=1e-9)  # within the atom
    assert found[0, 2] == pytest.approx(optimize.brentq(lambda t: cdf(t) - 0.9, 1, 9), rel=1e-5)
    assert found[1] == pytest.approx(
        [2.0 - 0.5 * math.log(1 - u) for u in (0.2, 0.6, 0.9)], rel=1e-5
    )
    assert found[2] == pytest.approx([0.7] * 3, rel=1e-9)


def test_the_law_of_a_rough_sum():
    stage = series(Uniform(low_s=0.0, high_s=1.0), Uniform(low_s=0.0, high_s=1.0))
    law = mixed([stage], [1.0])
    t = np.array([[0.1, 0.5, 1.0, 1.7]])
    assert law.cdf(t)[0] == pytest.approx([0.005, 0.125, 0.5, 1 - 0.045], abs=1e-3)


@settings(deadline=None, max_examples=40)
@given(
    means=st.lists(st.floats(1e-3, 10.0), min_size=1, max_size=6),
    shifts=st.lists(st.floats(0.0, 10.0), min_size=6, max_size=6),
)
def test_quantiles_grow_with_the_share_and_lie_on_the_law(means, shifts):
    stages = [
        series(Deterministic(value_s=shift), Exponential(mean_s=mean), Exponential(mean_s=mean))
        for mean, shift in zip(means, shifts, strict=False)
    ]
    law = mixed(stages, np.ones(len(stages)))
    found = law.quantiles(SHARES)
    assert np.all(np.diff(found[0]) > 0)
    t = found[0][:, None] - np.array(shifts[: len(means)])
    truth = special.gammainc(2, np.maximum(t, 0.0) / np.array(means)).mean(axis=1)
    assert truth == pytest.approx(SHARES, abs=1e-4)
