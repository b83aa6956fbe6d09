r"""The whole law of the wait where intervals and services are independent, whatever their laws.

W is the maximum of a walk with steps S − T. On a lattice, with φ the transform of a step,
−log(1 − φ) is Σ φⁿ/n; by Spitzer's identity its part at points above 0, c⁺, gives the wait:

.. math:: E[e^{-zW}] = \exp(c^+(z) - c^+(0)).

Both are Fourier transforms. Where φ would be 1 the logarithm has no value, so steps are weighed by
e^{g(S − T)} with E[e^{g(S − T)}] < 1, which the walk's negative drift allows.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import fft, optimize

from tidings.model.laws import Empirical, Law, left_share

Floats = NDArray[np.float64]

_POINTS = 1 << 14
_STEPS = (512, 384, 256, 192, 128, 96, 64, 48)  # of the lattice in a mean service
_REST = 1e-10  # of the wait beyond the lattice
_NEGLIGIBLE = 1e-12  # of a service, or of the wait once it is known


def renewal_wait(interval: Law, kept: float, service: Law) -> Empirical | None:
    """The wait in a GI/G/1 queue, of whose arrivals a share is kept; None where it is too long.

    A histogram with an atom at 0. Sharing times between points adds a third of a squared step to
    the variance of S − T, so much longer are waits: up to ρ = .9 less than 1e-4.

    >>> from tidings.model.laws import Exponential, Uniform
    >>> found = renewal_wait(Exponential(mean_s=1.0), 1.0, Uniform(low_s=0.0, high_s=1.0))
    >>> round(found.mean_s, 4)  # Pollaczek and Khinchine: λ E[S²]/2(1 − ρ)
    0.3333
    """
    if interval.scv == 0.0 and service.scv == 0.0:
        return None  # its wait is made of atoms
    for steps in _STEPS:
        step_s = service.mean_s / steps
        served = _masses(service, step_s)
        arriving = _masses(interval, step_s)
        arriving[-1] += 1.0 - arriving.sum()  # after so long a pause nobody waits
        if 1.0 - served.sum() > _NEGLIGIBLE:
            continue
        decay = _decay(served, arriving, kept)
        if decay is not None and math.exp(-decay * _POINTS) < _REST:
            return _histogram(_walk(served, arriving, kept, 0.5 * decay), step_s)
    return None


def _masses(law: Law, step_s: float) -> Floats:
    """A law on the lattice, every time shared between its neighbours so that the mean is kept."""
    over = law.mean_s * left_share(law, step_s * np.arange(_POINTS + 1.0)) / step_s
    below = np.concatenate([[0.0], 1.0 + np.diff(over)])
    found: Floats = np.maximum(np.diff(below), 0.0)
    return found


def _step(served: Floats, arriving: Floats, kept: float, tilt: float) -> float:
    """E[e^{g(S − T)}], g a lattice step."""
    points = np.arange(_POINTS)
    longer = float(served @ np.exp(np.minimum(tilt * points, 600.0)))
    shorter = float(arriving @ np.exp(-tilt * points))
    return longer * kept * shorter / (1.0 - (1.0 - kept) * shorter)


def _decay(served: Floats, arriving: Floats, kept: float) -> float | None:
    """The g above 0 with E[e^{g(S − T)}] = 1: how fast the tail of the wait falls, a step."""
    high = 1.0 / float(served @ np.arange(_POINTS))
    while _step(served, arriving, kept, high) < 1.0:
        high *= 2.0
        if high > 600.0:
            return None
    low = high
    while _step(served, arriving, kept, low) >= 1.0:
        low *= 0.5
        if low < 1.0 / _POINTS:
            return None
    return float(optimize.brentq(lambda tilt: _step(served, arriving, kept, tilt) - 1.0, low, high))


def _walk(served: Floats, arriving: Floats, kept: float, tilt: float) -> Floats:
    """Masses of the wait at 0, 1, … lattice steps."""
    points, length = np.arange(_POINTS), 4 * _POINTS
    longer = fft.rfft(served * np.exp(tilt * points), length)
    shorter = np.conj(fft.rfft(arriving * np.exp(-tilt * points), length))
    step = longer * kept * shorter / (1.0 - (1.0 - kept) * shorter)
    above = fft.irfft(-np.log1p(-step), length)[: 2 * _POINTS]
    above *= np.exp(-tilt * np.arange(2 * _POINTS))
    above[0] = 0.0
    found = fft.irfft(np.exp(fft.rfft(above, length) - above.sum()), length)[:_POINTS]
    positive = np.maximum(found, 0.0)
    masses: Floats = positive / positive.sum()
    return masses


def _histogram(masses: Floats, step_s: float) -> Empirical:
    """Every point's mass spread over the step around it; that at 0 is an atom.

    But for half a step's density above 0, which is as dense as what follows.
    """
    used = int(np.searchsorted(np.cumsum(masses), 1.0 - _NEGLIGIBLE)) + 1
    if used == 1:
        return Empirical(edges_s=(0.0, 0.0), weights=(1.0,))
    edges_s = step_s * (np.arange(1, used + 1) - 0.5)
    half = min(0.5 * float(masses[1]), float(masses[0]))
    return Empirical(
        edges_s=(0.0, 0.0, *edges_s.tolist()),
        weights=(float(masses[0]) - half, half, *masses[1:used].tolist()),
    )
