from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special

from tidings.model.laws import (
    Deterministic,
    Exponential,
    Gamma,
    HyperExponential,
    LogNormal,
    Shifted,
    Uniform,
)
from tidings.theory.service_sums import service_sums


def test_constant_services():
    sums = service_sums(Deterministic(value_s=0.2))
    found, squared = sums.over(np.array([1, 3]), np.array([0.4, 3.5]))
    assert found == pytest.approx([0.6, 0.0], abs=1e-15)
    assert squared == pytest.approx([0.36, 0.0], abs=1e-15)


@pytest.mark.parametrize("count", [1, 5, 40])
def test_exponential_services(count):
    time = np.array([0.1, 1.0, 5.0, 60.0])
    found, squared = service_sums(Exponential(mean_s=7.0)).over(np.full(4, count), time)
    beyond = [special.gammaincc(count + k, time) for k in range(3)]
    mean, square = count * beyond[1], count * (count + 1) * beyond[2]
    assert found == pytest.approx(mean - time * beyond[0], abs=1e-12)
    assert squared == pytest.approx(square - 2 * time * mean + time**2 * beyond[0], abs=1e-9)


@pytest.mark.parametrize("count", [1, 2, 3, 8])
def test_uniform_services_are_those_of_irwin_and_hall(count):
    """P[U_1 + … + U_j > x] in closed form, integrated once."""
    time = np.array([0.2, 0.9, 1.5, 3.0, 7.0])
    x = time / 2.0  # uniform on [0, 2]
    below, below2 = np.zeros(x.size), np.zeros(x.size)
    for k in range(count + 1):
        term = np.maximum(x - k, 0.0) ** (count + 1) / math.factorial(count + 1)
        below += (-1) ** k * math.comb(count, k) * term  # E[(x − sum)⁺]
        twice = np.maximum(x - k, 0.0) ** (count + 2) / math.factorial(count + 2)
        below2 += (-1) ** k * math.comb(count, k) * 2.0 * twice  # E[((x − sum)⁺)²]
    truth = 2.0 * (below + count / 2.0 - x)
    found, squared = service_sums(Uniform(low_s=0.0, high_s=0.4)).over(np.full(5, count), time)
    assert found == pytest.approx(truth, abs=2e-4)
    both = count / 12.0 + (count / 2.0 - x) ** 2  # E[(sum − x)²]
    assert squared == pytest.approx(4.0 * (both - below2), abs=2e-3)


LAWS = [
    Uniform(low_s=0.5, high_s=1.5),
    Gamma(mean_s=2.0, shape=0.6),
    HyperExponential(weights=(0.7, 0.3), means_s=(0.5, 3.0)),
    LogNormal(mean_s=1.0, scv=0.8),
    Shifted(law=Exponential(mean_s=0.5), by_s=0.5),
]


@pytest.mark.parametrize("law", LAWS)
def test_at_time_0_a_sum_is_its_mean_and_far_out_nothing(law):
    count = np.array([1, 4, 16, 17, 100])
    sums = service_sums(law)
    first, second = sums.over(count, np.zeros(5))
    assert first == pytest.approx(count, rel=1e-3)
    assert second == pytest.approx(count * law.scv + count**2, rel=2e-3)
    assert sums.over(count, np.full(5, 1e4))[0] == pytest.approx(np.zeros(5), abs=1e-6)
    times = np.linspace(0.0, 60.0, 200)
    for each in (1, 16, 17, 40):
        values, _ = sums.over(np.full(200, each), times)
        assert np.all(np.diff(values) <= 1e-9)
        assert np.all(np.diff(values, 2) >= -1e-4)  # convex


@pytest.mark.statistical
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("count", [3, 16, 17, 60])
def test_sums_are_those_of_drawn_services(law, count):
    rng = np.random.default_rng(9)
    runs = 100_000
    total = np.zeros(runs)
    for _ in range(count):
        total += law.sample(rng, runs) / law.mean_s
    for time in (0.9 * count, count, 1.2 * count):
        over = np.maximum(total - time, 0.0)
        error = over.std() / math.sqrt(runs)
        found = float(service_sums(law).over(np.array([count]), np.array([time]))[0][0])
        assert abs(found - over.mean()) < 4.5 * error + 2e-4 * count
