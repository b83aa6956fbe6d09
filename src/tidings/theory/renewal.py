r"""How unevenly a stream with independent intervals counts: the dispersion of a renewal stream.

I(t) = Var N(t)/E N(t), counted from a random moment on. With λ = 1/E[X] and the transform F* of the
intervals, V(t) = Var N(t) has the transform

.. math:: V^*(z) = \frac{\lambda}{z^2} \left(
   \frac{1 + F^*(z)}{1 - F^*(z)} - \frac{2\lambda}{z} \right),

which is inverted. Periodic and Poisson streams are known in closed form; for long times I = c².
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline

from tidings.model.laws import Exponential, Law, LogNormal, Weibull
from tidings.theory.inversion import euler_rule

Floats = NDArray[np.float64]

_TERMS = 12  # of the inversion: good to about 1e-7, beside corners of V' to about 1e-4
_LONG = 3e3  # means, times 1 + c², after which nothing is left but the limit
# Of the table of a curve: its first time in means, its points; narrower laws swing too much.
_SHORT, _PER_FACTOR_E, _NARROW = 1e-4, 12.0, 0.1


def dispersion(law: Law, t_s: Floats) -> Floats:
    """I(t) = Var N(t)/E N(t) of a renewal stream with intervals of this law, at times t > 0.

    >>> from tidings.model.laws import Deterministic
    >>> dispersion(Deterministic(value_s=1.0), np.array([0.25, 0.5, 1.0, 1.5]))
    array([0.75      , 0.5       , 0.        , 0.16666667])
    """
    if isinstance(law, Exponential):
        return np.ones(t_s.shape)
    if law.scv == 0.0:  # constant, however it is written
        x = t_s / law.mean_s
        part = x - np.floor(x)
        periodic: Floats = part * (1.0 - part) / x
        return periodic
    found = np.full(t_s.shape, law.scv)
    soon = t_s < _LONG * (1.0 + law.scv) * law.mean_s
    if isinstance(law, LogNormal | Weibull) and law.scv > _NARROW:  # transforms are dear
        tabled = soon & (t_s >= _SHORT * law.mean_s)
        found[tabled] = _tabled(_unit(law))(np.log(t_s[tabled] / law.mean_s))
        soon &= ~tabled
    if np.any(soon):
        found[soon] = _inverted(law, t_s[soon])
    return found


def _unit(law: LogNormal | Weibull) -> LogNormal | Weibull:
    """The law of this shape with mean 1, to the last digit however the law is scaled."""
    if isinstance(law, LogNormal):
        return LogNormal(mean_s=1.0, scv=law.scv)
    return Weibull(scale_s=1.0 / math.gamma(1.0 + 1.0 / law.shape), shape=law.shape)


@lru_cache(maxsize=256)
def _tabled(unit: LogNormal | Weibull) -> CubicSpline:
    """I by the logarithm of the time in means, to about 1e-5.

    Predictions with one mean changed, of which error bars take many, share it.
    """
    first, last = math.log(_SHORT), math.log(_LONG * (1.0 + unit.scv))
    place = np.linspace(first, last, math.ceil((last - first) * _PER_FACTOR_E))
    return CubicSpline(place, _inverted(unit, np.exp(place)))


def averaged_dispersion(law: Law, t_s: Floats, step: float) -> Floats:
    """I on a grid of times that grow by the factor e^step, where the grid can tell.

    A periodic stream swings for ever; where a step of the grid is longer than a small part of its
    period, the mean over the step stands for the swing.
    """
    found = dispersion(law, t_s)
    if law.scv > 0.0:
        return found
    x = t_s / law.mean_s
    coarse = x * step > _FINE
    low, high = x[coarse] * math.exp(-0.5 * step), x[coarse] * math.exp(0.5 * step)
    found[coarse] = (_swings(high) - _swings(low)) / ((high - low) * x[coarse])
    return found


_FINE = 1.0 / 16.0  # of a period


def _swings(x: Floats) -> Floats:
    """∫ {u}(1 − {u}) du from 0 to x."""
    part = x - np.floor(x)
    total: Floats = np.floor(x) / 6.0 + part**2 * (0.5 - part / 3.0)
    return total


def _inverted(law: Law, t_s: Floats) -> Floats:
    nodes, weights = euler_rule(_TERMS)
    z = nodes / t_s[:, None]
    transform = law.transform(z)
    rate = 1.0 / law.mean_s
    variance = rate / z**2 * ((1.0 + transform) / (1.0 - transform) - 2.0 * rate / z)
    found: Floats = variance.real @ weights / t_s / (rate * t_s)
    return np.maximum(found, 0.0)
