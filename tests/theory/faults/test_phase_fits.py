from __future__ import annotations

import numpy as np
import pytest

from tidings.model.laws import (
    Deterministic,
    Gamma,
    HyperExponential,
    LogNormal,
    PhaseType,
    Uniform,
    Weibull,
)
from tidings.theory.faults.phase_fits import fit


def as_law(found):
    initial, generator = found.chain
    return PhaseType(initial=tuple(initial), generator=tuple(map(tuple, generator)))


@pytest.mark.parametrize("law", [HyperExponential(weights=(0.3, 0.7), means_s=(5.0, 1.0))])
def test_a_law_with_phases_keeps_them(law):
    found = fit(law)
    assert found.error == 0.0
    assert as_law(found).scv == pytest.approx(law.scv, rel=1e-12)


@pytest.mark.parametrize(
    ("law", "error"),
    [
        (Weibull(scale_s=3000.0, shape=0.35), 0.05),
        (Weibull(scale_s=3000.0, shape=0.65), 0.01),
        (LogNormal(mean_s=50.0, scv=4.0), 0.02),
        (LogNormal(mean_s=50.0, scv=100.0), 0.05),
        (Gamma(mean_s=9.0, shape=0.5), 0.01),
        (Gamma(mean_s=9.0, shape=2.5), 0.01),
        (Uniform(low_s=0.0, high_s=8.0), 0.1),
    ],
)
def test_a_fit_keeps_the_mean_and_says_how_far_it_is_off(law, error):
    found = fit(law)
    assert as_law(found).mean_s == pytest.approx(law.mean_s, rel=1e-12)
    assert found.error < error
    times_s = law.quantile(np.linspace(0.01, 0.99, 25))
    assert np.abs(as_law(found).cdf(times_s) - law.cdf(times_s)).max() <= found.error + 1e-3


@pytest.mark.parametrize("scv", [0.9, 0.5, 0.3, 0.1])
def test_even_laws_keep_mean_and_variance(scv):
    found = as_law(fit(Gamma(mean_s=7.0, shape=1.0 / scv)))
    assert found.mean_s == pytest.approx(7.0, rel=1e-12)
    assert found.scv == pytest.approx(scv, rel=1e-9)


def test_a_constant_time_is_as_even_as_so_many_phases_can_be():
    found = fit(Deterministic(value_s=5.0))
    assert as_law(found).scv == pytest.approx(1.0 / 12.0, rel=1e-9)
    assert found.error > 0.3  # and is said to be far off
