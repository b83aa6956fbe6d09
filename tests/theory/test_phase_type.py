from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import linalg, special

from tidings.theory.phase_type import chain_cdf, chain_in_series


def exponential(rate):
    return np.ones(1), np.array([[-rate]])


TIMES = np.array([1e-6, 1e-3, 0.1, 0.7, 1.0, 3.0, 20.0, 800.0, 1e7])


def test_one_phase_is_the_exponential_law():
    value, error = chain_cdf(exponential(2.0), TIMES)
    assert value == pytest.approx(-np.expm1(-2.0 * TIMES), abs=1e-14)
    assert np.all(np.abs(value + np.expm1(-2.0 * TIMES)) <= error)


@pytest.mark.parametrize("count", [2, 3, 8, 16])
def test_equal_rates_are_the_erlang_law(count):
    value, error = chain_cdf(chain_in_series([exponential(3.0)] * count), TIMES)
    truth = special.gammainc(count, 3.0 * TIMES)
    assert value == pytest.approx(truth, abs=1e-13)
    assert np.all(np.abs(value - truth) <= error)
    assert error.max() < 5e-12


@pytest.mark.parametrize("second", [1e-4, 0.5, 3.0, 1e3, 1e7])
def test_two_rates_are_the_hypoexponential_law(second):
    value, error = chain_cdf(chain_in_series([exponential(1.0), exponential(second)]), TIMES)
    left = (second * np.exp(-TIMES) - np.exp(-second * TIMES)) / (second - 1.0)
    assert value == pytest.approx(1.0 - left, abs=1e-12)
    assert error.max() < 1e-12


def test_nearly_equal_rates_do_not_blow_up():
    # 1 − e^−t (1 + t) − t²e^−t δ/2 + …: partial fractions would lose nine digits here
    delta = 1e-9
    value, _ = chain_cdf(chain_in_series([exponential(1.0), exponential(1.0 + delta)]), TIMES)
    erlang = special.gammainc(2, TIMES)
    assert value == pytest.approx(erlang + delta * TIMES**2 * np.exp(-TIMES) / 2, abs=1e-14)


def test_what_the_initial_shares_lack_takes_no_time():
    half = (np.array([0.5]), np.array([[-1.0]]))
    value, _ = chain_cdf(chain_in_series([half, half]), TIMES)
    truth = 0.25 - 0.5 * np.expm1(-TIMES) + 0.25 * special.gammainc(2, TIMES)
    assert value == pytest.approx(truth, abs=1e-14)


def test_no_phases_at_all_end_at_once():
    value, error = chain_cdf(chain_in_series([]), np.array([0.0, 1.0]))
    assert value.tolist() == [1.0, 1.0]
    assert error.tolist() == [0.0, 0.0]


@settings(deadline=None, max_examples=60)
@given(
    rates=st.lists(st.floats(0.01, 50.0), min_size=1, max_size=6),
    cycle=st.floats(0.0, 5.0),
    time=st.floats(1e-3, 50.0),
)
def test_any_chain_agrees_with_the_matrix_exponential(rates, cycle, time):
    initial, generator = chain_in_series([exponential(rate) for rate in rates])
    generator = generator.copy()
    generator[-1, 0] += cycle  # the last phase may go back to the first
    generator[-1, -1] -= cycle
    value, error = chain_cdf((initial, generator), np.array([time]))
    truth = 1.0 - float(initial @ linalg.expm(generator * time).sum(axis=1))
    size = np.linalg.norm(generator * time, 1)
    assert abs(float(value[0]) - truth) <= float(error[0]) + 1e-15 * max(size, 1.0) * len(rates)
    assert math.isfinite(error[0])
