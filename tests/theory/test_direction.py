from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, special

from tidings.model.laws import Exponential, Uniform
from tidings.theory.direction import Order, relief, relieved_s
from tidings.theory.predicting import predict
from tidings.theory.service_sums import service_sums
from tidings.theory.workload import Server


@pytest.mark.parametrize("theta", [0.1, 0.7, 3.0])
def test_relief_is_the_double_integral_over_time(theta):
    """Φ = ∬ e(a) e(b) E[h_a(Q) g_b(Q)] da db, without transforms: over times, then over Q.

    From v on idle time grows by half the density at 0, E[Q] by it and −1, E[Q²] by 1 − 2 E[Q].
    """
    u = np.linspace(-18.0, 5.0, 801)
    a = np.exp(u)
    x = np.linspace(1e-3, 2.2, 151)
    v = x[:, None] ** 3
    place = (v - a) / np.sqrt(a)
    at_zero = 2.0 * np.exp(-0.5 * place**2) / np.sqrt(2.0 * np.pi * a) + 2.0 * special.ndtr(-place)
    idle = 0.5 * integrate.cumulative_simpson(at_zero * a, x=u, initial=0.0)
    later = integrate.cumulative_simpson(idle * a, x=u, initial=0.0)
    twice = np.exp(-theta * a) / np.sqrt(2.0 * np.pi * a)
    felt = integrate.simpson(twice * (a - idle), x=u)
    spread = integrate.simpson(twice * (a + a**2 - 2.0 * later - 2.0 * v * idle), x=u)
    weight = 2.0 * np.exp(-2.0 * v[:, 0]) * 3.0 * x**2
    found = integrate.simpson(weight * felt * spread, x=x)
    assert float(relief(np.array([theta]))[0]) == pytest.approx(found, rel=3e-3)


def test_work_relieved_by_hand():
    server = Server(rate_per_s=5.0, mean_s=0.15, sums=service_sums(Exponential(mean_s=0.15)))
    order = Order(third=2.0, unit_s=3.0)
    felt = float(relief(np.array([0.25 * 0.25 * 3.0 / 0.4]))[0])
    expected = 2.0 * 0.15**3 * felt / 3.0 / (4.0 * 0.25 * 0.4)
    assert relieved_s(server, 0.4, [order]) == pytest.approx(expected, rel=1e-12)
    assert relieved_s(server, 0.4, [order, order]) == pytest.approx(2.0 * expected, rel=1e-12)
    assert relieved_s(server, 0.4, []) == 0.0


@pytest.mark.statistical
def test_backwards_in_time_a_queue_behind_a_regular_one_waits_longer(make):
    """The same departures of an M/U/1 queue, served in their order and the other way round."""
    random = np.random.default_rng(7)
    differences = []
    for _ in range(40):
        arrivals = np.cumsum(random.exponential(0.2, 50_000))
        leaving = left(arrivals, random.uniform(0.0, 0.3, arrivals.size))
        services = random.uniform(0.0, 0.3, arrivals.size)
        ahead = left(leaving, services) - services - leaving
        turned = (leaving[-1] - leaving)[::-1]
        back = left(turned, services[::-1]) - services[::-1] - turned
        differences.append(float(back.mean() - ahead.mean()))
    error_s = float(np.std(differences, ddof=1) / np.sqrt(len(differences)))
    service = Uniform(low_s=0.0, high_s=0.3)
    wait_s = predict(make.line([service, service], rate_per_s=5.0)).brokers["wait_mean_s"][1]
    server = Server(rate_per_s=5.0, mean_s=0.15, sums=service_sums(service))
    work_s = 0.75 * (float(wait_s) + 0.1)
    # β = ¼; c² = 4/3 in events 16/3 and seconds 3.2
    order = Order(third=0.25 * 0.5 * (16.0 / 3.0) ** 3, unit_s=3.2)
    predicted_s = 2.0 * relieved_s(server, work_s, [order]) / 0.75
    assert error_s < 0.15 * predicted_s
    assert float(np.mean(differences)) == pytest.approx(predicted_s, abs=4.0 * error_s)


def left(arrivals, services):
    """When each leaves: Lindley by a running maximum."""
    done = np.cumsum(services)
    return done + np.maximum.accumulate(arrivals - (done - services))
