from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from tidings.model.behaviour import Channel
from tidings.model.laws import (
    Deterministic,
    Empirical,
    Exponential,
    Gamma,
    LogNormal,
    Shifted,
    Uniform,
)
from tidings.theory.path_laws import (
    ClosedForm,
    Enclosed,
    Inverted,
    MarkovChain,
    Rounded,
    Workshop,
    path_law,
)
from tidings.theory.stages import NOTHING, Stage, channel_stage, in_series, law_stage


def series(*laws):
    stage = NOTHING
    for law in laws:
        stage = in_series(stage, law_stage(law))
    return stage


def test_a_path_of_losses_alone_is_a_step():
    stage = NOTHING
    for reliability in (0.9, 0.8, 0.5):
        channel = Channel(delay=Deterministic(value_s=0.1), reliability=reliability)
        stage = in_series(stage, channel_stage(channel))
    law = path_law(stage, Workshop())
    assert law.mass == pytest.approx(0.36, abs=1e-15)
    assert stage.lost == pytest.approx({"link": 0.64}, abs=1e-15)
    assert law.cdf(np.array([0.29, 0.3, 1.0])).value == pytest.approx([0.0, 0.36, 0.36], abs=1e-15)
    assert law.quantile(0.99) == pytest.approx(0.3, rel=1e-15)


def test_a_deadline_that_the_shifts_just_meet_is_met():
    law = path_law(series(*[Deterministic(value_s=0.1)] * 3), Workshop())
    assert law.shift_s > 0.3  # 0.1 + 0.1 + 0.1 in floating point
    assert law.cdf(0.3).value == 1.0
    assert law.cdf(0.3 * (1 - 1e-12)).value == 0.0


def test_no_deadline_means_everything_that_survives():
    law = path_law(
        channel_stage(Channel(delay=LogNormal(mean_s=1, scv=1), reliability=0.7)), Workshop()
    )
    assert law.cdf(math.inf).value == 0.7


@pytest.mark.parametrize(
    ("laws", "form"),
    [
        ((Uniform(low_s=0, high_s=1),), ClosedForm),
        ((Shifted(law=LogNormal(mean_s=1, scv=1), by_s=2), Deterministic(value_s=1)), ClosedForm),
        ((Exponential(mean_s=1), Gamma(mean_s=1, shape=4)), MarkovChain),
        ((Exponential(mean_s=1), Gamma(mean_s=1, shape=40)), Inverted),
        ((Exponential(mean_s=1), LogNormal(mean_s=1, scv=1)), Inverted),
        ((Exponential(mean_s=1), Uniform(low_s=0, high_s=1)), Rounded),
        ((Gamma(mean_s=1, shape=4), Uniform(low_s=0, high_s=1)), Inverted),
        (
            (Gamma(mean_s=1, shape=4), Empirical(edges_s=(0, 1, 1), weights=(0.5, 0.5))),
            Rounded,
        ),
        (
            (Gamma(mean_s=1, shape=0.5), Empirical(edges_s=(0, 1, 1), weights=(0.5, 0.5))),
            Enclosed,
        ),
    ],
)
def test_the_form_is_chosen_by_what_the_path_is_made_of(laws, form):
    stage = series(*laws)
    assert isinstance(path_law(stage, Workshop()).randomness, form)


def test_an_exponential_stage_is_exact_behind_a_shift():
    law = path_law(series(Deterministic(value_s=5.0), Exponential(mean_s=0.5)), Workshop())
    t = np.array([4.0, 5.0, 5.1, 9.0])
    truth = np.where(t > 5.0, -np.expm1(-(t - 5.0) / 0.5), 0.0)
    assert law.cdf(t).value == pytest.approx(truth, abs=1e-12)
    assert law.quantile(0.9) == pytest.approx(5.0 + 0.5 * math.log(10.0), rel=1e-12)
    assert law.mean_s == 5.5


def test_quantiles_invert_the_law_in_every_form():
    paths = [
        series(Exponential(mean_s=1), Exponential(mean_s=1)),
        series(Exponential(mean_s=1), LogNormal(mean_s=1, scv=1)),
        series(Exponential(mean_s=1), Uniform(low_s=0, high_s=1)),
    ]
    for stage in paths:
        law = path_law(stage, Workshop())
        for share in (0.05, 0.5, 0.99):
            value, error = law.cdf(law.quantile(share))
            assert float(value) == pytest.approx(share, abs=2 * float(error) + 1e-12)


def test_a_very_narrow_law_keeps_its_error_bound():
    law = path_law(
        series(Gamma(mean_s=1.0, shape=150.0), Gamma(mean_s=1.0, shape=150.0)), Workshop()
    )
    t = np.linspace(1.5, 2.5, 41)
    value, error = law.cdf(t)
    assert np.all(np.abs(value - special.gammainc(300.0, 150.0 * t)) <= error)
    assert error.max() < 1e-6


def test_the_order_of_stages_does_not_matter():
    parts = [
        law_stage(Exponential(mean_s=0.3)),
        channel_stage(Channel(delay=Gamma(mean_s=1, shape=2), reliability=0.9)),
        Stage(shift_s=0.25),
    ]
    workshop = Workshop()
    forward = in_series(in_series(parts[0], parts[1]), parts[2])
    backward = in_series(in_series(parts[2], parts[1]), parts[0])
    one, other = path_law(forward, workshop), path_law(backward, workshop)
    assert one.randomness is other.randomness
    assert one.cdf(1.7).value == other.cdf(1.7).value


@settings(deadline=None, max_examples=30)
@given(
    means=st.lists(st.floats(1e-3, 10.0), min_size=1, max_size=5),
    width=st.floats(1e-3, 10.0),
    early=st.floats(0.01, 30.0),
    longer=st.floats(0.0, 10.0),
)
def test_more_time_never_hurts(means, width, early, longer):
    stage = series(*(Exponential(mean_s=mean) for mean in means), Uniform(low_s=0, high_s=width))
    law = path_law(stage, Workshop())
    value, error = law.cdf(np.array([early, early + longer]))
    assert value[1] - value[0] >= -error.sum()
    assert np.all((value >= 0.0) & (value <= 1.0))
