from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import brentq

from tidings.model.laws import Deterministic, Exponential, Gamma, HyperExponential, Uniform
from tidings.theory import queues
from tidings.theory.renewal import averaged_dispersion
from tidings.theory.service_sums import service_sums
from tidings.theory.time_grid import time_grid
from tidings.theory.workload import Server, _share_of_count, wait_moments, work_cumulants


def server(rate_per_s, service):
    return Server(rate_per_s=rate_per_s, mean_s=service.mean_s, sums=service_sums(service))


# E[S³] of each law
THIRD = {
    Exponential: lambda law: 6.0 * law.mean_s**3,
    Deterministic: lambda law: law.value_s**3,
    Uniform: lambda law: law.high_s**3 / 4.0,
    Gamma: lambda law: law.mean_s**3 * (1.0 + law.scv) * (1.0 + 2.0 * law.scv),
    HyperExponential: lambda law: 6.0 * float(np.array(law.weights) @ np.array(law.means_s) ** 3),
}


def grid_for(service, longest_s):
    return time_grid(3e-3 * service.mean_s, longest_s)


@pytest.mark.parametrize(
    "service",
    [
        Exponential(mean_s=0.1),
        Deterministic(value_s=0.1),
        Uniform(low_s=0.0, high_s=0.2),
        Gamma(mean_s=0.1, shape=20.0),
        HyperExponential(weights=(0.9, 0.1), means_s=(0.05, 0.55)),
    ],
)
@pytest.mark.parametrize("load", [0.05, 0.3, 0.6, 0.75, 0.9, 0.95, 0.99])
def test_poisson_arrivals_give_the_wait_of_pollaczek_and_khinchine(service, load):
    rate = load / service.mean_s
    grid = grid_for(service, 100.0 * service.mean_s / (1.0 - load) ** 2)
    found, square = wait_moments(server(rate, service), np.ones(grid.points), grid)
    exact = queues.mean_wait_s(rate, service)
    assert abs(found - exact) < 1e-3 * max(1.0, service.scv) * (exact + service.mean_s)
    third = THIRD[type(service)](service)  # E[S³]
    exact2 = 2.0 * exact**2 + rate * third / (3.0 * (1.0 - load))
    assert abs(square - exact2) < 4e-3 * max(1.0, service.scv) * (exact2 + service.mean_s**2)


@pytest.mark.parametrize("scale", [1e-6, 3600.0])
def test_the_unit_of_time_does_not_matter(scale):
    service, interval = Uniform(low_s=0.0, high_s=0.2), Deterministic(value_s=0.13)

    def wait(scale):
        one, other = interval.scaled(scale), service.scaled(scale)
        grid = time_grid(3e-4 * scale, 30.0 * scale)
        curve = averaged_dispersion(one, grid.times_s, grid.step)
        return wait_moments(server(1.0 / one.mean_s, other), curve, grid).mean_s

    assert wait(scale) == pytest.approx(scale * wait(1.0), rel=1e-9)


@pytest.mark.parametrize("load", [0.3, 0.5, 0.75, 0.9])
@pytest.mark.parametrize(
    ("interval", "accuracy"),
    [
        (Deterministic(value_s=1.0), 0.002),
        (Uniform(low_s=0.0, high_s=2.0), 0.02),
        (Gamma(mean_s=1.0, shape=4.0), 0.02),
    ],
)
def test_regular_renewal_arrivals_and_exponential_service(interval, accuracy, load):
    """GI/M/1: the wait is exact from the root of σ = A*((1 − σ)/E[S]). Accuracy of the sojourn."""
    service = Exponential(mean_s=load)

    def gap(sigma):
        return float(interval.transform((1.0 - sigma) / service.mean_s).real) - sigma

    sigma = brentq(gap, 1e-12, 1.0 - 1e-3 * (1.0 - load))
    exact = service.mean_s * sigma / (1.0 - sigma)
    grid = grid_for(service, 3e3)
    found, square = wait_moments(
        server(1.0, service), averaged_dispersion(interval, grid.times_s, grid.step), grid
    )
    # An arrival waits with probability σ, and then for an exponential time: p = 2E[W]²/E[W²].
    assert abs(2.0 * found**2 / square - sigma) < 0.5 * abs(load - sigma)  # no M/M/1 wait
    assert abs(found - exact) < accuracy * (exact + service.mean_s)


@pytest.mark.parametrize(("load", "accuracy"), [(0.3, 0.2), (0.75, 0.08), (0.9, 0.03)])
def test_bursty_renewal_arrivals_are_waited_for_too_long(load, accuracy):
    """Two moments of counts are not all of a burst: the less, the busier the station is."""
    interval = HyperExponential(weights=(0.9, 0.1), means_s=(0.5, 5.5))
    service = Exponential(mean_s=load)

    def gap(sigma):
        return float(interval.transform((1.0 - sigma) / service.mean_s).real) - sigma

    sigma = brentq(gap, 1e-12, 1.0 - 1e-3 * (1.0 - load))
    exact = service.mean_s * sigma / (1.0 - sigma)
    grid = grid_for(service, 3e4)
    found, _ = wait_moments(
        server(1.0, service), averaged_dispersion(interval, grid.times_s, grid.step), grid
    )
    assert 0.0 < found - exact < accuracy * (exact + service.mean_s)


def waits_by_phase(streams, service, runs, rng):
    """Mean waits behind periodic streams of period 1, one for each draw of their phases."""
    periods, warm = 160, 80
    phases = np.sort(rng.random((runs, streams)), axis=1)
    gaps = np.diff(np.concatenate([phases, phases[:, :1] + 1.0], axis=1), axis=1)
    wait, total = np.zeros(runs), np.zeros(runs)
    for period in range(periods):
        for k in range(streams):
            if period >= warm:
                total += wait
            wait = np.maximum(wait + service.sample(rng, runs) - gaps[:, k], 0.0)
    return total / (streams * (periods - warm))


@pytest.mark.statistical
@pytest.mark.parametrize("load", [0.5, 0.75])
@pytest.mark.parametrize("streams", [2, 10])
def test_periodic_streams_of_equal_period(streams, load):
    """Averaged over phases; exponential services within noise, uniform ones up to a tenth high."""
    grid = time_grid(3e-3 * load / streams, 1e3)
    curve = averaged_dispersion(Deterministic(value_s=1.0), grid.times_s, grid.step)
    rng = np.random.default_rng(3)

    service = Exponential(mean_s=load / streams)
    means = waits_by_phase(streams, service, 1000, rng)
    error = means.std() / math.sqrt(means.size)
    found = wait_moments(server(float(streams), service), curve, grid).mean_s
    assert abs(found - means.mean()) < 4.5 * error
    poisson = queues.mean_wait_s(float(streams), service)
    assert abs(poisson - means.mean()) > 9.0 * error  # sharp enough to tell

    service = Uniform(low_s=0.0, high_s=2.0 * load / streams)
    means = waits_by_phase(streams, service, 1000, rng)
    error = means.std() / math.sqrt(means.size)
    found = wait_moments(server(float(streams), service), curve, grid).mean_s
    assert -4.5 * error < found - means.mean() < 0.1 * means.mean() + 4.5 * error


@pytest.mark.parametrize("mean", [0.2, 1.0, 3.3, 40.0])
@pytest.mark.parametrize("variance", [0.0, 0.05, 0.5, 0.97, 1.0, 1.3, 8.0])
def test_counts_have_their_two_moments(mean, variance):
    count = np.arange(0, 3000)
    shares = _share_of_count(count, np.full(3000, mean), np.full(3000, variance))
    assert shares.sum() == pytest.approx(1.0, abs=1e-9)
    assert float(shares @ count) == pytest.approx(mean, rel=1e-9)
    found = float(shares @ (count - mean) ** 2) / mean
    part = mean - math.floor(mean)
    least = part * (1.0 - part) / mean  # whole numbers cannot be more regular
    assert found == pytest.approx(max(variance, least), abs=1e-9)


def test_no_work_where_nothing_can_pile_up():
    service = Deterministic(value_s=0.5)
    grid = grid_for(service, 1e3)
    curve = averaged_dispersion(Deterministic(value_s=1.0), grid.times_s, grid.step)
    assert wait_moments(server(1.0, service), curve, grid).mean_s < 1e-3 * service.mean_s
    work_s, _ = work_cumulants(server(1.0, service), curve, grid)
    assert work_s == pytest.approx(0.125, rel=1e-2)  # ρ E[S]/2
