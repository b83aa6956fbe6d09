from __future__ import annotations

import math

import numpy as np
import pytest

from tidings.model.laws import Deterministic, Exponential, Gamma, Uniform
from tidings.theory.displacement import differences, displacing
from tidings.theory.renewal import averaged_dispersion
from tidings.theory.time_grid import time_grid


@pytest.mark.parametrize(
    ("law", "wait_s", "load"),
    [
        (Exponential(mean_s=0.2), 0.0, 0.0),
        (Uniform(low_s=1.0, high_s=3.0), 0.0, 0.0),
        (Deterministic(value_s=0.1), 0.3, 0.7),
        (Gamma(mean_s=1e-4, shape=3.0), 5e-4, 0.9),
    ],
)
def test_differences_have_the_right_mean_square(law, wait_s, load):
    sizes_s, weights = differences(law, wait_s, load)
    assert weights.sum() == pytest.approx(1.0, abs=1e-12)
    waiting = wait_s**2 * (2.0 / load - 1.0) if load else 0.0
    variance = law.scv * law.mean_s**2 + waiting
    assert float(weights @ sizes_s**2) == pytest.approx(2.0 * variance, rel=0.02)


def test_the_difference_of_two_exponentials_is_exponential():
    sizes_s, weights = differences(Exponential(mean_s=2.0), 0.0, 0.0)
    below = np.cumsum(weights)[sizes_s > 0.1]
    ends = sizes_s[sizes_s > 0.1]
    # a group lies around its mean: half of it is not yet below
    middle = below - 0.5 * weights[sizes_s > 0.1]
    assert middle == pytest.approx(-np.expm1(-ends / 2.0), abs=0.005)


def test_nothing_is_displaced_by_a_constant():
    grid = time_grid(0.01, 100.0)
    matrix = displacing(Deterministic(value_s=0.0), 0.0, 0.0, grid)
    assert matrix == pytest.approx(np.eye(grid.points), abs=1e-9)


def test_a_poisson_stream_stays_poisson():
    grid = time_grid(0.01, 100.0)
    matrix = displacing(Uniform(low_s=0.0, high_s=5.0), 0.0, 0.0, grid)
    assert np.all(matrix @ np.zeros(grid.points) == 0.0)


def test_in_the_long_run_displacement_changes_nothing():
    grid = time_grid(0.01, 1e4)
    for beyond in (-0.6, 3.0):
        after = displacing(Exponential(mean_s=1.0), 0.0, 0.0, grid) @ np.full(grid.points, beyond)
        assert after[-1] == pytest.approx(beyond, rel=1e-3)
        assert abs(after[0]) < 0.02 * abs(beyond)  # and in the short run nothing is left


def test_a_periodic_stream_displaced_by_exponentials():
    """E(t) = −t² + … of a period of 1, in closed form for short delays and times."""
    mean_s = 0.02
    grid = time_grid(1e-3, 1e3)
    t = grid.times_s
    found = displacing(Exponential(mean_s=mean_s), 0.0, 0.0, grid) @ (
        averaged_dispersion(Deterministic(value_s=1.0), t, grid.step) - 1.0
    )
    # Within the period E(t) = −t², so E' = E(t + Δ)² − E(Δ)² = −t² whatever Δ is.
    inside = (t > 0.01) & (t < 0.5)
    assert found[inside] == pytest.approx(-t[inside], rel=0.01)
    # Beyond it, N(t) is a sum of independent flags: Var = Σ p_k (1 − p_k), averaged over phases.
    phases = (np.arange(2000) + 0.5) / 2000
    for time_s in (1.0, 2.0, 3.0):
        total = np.zeros(phases.size)
        for k in range(-3, 6):
            at = k + phases  # published; arrives later by an exponential time
            share = np.where(at < time_s, -np.expm1(-(time_s - at) / mean_s), 0.0)
            share -= np.where(at < 0.0, -np.expm1(at / mean_s), 0.0)
            total += share * (1.0 - share)
        mean = []
        for phase in phases:  # and the variance of the mean over phases
            at = np.arange(-3, 6) + phase
            share = np.where(at < time_s, -np.expm1(-np.maximum(time_s - at, 0) / mean_s), 0.0)
            share -= np.where(at < 0.0, -np.expm1(np.minimum(at, 0) / mean_s), 0.0)
            mean.append(share.sum())
        variance = total.mean() + np.var(mean)
        here = np.interp(math.log(time_s), np.log(t), 1.0 + found)
        # beside a corner (slopes −1 and 1) a curve is known to half a step of the grid
        assert here * time_s == pytest.approx(variance, abs=0.5 * grid.step * time_s)
