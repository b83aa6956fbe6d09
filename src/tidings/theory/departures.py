r"""How a busy station passes on what is uneven in its arrivals and services.

Heavy traffic: what waits is a reflected Brownian motion, with time in units of
ρ c²/((1 − ρ)² λ) and events in units of c²/(1 − ρ), c² = I_a + c²_s. In these units, r = √(1 + 2z):

- departures are arrivals with the weight w*(x), services with the rest (Whitt and You);
- x w*(x) = E[(x − a)⁺]: an event more that arrives is one more that has left after a *lag* a;
- the station's idle time L over x and its net input X have the joint cumulant k(x) = κ(L, X, X)
  with transform 8/(z r (1 + r)³) (the second derivative of E[L] by the drift); κ₃(L) = 3k/2.

Departures, with β = c²_s/c² the services' part, have the third cumulant −3(½ − β)(1 − β) k(x),
0 where arrivals and services are equally uneven (as in an M/M/1 queue) and where arrivals are not
uneven at all. Where services are the more regular ones, departures are skewed to the left: they
cannot come faster than services, but idle times make gaps.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy import special

from tidings.theory.inversion import euler_rule

Floats = NDArray[np.float64]

_TERMS = 12  # of the inversion: good to about 1e-7
_NODES = 8  # equal parts of a law, each by its mean
_SHORTEST, _LONGEST, _POINTS = 1e-8, 1e3, 4000  # lags that are looked at


def departure_weight(x: Floats) -> Floats:
    """How far a departing stream is its arrivals rather than its services, Whitt and You's w*.

    x = (1 − ρ)² λ t/(ρ (I_a + c²_s)); 0 for short times, 1 for long ones.
    """
    s = np.minimum(np.maximum(x, 1e-8), 60.0)
    root = np.sqrt(s)
    density = np.exp(-0.5 * s) / math.sqrt(2.0 * math.pi)
    inside = (s * s + 2.0 * s - 1.0) * special.erf(root / math.sqrt(2.0))
    found = (inside + 2.0 * root * density * (1.0 + s) - s * s) / (2.0 * s)
    # The closed form loses its digits near 0, where it begins like (8/3) √(x/2π) − x/2.
    small = (8.0 / 3.0) * np.sqrt(np.maximum(x, 0.0) / (2.0 * math.pi)) - 0.5 * x
    found = np.where(x < 1e-4, small, found)
    found = np.where(x > 60.0, 1.0 - 0.5 / np.maximum(x, 60.0), found)
    return np.clip(found, 0.0, 1.0)


def idle_cumulant(x: Floats) -> Floats:
    """κ(L, X, X) of idle time and net input over a time x > 0; it rises from 0 to 1.

    >>> idle_cumulant(np.array([1e-3, 1.0, 100.0])).round(4)
    array([0.    , 0.2437, 1.    ])
    """
    nodes, weights = euler_rule(_TERMS)
    z = nodes / x[:, None]
    root = np.sqrt(1.0 + 2.0 * z)
    found: Floats = (8.0 / (z * root * (1.0 + root) ** 3)).real @ weights / x
    return np.clip(found, 0.0, 1.0)


@cache
def departure_lags() -> Floats:
    """The law of the lag a, as means of equal parts; its mean is ½."""
    x = np.geomspace(_SHORTEST, _LONGEST, _POINTS)
    reached = x * departure_weight(x)  # E[(x − a)⁺], whose slope is P[a ≤ x]
    below = np.maximum.accumulate(np.clip(np.gradient(reached, x), 0.0, 1.0))
    return equal_parts(x, np.diff(below, prepend=0.0))


def equal_parts(values: Floats, masses: Floats) -> Floats:
    """A law in parts of equal probability, each by its mean: the mean of the whole is kept.

    >>> equal_parts(np.arange(16.0), np.ones(16))
    array([ 0.5,  2.5,  4.5,  6.5,  8.5, 10.5, 12.5, 14.5])
    """
    shares = masses / masses.sum()
    below = np.concatenate([[0.0], np.cumsum(shares)])
    moment = np.concatenate([[0.0], np.cumsum(shares * values)])
    marks = np.interp(np.linspace(0.0, 1.0, _NODES + 1), below, moment)
    found: Floats = np.diff(marks) * _NODES
    return found
