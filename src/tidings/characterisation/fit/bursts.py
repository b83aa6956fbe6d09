"""Sources that are on and off by turns, with a given dispersion of counts."""

from __future__ import annotations

import math

import numpy as np
from scipy import optimize

from tidings.characterisation.fit.dispersion import Curve
from tidings.model.arrays import Floats
from tidings.model.publishing import Burst, Publishing

LEAST_EXCESS = 0.02  # of the index of dispersion that a source is worth naming for


def fit_bursts(curve: Curve, rate_per_s: float) -> Publishing | None:
    r"""Fit sources that are on and off to an index of dispersion, in events per second.

    A source of rate r while on, mean times a on and b off, adds
    :math:`(2 r^2 p (1-p) \tau/\lambda) g(t/\tau)` to the index of a stream of rate λ, with
    :math:`p = a/(a+b)`, :math:`\tau = ab/(a+b)` and :math:`g(x) = 1 - (1 - e^{-x})/x`. Amounts for
    given τ are sought by non-negative least squares, weighed by standard errors. Half of the time
    on where the rate allows it; else all events are in bursts that are the shorter. None where the
    counts vary no more than those of a Poisson stream.
    """
    taus_s = curve.scales_s / 2.0
    weights = 1.0 / np.maximum(curve.standard_error, 0.02 * np.maximum(curve.dispersion, 1.0))
    shape = _growth(curve.scales_s[:, None] / taus_s[None, :])
    excess = np.maximum(curve.dispersion - 1.0, 0.0)
    amounts, _ = optimize.nnls(shape * weights[:, None], excess * weights)
    named = amounts > LEAST_EXCESS
    if not named.any():
        return None
    amounts, taus_s = amounts[named], taus_s[named]
    means = np.sqrt(amounts * rate_per_s / (2.0 * taus_s))  # of sources that are on half the time
    if means.sum() > rate_per_s:
        means *= rate_per_s / means.sum()
    bursts = []
    for amount, tau_s, mean in zip(amounts, taus_s, means, strict=True):
        share = 1.0 / (1.0 + amount * rate_per_s / (2.0 * mean**2 * tau_s))
        bursts.append(
            Burst(
                rate_per_s=float(mean / share),
                on_s=float(tau_s / (1.0 - share)),
                off_s=float(tau_s / share),
            )
        )
    rest = max(rate_per_s - math.fsum(means), 0.0)
    return Publishing(bursts=tuple(bursts), rate_per_s=rest if rest > 1e-9 * rate_per_s else 0.0)


def _growth(x: Floats) -> Floats:
    """Compute 1 − (1 − e^{−x})/x: how much of its dispersion a source has shown after so long."""
    growth: Floats = 1.0 + np.expm1(-x) / x
    return growth
