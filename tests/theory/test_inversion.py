from __future__ import annotations

import numpy as np
import pytest
from scipy import special

from tidings.model.laws import Exponential, Gamma, HyperExponential, LogNormal, Uniform, Weibull
from tidings.theory.inversion import FEWER_TERMS, TERMS, NodeValues, euler_rule, inverted_cdf
from tidings.theory.stages import law_stage

RATIOS = np.logspace(-3, 3, 241)


def inverted(laws, times):
    delays = tuple(delay for law in laws for delay in law_stage(law).delays)
    return inverted_cdf(NodeValues((TERMS, FEWER_TERMS)), delays, times)


@pytest.mark.parametrize(
    ("law", "most"),
    [
        (Exponential(mean_s=0.3), 1e-7),
        (Gamma(mean_s=20.0, shape=0.5), 1e-7),
        (Gamma(mean_s=2.0, shape=2.0), 1e-7),
        (Gamma(mean_s=1e-4, shape=5.0), 1e-7),
        (Gamma(mean_s=1.0, shape=20.0), 1e-5),
        (HyperExponential(weights=(0.3, 0.7), means_s=(1e-3, 10.0)), 1e-7),
        (LogNormal(mean_s=1.0, scv=2.0), 1e-6),
        (LogNormal(mean_s=1.0, scv=0.3), 1e-5),
        (Weibull(scale_s=2.0, shape=0.5), 1e-6),
        (Weibull(scale_s=2.0, shape=1.5), 1e-6),
    ],
)
def test_smooth_laws_come_back_within_the_stated_error(law, most):
    times = RATIOS * law.mean_s
    value, error = inverted([law], times)
    assert np.all(np.abs(value - law.cdf(times)) <= error)
    assert error.max() < most


def test_a_sum_is_the_product_of_transforms():
    times = RATIOS * 3.0
    value, error = inverted([Exponential(mean_s=1.0), Exponential(mean_s=1.0)], times)
    assert np.all(np.abs(value - special.gammainc(2, times)) <= error)


@pytest.mark.parametrize("mean", [0.02, 0.1, 0.3, 1.0])
@pytest.mark.parametrize("shape", [1, 4, 8])
def test_the_error_is_known_even_beside_a_corner(shape, mean):
    # uniform on [0, 1] plus an Erlang law, by integrating the Erlang law
    times = np.linspace(0.01, 6.0, 1501)

    def integral(t):
        t = np.maximum(t, 0.0)
        inner = t * special.gammainc(shape, t / mean)
        return inner - mean * shape * special.gammainc(shape + 1, t / mean)

    laws = [Uniform(low_s=0.0, high_s=1.0), Gamma(mean_s=mean * shape, shape=shape)]
    value, error = inverted(laws, times)
    truth = integral(times) - integral(times - 1.0)
    assert np.all(np.abs(value - truth) <= error)


def test_the_rule_integrates_constants():
    # the transform of "always 0" is 1: its law is 1 at every time
    for terms in (FEWER_TERMS, TERMS):
        nodes, weights = euler_rule(terms)
        assert float((1.0 / nodes).real @ weights) == pytest.approx(1.0, abs=2e-9)


def test_each_delay_is_evaluated_once_for_the_same_times():
    calls = []

    class Counting:
        def transform(self, z):
            calls.append(z.shape)
            return 1.0 / (1.0 + z)

    values = NodeValues((TERMS, FEWER_TERMS))
    delay = Counting()
    for _ in range(3):
        values.product((delay, delay), np.array([1.0, 2.0]))
    assert len(calls) == 1
