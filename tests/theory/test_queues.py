from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exact_queues import crommelin
from tidings.model.laws import (
    Deterministic,
    Exponential,
    Gamma,
    HyperExponential,
    LogNormal,
    PhaseType,
    Shifted,
    Uniform,
)
from tidings.theory.path_laws import Enclosed, Inverted, MarkovChain, Workshop, path_law
from tidings.theory.queues import (
    FittedWait,
    PoissonWait,
    fitted_law,
    mean_shift,
    mean_wait_mm1_s,
    mean_wait_s,
    whole_law,
)


@pytest.mark.parametrize("load", [0.05, 0.5, 0.8, 0.9])
def test_constant_service_waits_as_crommelin_says_within_the_stated_error(load):
    service_s = 0.02
    law = path_law(whole_law(load / service_s, Deterministic(value_s=service_s)), Workshop())
    services = np.array([1.0, 1.3, 1.999, 2.0, 2.5, 4.0, 6.7, 20.0])
    value, error = law.cdf(services * service_s)
    truth = np.array([crommelin(load, x - 1.0) for x in services])
    # Beside the corners of the law, where x is whole, t and t − shift round differently.
    assert np.all(np.abs(value - truth) <= error)
    assert error.max() < 1e-6


def test_no_event_leaves_before_a_constant_service():
    law = path_law(whole_law(10.0, Deterministic(value_s=0.02)), Workshop())
    assert law.cdf(0.0199).value == 0.0
    assert law.cdf(0.02).value == pytest.approx(0.8, abs=1e-15)  # finds the server idle
    assert law.quantile(0.5) == 0.02


@settings(deadline=None, max_examples=40)
@given(load=st.floats(0.01, 0.98), share=st.floats(0.01, 10.0))
def test_poisson_wait_with_exponential_service_is_the_mm1_wait(load, share):
    wait = PoissonWait(service=Exponential(mean_s=2.0), load=load, kinked=False)
    chain = wait.chain()
    assert chain is not None
    t = np.array([share * 2.0 / (1.0 - load)])
    truth = 1.0 - load * math.exp(-share)
    assert MarkovChain(chain=chain).cdf(t).value[0] == pytest.approx(truth, abs=1e-12)
    workshop = Workshop()
    for form in (
        Inverted(delays=(wait,), workshop=workshop),
        Enclosed(delays=(wait,), workshop=workshop),
    ):
        value, error = form.cdf(t)
        assert abs(value[0] - truth) <= error[0]


@pytest.mark.parametrize(
    "service",
    [
        Gamma(mean_s=0.1, shape=3),
        HyperExponential(weights=(0.9, 0.1), means_s=(0.05, 0.55)),
        PhaseType(initial=(0.6, 0.2), generator=((-20.0, 5.0), (1.0, -10.0))),
    ],
)
def test_the_three_forms_agree_on_phase_type_service(service):
    stage = whole_law(7.0, service)
    workshop = Workshop()
    times = np.array([0.01, 0.1, 0.3, 1.0, 2.0])
    exact = workshop.randomness(stage.delays)
    assert isinstance(exact, MarkovChain)
    truth = exact.cdf(times)
    assert truth.error.max() < 1e-9
    for form in (
        Inverted(delays=stage.delays, workshop=workshop),
        Enclosed(delays=stage.delays, workshop=workshop),
    ):
        value, error = form.cdf(times)
        assert np.all(np.abs(value - truth.value) <= error + truth.error)


@pytest.mark.parametrize(
    "service",
    [
        Deterministic(value_s=0.1),
        Exponential(mean_s=0.1),
        Uniform(low_s=0.0, high_s=0.2),
        Gamma(mean_s=0.1, shape=2.5),
        LogNormal(mean_s=0.1, scv=1.5),
        Shifted(law=Exponential(mean_s=0.04), by_s=0.06),
    ],
)
@pytest.mark.parametrize("load", [0.2, 0.7, 0.95])
def test_mean_sojourn_is_that_of_pollaczek_and_khinchine(service, load):
    rate = load / service.mean_s
    stage = whole_law(rate, service)
    wait = load * service.mean_s * (1.0 + service.scv) / (2.0 * (1.0 - load))
    assert stage.mean_s == pytest.approx(wait + service.mean_s, rel=1e-12)
    assert mean_wait_s(rate, service) == pytest.approx(wait, rel=1e-12)
    # and the transform has that slope at 0
    z = np.array([1e-8 / stage.mean_s], dtype=complex)
    product = np.prod([delay.transform(z) for delay in stage.delays], axis=0)
    slope = (1.0 - (product * np.exp(-z * stage.shift_s)).real) / z.real
    assert slope[0] == pytest.approx(stage.mean_s, rel=1e-6)


def test_the_mean_shift_adds_the_mm1_wait_to_the_service():
    service = Uniform(low_s=0.0, high_s=0.2)
    wait_s = mean_wait_mm1_s(6.0, service)
    assert wait_s == pytest.approx(0.15, rel=1e-12)  # λ/(μ(μ−λ))
    stage = mean_shift(service, wait_s)
    assert stage.shift_s == pytest.approx(0.15, rel=1e-12)
    assert stage.mean_s == pytest.approx(0.15 + 0.1, rel=1e-12)


@settings(deadline=None, max_examples=40)
@given(load=st.floats(0.01, 0.98), wait_s=st.floats(1e-4, 10.0), t_s=st.floats(1e-4, 30.0))
def test_a_fitted_wait_is_the_same_in_every_form(load, wait_s, t_s):
    wait = FittedWait(waiting=load, mean_s=wait_s)
    t = np.array([t_s])
    truth = 1.0 - load * math.exp(-load * t_s / wait_s)
    assert wait.cdf(t)[0] == pytest.approx(truth, abs=1e-14)
    assert MarkovChain(chain=wait.chain()).cdf(t).value[0] == pytest.approx(truth, abs=1e-12)
    workshop = Workshop()
    for form in (
        Inverted(delays=(wait,), workshop=workshop),
        Enclosed(delays=(wait,), workshop=workshop),
    ):
        value, error = form.cdf(t)
        assert abs(value[0] - truth) <= error[0]


def test_a_fitted_wait_of_the_mm1_mean_is_the_mm1_wait():
    service = Exponential(mean_s=0.1)
    wait_s = mean_wait_s(7.0, service)
    stage = fitted_law(service, wait_s, 2.0 * wait_s**2 / 0.7)
    law, exact = path_law(stage, Workshop()), path_law(whole_law(7.0, service), Workshop())
    times_s = np.array([0.01, 0.1, 0.5, 2.0])
    assert law.cdf(times_s).value == pytest.approx(exact.cdf(times_s).value, abs=1e-13)
    assert law.mean_s == pytest.approx(exact.mean_s, rel=1e-13)


def test_no_mean_wait_is_no_wait():
    assert fitted_law(Exponential(mean_s=0.1), 0.0, 0.0).mean_s == pytest.approx(0.1)
