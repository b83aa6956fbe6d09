from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, special

from tidings.model.laws import (
    Deterministic,
    Empirical,
    Exponential,
    Gamma,
    HyperExponential,
    LogNormal,
    Shifted,
    Uniform,
)
from tidings.model.reading import loads
from tidings.simulation.run import simulate
from tidings.theory import predict
from tidings.theory.lifetimes import _summed, on_time, shorter
from tidings.theory.path_laws import Workshop, path_law
from tidings.theory.stages import NOTHING, Stage, in_series, law_stage


def series(*laws, survives=1.0):
    stage = Stage(survives=survives, lost={"link": 1.0 - survives} if survives < 1 else {})
    for law in laws:
        stage = in_series(stage, law_stage(law))
    return stage


def share(stage, *lifetimes):
    return on_time(stage, path_law(stage, Workshop()), shorter(*lifetimes))


def test_the_shorter_one_counts():
    assert shorter(None, None).value_s == math.inf
    assert shorter(Deterministic(value_s=2.0), Deterministic(value_s=3.0)).value_s == 2.0
    assert math.isnan(shorter(Deterministic(value_s=2.0), Exponential(mean_s=1.0)).value_s)
    assert share(NOTHING, None, None).value == 1.0


@settings(deadline=None, max_examples=30)
@given(
    delay=st.floats(0.01, 10.0),
    life=st.floats(0.01, 10.0),
    other=st.floats(0.01, 10.0),
    shift=st.floats(0.0, 2.0),
)
def test_exponential_delay_and_exponential_lifetimes(delay, life, other, shift):
    stage = series(Exponential(mean_s=delay), Deterministic(value_s=shift), survives=0.75)
    theta = 1.0 / life + 1.0 / other
    truth = 0.75 * math.exp(-theta * shift) / (1.0 + theta * delay)
    value, error = share(stage, Exponential(mean_s=life), Exponential(mean_s=other))
    assert abs(value - truth) <= error
    assert error < 1e-11


def test_a_mixture_of_exponential_lifetimes():
    stage = series(Exponential(mean_s=0.5))
    law = HyperExponential(weights=(0.3, 0.7), means_s=(0.2, 2.0))
    truth = 0.3 / (1 + 0.5 / 0.2) + 0.7 / (1 + 0.5 / 2.0)
    assert share(stage, law).value == pytest.approx(truth, abs=1e-13)


@pytest.mark.parametrize("mean_s", [1e-4, 0.05, 1.0, 30.0])
@pytest.mark.parametrize("shift_s", [0.0, 0.3, 2.5])
def test_uniform_lifetimes_within_the_stated_error(mean_s, shift_s):
    stage = series(Exponential(mean_s=mean_s), Deterministic(value_s=shift_s))
    low, high = 0.2, 2.2

    def summed(t):  # ∫ F from the shift to t
        x = max(t - shift_s, 0.0)
        return x + mean_s * math.expm1(-x / mean_s)

    truth = (summed(high) - summed(low)) / (high - low)
    value, error = share(stage, Uniform(low_s=low, high_s=high))
    assert abs(value - truth) <= error
    assert error < 1e-5


def test_the_sum_over_cells_agrees_with_the_transform():
    stage = series(Exponential(mean_s=0.4), Gamma(mean_s=0.3, shape=3.0))
    for law in (Exponential(mean_s=0.8), HyperExponential(weights=(0.5, 0.5), means_s=(0.1, 3.0))):
        exact = share(stage, law).value
        value, error = _summed(path_law(stage, Workshop()), shorter(law))
        assert abs(value - exact) <= error
        assert error < 1e-5


def test_a_certain_lifetime_cuts_a_random_one_short():
    stage = series(Exponential(mean_s=0.5))
    mu, theta, end = 2.0, 1.0, 0.7
    # P[D ≤ min(L, d)] = ∫₀^d μ e^{−μt} e^{−θt} dt
    truth = mu / (mu + theta) * -math.expm1(-(mu + theta) * end)
    value, error = share(stage, Exponential(mean_s=1.0), Deterministic(value_s=end))
    assert abs(value - truth) <= error
    assert error < 1e-5


def test_the_shorter_of_two_random_lifetimes():
    stage = series(Gamma(mean_s=0.5, shape=2.0))
    one, other = Uniform(low_s=0.0, high_s=1.5), LogNormal(mean_s=1.0, scv=0.5)

    def density(t):
        return 16.0 * t * math.exp(-4.0 * t) * (1 - t / 1.5) * (1.0 - float(other.cdf(t)))

    truth, _ = integrate.quad(density, 0.0, 1.5, epsabs=1e-12)
    value, error = share(stage, one, other)
    assert abs(value - truth) <= error
    assert error < 1e-5


def test_lifetimes_with_steps():
    """Half of the events live 1 s, a quarter 2 s, a quarter anything from 2 to 4 s."""
    law = Empirical(edges_s=(1.0, 1.0, 2.0, 2.0, 4.0), weights=(0.5, 0.0, 0.25, 0.25))
    certain = series(Deterministic(value_s=2.0))
    assert share(certain, law).value == pytest.approx(0.5, abs=1e-9)  # in time is in time
    stage = series(Exponential(mean_s=1.0))
    truth = (
        0.5 * -math.expm1(-1.0)
        + 0.25 * -math.expm1(-2.0)
        + 0.25 * (1.0 - (math.exp(-2.0) - math.exp(-4.0)) / 2.0)
    )
    value, error = share(stage, law)
    assert abs(value - truth) <= error
    assert error < 1e-5


def test_a_shifted_exponential_lifetime():
    stage = series(Exponential(mean_s=0.5))
    truth = -math.expm1(-2.0 * 0.3) + math.exp(-2.0 * 0.3) * 2.0 / (2.0 + 4.0)
    value, error = share(stage, Shifted(law=Exponential(mean_s=0.25), by_s=0.3))
    assert abs(value - truth) <= error


def test_rough_paths_state_what_they_do_not_know():
    stage = series(Uniform(low_s=0.0, high_s=1.0), Uniform(low_s=0.0, high_s=1.0))
    law = Gamma(mean_s=1.0, shape=4.0)

    def density(t):
        return (t if t < 1 else 2 - t) * special.gammaincc(4, 4 * t)

    truth, _ = integrate.quad(density, 0.0, 2.0, points=[1.0], epsabs=1e-12)
    value, error = share(stage, law)
    assert abs(value - truth) <= error
    assert error < 1e-3


@settings(deadline=None, max_examples=20)
@given(longer=st.floats(1.0, 3.0), mean_s=st.floats(0.05, 3.0))
def test_longer_random_lifetimes_never_hurt(longer, mean_s):
    stage = series(Exponential(mean_s=0.3), Deterministic(value_s=0.1))
    law = Gamma(mean_s=mean_s, shape=2.0)
    one, other = share(stage, law), share(stage, law.scaled(longer))
    assert other.value >= one.value - one.error - other.error


@pytest.mark.statistical
def test_random_lifetimes_as_simulated():
    system = loads(
        """
        tidings: 1
        lifetime: {uniform: [0s, 200ms]}
        brokers:
          a: {service: {exponential: 10ms}}
          b: {service: {exponential: 20ms}}
        links: [{between: [a, b], delay: 15ms, reliability: 0.9}]
        publishers:
          p:
            at: a
            every: {rate: 30/s}
            content:
              - {p: 0.5, event: {k: 1}, lifetime: {gamma: {mean: 60ms, shape: 2}}}
              - {p: 0.5, event: {k: 2}}
        subscribers:
          s: {at: b, wants: {k: [1, 2]}}
          t: {at: b, wants: {k: 1}, lifetime: {exponential: 80ms}}
          u: {at: a, wants: {k: 2}, lifetime: 100ms}
        """
    )
    seen = simulate(system, seed=3, replications=20, events=50_000).subscribers
    found = predict(system).subscribers
    gap = (found["on_time"] - seen["on_time"]).abs()
    assert (gap <= 4.5 * seen["on_time_se"]).all()
    assert (seen["on_time_se"] < 0.002).all()
