from __future__ import annotations

import math

import numpy as np
import pytest

from tidings.model.laws import HyperExponential, PhaseType, phases, residual
from tidings.theory.faults.processes import alternating, exponential


def chain(law):
    found = phases(law)
    return found.initial, found.generator


UP = HyperExponential(weights=(0.3, 0.7), means_s=(1000.0, 50.0))
DOWN = PhaseType(initial=(0.5, 0.5), generator=((-0.1, 0.1), (0.0, -0.2)))


def test_shares_of_phases_are_stationary():
    process = alternating(chain(UP), chain(DOWN))
    assert process.stationary @ process.generator == pytest.approx(np.zeros(4), abs=1e-15)
    share = UP.mean_s / (UP.mean_s + DOWN.mean_s)
    assert process.availability == pytest.approx(share, rel=1e-14)


@pytest.mark.parametrize("time_s", [0.0, 1.0, 900.0, 1e5])
def test_exponential_times_have_the_textbook_memory(faulty, time_s):
    process = exponential(faulty.failure(0.9))
    gamma, sigma = 1 / 54_000, 1 / 6_000
    assert process.stays_up(time_s) == pytest.approx(0.9 * math.exp(-gamma * time_s), rel=1e-12)
    twice = 0.9 * (0.9 + 0.1 * math.exp(-(gamma + sigma) * time_s))
    assert process.up_twice(time_s) == pytest.approx(twice, rel=1e-12)


@pytest.mark.parametrize("time_s", [0.0, 3.0, 100.0, 2000.0])
def test_what_is_left_of_a_time_up_follows_its_residual_law(time_s):
    process = alternating(chain(UP), chain(DOWN))
    left = 1.0 - float(residual(UP).cdf(time_s))
    assert process.stays_up(time_s) == pytest.approx(process.availability * left, rel=1e-12)
