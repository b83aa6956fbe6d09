from __future__ import annotations

import math

import numpy as np
import pytest

from tidings.model.laws import Deterministic, Exponential, HyperExponential, LogNormal
from tidings.theory import peaks, workload
from tidings.theory.dispersion import Leaving
from tidings.theory.mobility.arrivals import (
    PoissonArrivals,
    UnevenArrivals,
    VariableArrivals,
)
from tidings.theory.mobility.centre import OnOff, exponential_centre, mean_response_s
from tidings.theory.mobility.completion import completion
from tidings.theory.mobility.output import departing_dispersion, departing_scv
from tidings.theory.mobility.publishing import centre_peak_per_s
from tidings.theory.queues import mean_wait_s
from tidings.theory.service_sums import service_sums
from tidings.theory.time_grid import time_grid

CENTRES = {
    "exponential": exponential_centre(0.25, 2.0, 1.0),
    "constant service": OnOff(
        service=Deterministic(value_s=0.25),
        on=Exponential(mean_s=2.0),
        off=HyperExponential(weights=(0.7, 0.3), means_s=(0.4, 2.4)),
    ),
    "instant": OnOff(
        service=Deterministic(value_s=0.0),
        on=Exponential(mean_s=2.0),
        off=LogNormal(mean_s=1.0, scv=0.5),
    ),
}


@pytest.mark.statistical
@pytest.mark.parametrize("name", CENTRES)
def test_simulated_departures_have_this_dispersion_and_these_intervals(name, naive):
    centre, rate, until_s = CENTRES[name], 1.6, 30_000.0
    windows_s = np.array([0.1, 0.4, 2.1, 10.1])  # beside corners inversion is off by .005
    curves, scvs = [], []
    for rng in np.random.default_rng(5).spawn(12):
        arrivals = naive.poisson_arrivals(rng, rate, until_s)
        clock = naive.Clock(rng, centre.on, centre.off, 3.0 * until_s)
        services = centre.service.sample(rng, arrivals.size)
        departures = naive.onoff_departures(arrivals, services, clock)
        seen = departures[(departures > 200.0) & (departures < until_s - 200.0)]
        intervals = np.diff(seen)
        scvs.append(intervals.var() / intervals.mean() ** 2)
        curves.append([dispersion_of_counts(seen, width_s) for width_s in windows_s])
    noise = np.std(curves, axis=0, ddof=1) / math.sqrt(len(curves))
    difference = np.mean(curves, axis=0) - 1.0 - departing_dispersion(centre, rate, windows_s)
    assert np.all(noise < 0.03)
    assert np.all(np.abs(difference) < 4.5 * noise)
    scv_noise = np.std(scvs, ddof=1) / math.sqrt(len(scvs))
    assert scv_noise < 0.01 * np.mean(scvs)
    assert np.mean(scvs) == pytest.approx(departing_scv(centre, rate), abs=4.5 * scv_noise)


def dispersion_of_counts(times_s, width_s):
    counts = np.histogram(times_s, bins=np.arange(times_s[0], times_s[-1], width_s))[0]
    return counts.var() / counts.mean()


@pytest.mark.parametrize("name", ["exponential", "constant service"])
def test_departures_are_poisson_in_the_long_run_and_never_together(name):
    centre = CENTRES[name]
    soon, late = departing_dispersion(centre, 1.6, np.array([1e-5, 1e6]))
    assert abs(late) < 1e-4
    assert abs(soon) < 1e-4


def test_a_peer_that_is_hardly_ever_away_leaves_a_poisson_stream():
    centre = exponential_centre(0.25, 1e7, 1e-3)
    times_s = np.geomspace(0.01, 1e4, 20)
    assert np.abs(departing_dispersion(centre, 2.0, times_s)).max() < 1e-6  # Burke
    assert departing_scv(centre, 2.0) == pytest.approx(1.0, abs=1e-6)


def poisson_stream(rate, grid, peak_per_s):
    return Leaving(rate_per_s=rate, beyond=np.zeros(grid.points), peak_per_s=peak_per_s, grid=grid)


@pytest.mark.parametrize("peak_per_s", [0.9, 5.0])
def test_poisson_counts_wait_as_khinchine_says_whatever_the_peak(peak_per_s):
    service = Deterministic(value_s=1.0)
    grid = time_grid(1e-3, 1e4)
    server = workload.Server(rate_per_s=0.8, mean_s=1.0, sums=service_sums(service))
    found = peaks.wait_moments(server, np.ones(grid.points), grid, peak_per_s)
    plain_s = mean_wait_s(0.8, service)
    assert found.mean_s == pytest.approx(plain_s, rel=5e-3)
    square_s2 = 2.0 * plain_s**2 + 0.8 * 1.0 / (3.0 * 0.2)  # λ E[S³]/(3 (1 − ρ))
    assert found.square_s2 == pytest.approx(square_s2, rel=5e-3)


def test_no_burst_above_the_speed_of_the_queue_waits_more_than_at_that_speed():
    grid = time_grid(1e-3, 1e5)
    service = Exponential(mean_s=0.5)
    server = workload.Server(rate_per_s=0.2, mean_s=0.5, sums=service_sums(service))
    beyond = np.full(grid.points, 50.0)
    assert workload.wait_moments(server, 1.0 + beyond, grid).mean_s > 3.0
    bounded = peaks.wait_moments(server, 1.0 + beyond, grid, peak_per_s=1.0).mean_s
    assert mean_wait_s(0.2, service) < bounded < 1.05 * mean_wait_s(1.0, service)


def second_means_s(naive, first, rate, second, until_s):
    """Mean response of a second queue, plain or ON/OFF, behind an ON/OFF centre: runs."""
    found = []
    for rng in np.random.default_rng(11).spawn(10):
        arrivals = naive.poisson_arrivals(rng, rate, until_s)
        clock = naive.Clock(rng, first.on, first.off, 3.0 * until_s)
        middle = naive.onoff_departures(arrivals, first.service.sample(rng, arrivals.size), clock)
        if isinstance(second, OnOff):
            other = naive.Clock(rng, second.on, second.off, 3.0 * until_s)
            services = second.service.sample(rng, middle.size)
            left = naive.onoff_departures(middle, services, other)
        else:
            left = naive.fifo(middle, second.sample(rng, middle.size))
        found.append(float((left - middle)[arrivals > 0.05 * until_s].mean()))
    return np.mean(found), np.std(found, ddof=1) / math.sqrt(len(found))


FIRST = exponential_centre(0.0625, 10.0, 10.0)
BRIEF = exponential_centre(0.0625, 1.0, 1.0)
TANDEMS = [
    (FIRST, 0.8, Exponential(mean_s=0.0625), 0.3),
    (FIRST, 0.5, Exponential(mean_s=0.2), 0.3),
    (FIRST, 0.8, Exponential(mean_s=0.03), 0.1),
    (FIRST, 0.8, exponential_centre(0.0625, 1.5, 1.5), 0.25),
    (BRIEF, 0.8, exponential_centre(0.0625, 1.5, 1.5), 0.1),
]


@pytest.mark.statistical
@pytest.mark.parametrize(("first", "load", "second", "good"), TANDEMS)
def test_tandems_are_nearer_the_truth_than_if_poisson_at_high_load(
    first, load, second, good, naive
):
    rate = load * first.most_per_s
    truth, noise = second_means_s(naive, first, rate, second, until_s=12_000.0)
    assert noise < 0.08 * truth
    grid = time_grid(1e-4, 3e4)
    bursts = Leaving(
        rate_per_s=rate,
        beyond=departing_dispersion(first, rate, grid.times_s),
        peak_per_s=centre_peak_per_s(first),
        grid=grid,
    )
    arrivals = UnevenArrivals(leaving=bursts)
    if isinstance(second, OnOff):
        wait_s = arrivals.completion_wait(second).mean_s
        found, poisson = wait_s + second.demand_s + second.absence_s, mean_response_s(second, rate)
    else:
        found = arrivals.wait(second).mean_s + second.mean_s
        poisson = mean_wait_s(rate, second) + second.mean_s
    assert abs(found - truth) < 0.5 * abs(poisson - truth)
    assert found == pytest.approx(truth, rel=good, abs=4 * noise)


def test_descriptions_of_a_poisson_stream_agree():
    grid = time_grid(1e-3, 1e4)
    service = Exponential(mean_s=0.3)
    plain = PoissonArrivals(rate_per_s=1.5)
    for other in (
        VariableArrivals(rate_per_s=1.5, scv=1.0),
        VariableArrivals(rate_per_s=1.5, scv=1.0 + 2.0**-52),  # as the order of a sum leaves it
        UnevenArrivals(leaving=poisson_stream(1.5, grid, 1.5)),
    ):
        assert other.poisson
        assert other.wait(service) == pytest.approx(plain.wait(service), rel=1e-12)
        assert other.thinned(0.5).rate_per_s == 0.75
        found = other.completion_wait(FIRST)
        assert found.mean_s == pytest.approx(plain.wait(completion(FIRST)).mean_s, rel=1e-9)


def test_what_leaves_a_centre_is_bursty_by_every_description_but_the_published_one():
    grid = time_grid(1e-3, 1e4)
    assert PoissonArrivals(rate_per_s=4.0).after(FIRST).poisson
    assert VariableArrivals(rate_per_s=4.0, scv=1.0).after(FIRST).scv > 5.0
    after = UnevenArrivals(leaving=poisson_stream(4.0, grid, 4.0)).after(FIRST)
    exact = departing_dispersion(FIRST, 4.0, grid.times_s)
    assert after.leaving.beyond == pytest.approx(exact, abs=1e-12)
    assert after.leaving.peak_per_s == 16.0


def test_a_centre_hands_over_one_event_a_service_at_most_however_long_it_was_away():
    assert centre_peak_per_s(exponential_centre(0.0625, 109.0, 121.5)) == 16.0
    assert centre_peak_per_s(CENTRES["instant"]) > 100.0
