from __future__ import annotations

import numpy as np
import pytest

from tidings.model.laws import (
    Deterministic,
    Exponential,
    Gamma,
    HyperExponential,
    LogNormal,
    PhaseType,
    Shifted,
    Uniform,
    Weibull,
    residual,
)
from tidings.theory.renewal import _inverted, averaged_dispersion, dispersion
from tidings.theory.time_grid import time_grid

X = np.array([0.003, 0.05, 0.3, 0.75, 1.2, 1.7, 1.95])


def test_a_poisson_stream_has_dispersion_one():
    assert np.all(dispersion(Exponential(mean_s=3.0), np.array([1e-9, 1.0, 1e9])) == 1.0)


def test_a_periodic_stream():
    x = np.array([0.1, 0.5, 1.0, 1.25, 7.5])
    part = x % 1.0
    truth = part * (1 - part) / x
    assert dispersion(Deterministic(value_s=60.0), 60.0 * x) == pytest.approx(truth, abs=1e-12)
    assert dispersion(Uniform(low_s=60.0, high_s=60.0 + 1e-9), 60.0 * x[:2]) == pytest.approx(
        truth[:2], abs=1e-6
    )


@pytest.mark.parametrize("mean_s", [1e-6, 1.0, 3600.0])
def test_a_uniform_stream_up_to_its_longest_interval(mean_s):
    truth = (4.0 * np.expm1(X / 2.0) - X - X**2) / X
    found = dispersion(Uniform(low_s=0.0, high_s=2.0 * mean_s), mean_s * X)
    assert found[X < 1.5] == pytest.approx(truth[X < 1.5], abs=3e-7)
    assert found == pytest.approx(truth, abs=1e-4)  # beside the corner at x = 2


def test_an_erlang_stream():
    x = np.array([0.01, 0.3, 1.0, 4.0, 30.0])
    truth = 0.5 + (1.0 - np.exp(-4.0 * x)) / (8.0 * x)  # two stages
    assert dispersion(Gamma(mean_s=2.0, shape=2.0), 2.0 * x) == pytest.approx(truth, abs=3e-7)


def test_a_hyperexponential_stream():
    law = HyperExponential(weights=(0.9, 0.1), means_s=(0.5, 5.5))
    # As a Markov-modulated stream: the phase is memory of rate g, so that
    # V'(t) = λ(1 + 2 (m(t) − λt)) and m(t) − λt = (c² − 1)/2 · (1 − e^{−gt})
    rates = np.array([2.0, 1.0 / 5.5])
    memory = float(rates @ np.array([0.1, 0.9]))  # 1/s, the other root of the renewal function
    x = np.array([0.05, 0.5, 3.0, 20.0, 200.0])
    rest = (1.0 - np.exp(-memory * x)) / (memory * x)
    truth = 1.0 + (law.scv - 1.0) * (1.0 - rest)
    assert dispersion(law, x) == pytest.approx(truth, rel=1e-6)


@pytest.mark.parametrize(
    "law",
    [
        Gamma(mean_s=1.0, shape=0.4),
        Gamma(mean_s=1.0, shape=60.0),
        LogNormal(mean_s=1.0, scv=2.0),
        Shifted(law=Exponential(mean_s=0.2), by_s=0.8),
        Uniform(low_s=0.5, high_s=1.5),
        PhaseType(initial=(0.6, 0.4), generator=((-2.0, 1.0), (0.0, -1.0))),
    ],
)
def test_long_and_short_times(law):
    far = dispersion(law, np.array([1e3, 2.9e3, 1e7]) * law.mean_s)
    assert far == pytest.approx(np.full(3, law.scv), rel=0.03)
    assert far[2] == law.scv
    if law.cdf(1e-9) < 1e-6:  # no clusters: the first event counts alone
        near = dispersion(law, np.array([1e-4 * law.mean_s]))
        assert near[0] == pytest.approx(1.0, abs=1e-3)


@pytest.mark.statistical
@pytest.mark.parametrize(
    "law",
    [
        Uniform(low_s=0.0, high_s=2.0),
        Gamma(mean_s=1.0, shape=3.5),
        Gamma(mean_s=1.0, shape=0.5),
        HyperExponential(weights=(0.8, 0.2), means_s=(0.5, 3.0)),
    ],
)
def test_dispersion_is_that_of_counted_events(law):
    rng = np.random.default_rng(5)
    runs, most = 40_000, 60
    first = residual(law).sample(rng, (runs, 1))
    moments = np.concatenate([first, law.sample(rng, (runs, most))], axis=1).cumsum(axis=1)
    times = np.array([0.4, 1.0, 2.5, 6.0]) * law.mean_s
    assert (moments[:, -1] > times[-1]).all()
    truth = dispersion(law, times)
    for t, expected in zip(times, truth, strict=True):
        counts = (moments <= t).sum(axis=1)
        squares = (counts - t / law.mean_s) ** 2  # the mean is known exactly
        error = squares.std() / np.sqrt(runs) / (t / law.mean_s)
        assert abs(squares.mean() / (t / law.mean_s) - expected) < 4.5 * error
        assert 9.0 * error < 0.15 * expected  # sharp enough to tell


def test_where_the_grid_cannot_tell_the_swing_of_a_periodic_stream_is_averaged():
    grid = time_grid(0.01, 1000.0)
    law = Deterministic(value_s=1.0)
    smooth = averaged_dispersion(law, grid.times_s, grid.step)
    early = grid.times_s < 1.5
    assert np.all(smooth[early] == dispersion(law, grid.times_s)[early])
    late = grid.times_s > 100.0
    assert smooth[late] * grid.times_s[late] == pytest.approx(np.full(late.sum(), 1 / 6), rel=0.15)
    # and the average over each step is exact
    k = int(np.flatnonzero(grid.times_s > 3.0)[0])
    t = grid.times_s[k] * np.exp(grid.step * (np.arange(20_000) + 0.5 - 10_000) / 20_000)
    swing = (t % 1.0) * (1.0 - t % 1.0)
    weights = t / t.sum()  # evenly in time, not in its logarithm
    assert smooth[k] * grid.times_s[k] == pytest.approx(float(swing @ weights), rel=1e-6)


@pytest.mark.parametrize("law", [LogNormal(mean_s=0.3, scv=0.11), Weibull(scale_s=2.0, shape=0.6)])
def test_curves_from_a_table_are_those_inverted_one_by_one(law):
    t_s = law.mean_s * np.geomspace(1e-5, 100.0, 57)
    assert dispersion(law, t_s) == pytest.approx(_inverted(law, t_s), abs=1e-5)
