from __future__ import annotations

import numpy as np
import pytest

from tidings.theory.departures import departure_lags, departure_weight, idle_cumulant
from tidings.theory.inversion import euler_rule


def test_the_departure_weight_is_that_of_whitt_and_you():
    x = np.array([1e-6, 9.9e-5, 1.01e-4, 1e-3, 0.1, 1.0, 10.0, 59.0, 61.0, 1e3])
    truth = [  # in forty digits
        0.0010633461874550913,
        0.010535739649267021,
        0.010641128778745802,
        0.033145131016822336,
        0.28976989775425427,
        0.6666309411753726,
        0.9500362598276572,
        0.9915254237288136,
        0.9918032786885246,
        0.9995,
    ]
    assert departure_weight(x) == pytest.approx(truth, rel=1e-4)
    assert departure_weight(np.array([0.0, 1e12])) == pytest.approx([0.0, 1.0], abs=1e-12)


def test_lags_are_what_the_weight_says():
    """x w*(x) = E[(x − a)⁺], to what eight parts of the law can tell."""
    lags = departure_lags()
    assert lags.mean() == pytest.approx(0.5, rel=0.01)
    for x in (0.3, 1.0, 3.0, 10.0):
        weight = float(departure_weight(np.array([x]))[0])
        assert np.maximum(x - lags, 0.0).mean() / x == pytest.approx(weight, abs=0.02)


def idle_time(drift, x):
    """E[L] over x of a reflected Brownian motion that starts as with drift −1, by its transform.

    E[Q] solves ½u″ + θu′ − zu = −q, u′(0) = 0; then L = Q(x) − Q(0) − θx, Q(0) ~ exponential(2).
    """
    nodes, weights = euler_rule(12)
    z = nodes / x[:, None]
    decay = drift + np.sqrt(drift**2 + 2.0 * z)
    queue = 0.5 / z + drift / z**2 + 2.0 / (z * decay * (2.0 + decay))
    return (queue - 0.5 / z - drift / z**2).real @ weights / x


def test_idle_time_and_net_input_by_the_derivatives_of_idle_time():
    """∂E[L]/∂θ = κ(L, X) = −x w*(x), and ∂²E[L]/∂θ² = κ(L, X, X)."""
    x, step = np.array([0.2, 1.0, 3.0, 10.0]), 0.01
    low, middle, high = (idle_time(drift, x) for drift in (-1.0 - step, -1.0, -1.0 + step))
    slope = (high - low) / (2.0 * step)
    assert slope == pytest.approx(-x * departure_weight(x), rel=1e-3)
    bend = (high - 2.0 * middle + low) / step**2
    assert bend == pytest.approx(idle_cumulant(x), rel=5e-3)
