from __future__ import annotations

import itertools
from dataclasses import replace
from functools import reduce

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.model.laws import Empirical, Exponential, Uniform
from tidings.theory.lattice import Lattice, bracket
from tidings.theory.path_laws import ENCLOSED_ERROR, Enclosed, Workshop, path_law
from tidings.theory.stages import in_series, law_stage


def enclosed(laws, points=1 << 10):
    stage = reduce(in_series, map(law_stage, laws))
    form = Enclosed(delays=stage.delays, workshop=Workshop(), most_points=points)
    return replace(path_law(stage, Workshop()), randomness=form)


def two_uniforms(a, b, t):
    """P[U(0, a) + U(0, b) ≤ t]."""

    def square(x):
        return np.maximum(x, 0.0) ** 2

    return (square(t) - square(t - a) - square(t - b) + square(t - a - b)) / (2.0 * a * b)


@settings(deadline=None, max_examples=60)
@given(
    a=st.floats(0.01, 100.0),
    b=st.floats(0.01, 100.0),
    share=st.floats(0.001, 1.5),
)
def test_the_bracket_holds_the_sum_of_two_uniform_delays(a, b, share):
    t = np.array([share * (a + b)])
    laws = [Uniform(low_s=0.0, high_s=a), Uniform(low_s=0.0, high_s=b)]
    value, error = enclosed(laws).cdf(t)
    assert abs(float(value[0] - two_uniforms(a, b, t)[0])) <= error[0]
    assert error[0] < 0.02 or share < 0.1 or min(a, b) < 0.1 * max(a, b)


@settings(deadline=None, max_examples=60)
@given(
    width=st.floats(0.01, 10.0),
    mean=st.floats(0.01, 10.0),
    t=st.floats(0.001, 60.0),
)
def test_the_bracket_holds_a_uniform_and_an_exponential_delay(width, mean, t):
    laws = [Uniform(low_s=0.0, high_s=width), Exponential(mean_s=mean)]
    value, error = enclosed(laws).cdf(np.array([t]))

    def integral(x):
        x = max(x, 0.0)
        return x + mean * np.expm1(-x / mean)

    truth = (integral(t) - integral(t - width)) / width
    assert abs(float(value[0]) - truth) <= error[0]


@settings(deadline=None, max_examples=60)
@given(
    first=st.lists(st.integers(0, 12), min_size=1, max_size=4, unique=True),
    second=st.lists(st.integers(0, 12), min_size=1, max_size=4, unique=True),
    t=st.integers(1, 30),
)
def test_the_bracket_holds_sums_of_atoms(first, second, t):
    def atoms(values):
        values = sorted(values)
        edges = [float(edge) / 7 for value in values for edge in (value, value)]
        weights = [1.0 if i % 2 == 0 else 0.0 for i in range(len(edges) - 1)]
        total = sum(weights)
        return Empirical(edges_s=tuple(edges), weights=tuple(w / total for w in weights))

    value, error = enclosed([atoms(first), atoms(second)]).cdf(np.array([t / 7]))
    sums = [a + b for a, b in itertools.product(first, second)]
    below = sum(each < t for each in sums) / len(sums)
    at_most = sum(each <= t for each in sums) / len(sums)
    # a sum of sevenths may miss t/7 by rounding: the truth is one of the two sides of the step
    assert value[0] - error[0] <= at_most
    assert value[0] + error[0] >= below


def test_a_finer_lattice_is_narrower():
    laws = [Uniform(low_s=0.0, high_s=1.0), Uniform(low_s=0.0, high_s=1.0)]
    errors = [float(enclosed(laws, 1 << n).cdf(np.array([0.9])).error[0]) for n in (6, 8, 10, 12)]
    for coarse, fine in itertools.pairwise(errors):
        assert fine == pytest.approx(coarse / 4, rel=0.05)


def test_refines_until_the_wanted_error_is_reached():
    laws = [Uniform(low_s=0.0, high_s=1e-2)] * 6
    value, error = enclosed(laws, 1 << 16).cdf(np.array([0.029, 0.03, 0.031]))
    assert error.max() <= ENCLOSED_ERROR
    assert value[1] == pytest.approx(0.5, abs=error[1])


def test_what_runs_over_the_end_hardly_returns():
    lattice = Lattice(step_s=1.0, points=64)
    uniform = lattice.image(np.minimum(np.arange(1, 66) / 60.0, 1.0))  # mean about 30 steps
    value, error = bracket(lattice, uniform**8, uniform**8, np.array([20.0]))
    # the sum of eight has mean 240, far beyond the end; P[sum ≤ 20] = C(28, 8)/60^8
    assert value[0] == pytest.approx(3108105 / 60**8, abs=1e-9)
    assert error[0] < 1e-8
