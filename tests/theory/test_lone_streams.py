"""Brokers that one publisher alone feeds."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from tidings.model.behaviour import Channel
from tidings.model.laws import Deterministic, Exponential, Gamma, HyperExponential, Uniform
from tidings.theory.lone_streams import LoneStream, lone_wait
from tidings.theory.path_laws import Workshop, path_law
from tidings.theory.predicting import predict
from tidings.theory.queues import whole_law
from tidings.theory.stages import in_series, law_stage

CONSTANT = Deterministic(value_s=1.0)


def moments(interval, service, kept=1.0):
    stream = LoneStream(interval=interval, kept=kept)
    found = lone_wait(stream, service)
    return None if found is None else found.moments


def fed_by(make, interval, service, *, lifetime_s, link=None):
    """One publisher, one broker, one subscriber."""
    system = make.line([service], lifetime_s=lifetime_s)
    publisher = replace(system.publishers[0], every=interval, link=link or Channel())
    return replace(system, publishers=(publisher,))


def on_time(system):
    return float(predict(system).subscribers["on_time"].iloc[0])


@pytest.mark.parametrize("load", [0.01, 0.5, 0.9, 0.99])
def test_poisson_arrivals_make_it_mm1(load):
    found = moments(Exponential(mean_s=1.0), Exponential(mean_s=load))
    assert found.mean_s == pytest.approx(load**2 / (1.0 - load), rel=1e-10)
    assert found.square_s2 == pytest.approx(2.0 * load**3 / (1.0 - load) ** 2, rel=1e-10)


@pytest.mark.parametrize("load", [0.2, 0.7, 0.95])
def test_erlang_intervals_by_their_quadratic(load):
    """E₂/M/1: σ = (2ρ/(2ρ + 1 − σ))², and apart from 1 one root below 1 is left."""
    found = moments(Gamma(mean_s=1.0, shape=2.0), Exponential(mean_s=load))
    sigma = 0.5 * (1.0 + 4.0 * load - math.sqrt(1.0 + 8.0 * load))
    assert found.mean_s == pytest.approx(load * sigma / (1.0 - sigma), rel=1e-10)
    assert 2.0 * found.mean_s**2 / found.square_s2 == pytest.approx(sigma, rel=1e-10)


def test_a_thinned_stream_is_one_of_longer_intervals():
    bursty = HyperExponential(weights=(0.3, 0.7), means_s=(2.0, 4.0 / 7.0))
    kept, z = 0.4, 1.7
    thinned = LoneStream(interval=bursty, kept=kept)
    whole = bursty.transform(z).real
    series = sum(kept * (1.0 - kept) ** n * whole ** (n + 1) for n in range(200))
    assert thinned.transform(z) == pytest.approx(series, rel=1e-12)
    poisson = moments(Exponential(mean_s=0.4), Exponential(mean_s=0.7), kept=0.4)
    assert poisson.mean_s == pytest.approx(
        moments(Exponential(mean_s=1.0), Exponential(mean_s=0.7)).mean_s, rel=1e-10
    )


@pytest.mark.parametrize(
    ("interval", "kept"),
    [(CONSTANT, 1.0), (Uniform(low_s=0.0, high_s=2.0), 1.0), (Deterministic(value_s=0.8), 0.8)],
)
def test_with_exponential_services_the_sojourn_is_exponential(make, interval, kept):
    """On time r (1 − e^−xd): x from iterating σ = T*(μ(1 − σ)), which converges from below."""
    service, lifetime_s = Exponential(mean_s=0.75), 2.0
    sigma = 0.0
    for _ in range(2_000):
        whole = float(interval.transform((1.0 - sigma) / 0.75).real)
        sigma = kept * whole / (1.0 - (1.0 - kept) * whole)
    link = Channel(reliability=kept, delay=Deterministic(value_s=0.5))
    system = fed_by(make, interval, service, lifetime_s=lifetime_s + 0.5, link=link)
    expected = -kept * math.expm1(-(1.0 - sigma) / 0.75 * lifetime_s)
    assert on_time(system) == pytest.approx(expected, rel=1e-11)


def test_nobody_waits_where_no_service_outlasts_the_shortest_interval(make):
    service = Deterministic(value_s=2.0 / 3.0)
    assert moments(CONSTANT, service) == (0.0, 0.0)
    assert on_time(fed_by(make, CONSTANT, service, lifetime_s=2.0 / 3.0)) == 1.0
    assert moments(Uniform(low_s=0.5, high_s=1.5), Uniform(low_s=0.0, high_s=0.5)) == (0.0, 0.0)
    jitter = Channel(delay=Exponential(mean_s=0.1))  # what arrives is no longer periodic
    assert on_time(fed_by(make, CONSTANT, service, lifetime_s=2.0 / 3.0, link=jitter)) < 1.0


@pytest.mark.parametrize("service", [Uniform(low_s=0.0, high_s=1.5), Gamma(mean_s=0.75, shape=3.0)])
def test_constant_intervals_against_lindleys_recursion(service):
    """W → (W + S − T)⁺ on a fine lattice until it stands still."""
    found = moments(CONSTANT, service)
    step_s, size = 1.0 / 256.0, 1 << 13
    edges_s = step_s * (np.arange(size) + 0.5)
    served = np.diff(service.cdf(edges_s), prepend=0.0)
    image, wait = np.fft.rfft(served, 2 * size), np.zeros(size)
    wait[0] = 1.0
    for _ in range(200):
        longer = np.fft.irfft(np.fft.rfft(wait, 2 * size) * image)
        wait = np.concatenate([[longer[:257].sum()], longer[257 : size + 256]])
    times_s = step_s * np.arange(size)
    assert found.mean_s == pytest.approx(wait @ times_s, rel=2e-3)
    assert found.square_s2 == pytest.approx(wait @ times_s**2, rel=4e-3)


@pytest.mark.parametrize(("load", "kept"), [(0.75, 1.0), (0.9, 0.5)])
def test_poisson_arrivals_are_pollaczek_and_khinchines_whatever_the_service(load, kept):
    """The law of a lattice walk beside the geometric sum of residual services."""
    service, interval = Uniform(low_s=0.0, high_s=2.0), Exponential(mean_s=kept / load)
    found = lone_wait(LoneStream(interval=interval, kept=kept), service)
    assert found.moments.mean_s == pytest.approx(load * 2.0 / 3.0 / (1.0 - load), rel=1e-4)
    assert found.law.weights[0] == pytest.approx(1.0 - load, abs=2e-5)
    exact = path_law(whole_law(load, service), Workshop())
    mine = path_law(in_series(law_stage(found.law), law_stage(service)), Workshop())
    t_s = np.array([0.3, 1.0, 2.5, 6.0])
    assert mine.cdf(t_s).value == pytest.approx(exact.cdf(t_s).value, abs=2e-5)


def test_uniform_intervals_and_constant_services_against_lindleys_recursion(make):
    """U/D/1 at ρ = .9: W → (W + S − T)⁺ for two million events."""
    rng = np.random.default_rng(11)
    steps = 0.9 - rng.uniform(0.0, 2.0, 2_000_000)
    walk = np.cumsum(steps)
    waits = walk - np.minimum.accumulate(np.minimum(walk, 0.0))
    batches = (waits <= 1.1).reshape(40, -1).mean(axis=1)
    error = batches.std(ddof=1) / math.sqrt(40)
    assert error < 2e-3
    found = on_time(
        fed_by(
            make,
            Uniform(low_s=0.0, high_s=2.0),
            Deterministic(value_s=0.9),
            lifetime_s=2.0,
        )
    )
    assert found == pytest.approx(batches.mean(), abs=4.0 * error)


def test_what_only_curves_can_tell():
    assert moments(CONSTANT, Deterministic(value_s=0.6), kept=0.7) == (0.0, 0.0)
    assert moments(Deterministic(value_s=0.5), Deterministic(value_s=0.3**0.5), kept=0.5) is None
    assert moments(CONSTANT, Uniform(low_s=0.0, high_s=2.0 - 1e-5)) is None  # too near full load
