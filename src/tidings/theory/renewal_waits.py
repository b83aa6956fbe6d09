r"""The whole law of the wait where intervals and services are independent, whatever their laws.

W is the maximum of a walk with steps S − T. On a lattice, with φ the transform of a step,
−log(1 − φ) is Σ φⁿ/n; by Spitzer's identity its part at points above 0, c⁺, gives the wait:

.. math:: E[e^{-zW}] = \exp(c^+(z) - c^+(0)).

Both are Fourier transforms. Where φ would be 1 the logarithm has no value, so steps are weighed by
e^{g(S − T)} with E[e^{g(S − T)}] < 1, which the walk's negative drift allows.

Laws made of atoms alone lie on a lattice of their own, and so does the wait: nothing is lost there.
Others are shared between points; how far that makes the law of the wait wrong is told by a second
lattice of twice the step.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import fft, optimize

from tidings.model.laws import Empirical, Law, left_share
from tidings.theory.atoms import Atoms, atoms, common_step_s

Floats = NDArray[np.float64]

_POINTS = 1 << 14
_POINTS_OF_ATOMS = (_POINTS, 1 << 17)
_STEPS = (512, 384, 256, 192, 128, 96, 64, 48)  # of the lattice in a mean service
_REST = 1e-10  # of the wait beyond the lattice
_NEGLIGIBLE = 1e-12  # of a service, or of the wait once it is known
_CAUTION = 2.0  # times what a lattice of twice the step differs by
_ROUNDING = 1e-9  # of the transforms, and the rest
_EARLY = 1e-13  # by which atoms come before their time, relative: rounding makes nothing late


class RenewalWait(NamedTuple):
    """The law of a wait, and how far its CDF can be off (an estimate)."""

    wait: Empirical
    error: float
    stay: Empirical | None = None  # with the service, where both are made of atoms


def renewal_wait(interval: Law, kept: float, service: Law) -> RenewalWait | None:
    """The wait in a GI/G/1 queue, of whose arrivals a share is kept; None where none is known.

    That is where the wait is too long for the lattice, and where it has atoms that lie on none. A
    histogram with an atom at 0; sharing times between points adds a third of a squared step to the
    variance of S − T, so much longer are waits: up to ρ = .9 less than 1e-4.

    >>> from tidings.model.laws import Exponential, Uniform
    >>> found = renewal_wait(Exponential(mean_s=1.0), 1.0, Uniform(low_s=0.0, high_s=1.0))
    >>> round(found.wait.mean_s, 4)  # Pollaczek and Khinchine: λ E[S²]/2(1 − ρ)
    0.3333
    """
    arriving, served = atoms(interval), atoms(service)
    if arriving.whole and served.whole:
        return _of_atoms(arriving, kept, served)
    if max(served.times_s, default=0.0) > min(arriving.times_s, default=math.inf):
        return None  # atoms among others: spread over a step they would be wrong
    return _shared(interval, kept, service)


def _of_atoms(arriving: Atoms, kept: float, served: Atoms) -> RenewalWait | None:
    """Exact but for rounding: both laws on the lattice on which they lie."""
    step_s = common_step_s((*arriving.times_s, *served.times_s), _POINTS_OF_ATOMS[-1])
    if step_s is None:
        return None
    for points in _POINTS_OF_ATOMS:
        if max(served.times_s) >= (points - 0.5) * step_s:
            continue
        services = _placed(served, step_s, points)
        masses = _masses_of_wait(services, _placed(arriving, step_s, points), kept)
        if masses is not None:
            used = masses[: _used(masses)]
            stay = np.zeros(points + used.size)
            for place in np.flatnonzero(services).tolist():
                stay[place : place + used.size] += services[place] * used
            return RenewalWait(_steps(used, step_s), _ROUNDING, _steps(stay, step_s))
    return None


def _shared(interval: Law, kept: float, service: Law) -> RenewalWait | None:
    """On the finest lattice that is long enough, beside one of twice the step."""
    for steps in _STEPS:
        step_s = service.mean_s / steps
        served, arriving = _masses(service, step_s), _arriving(interval, step_s)
        if 1.0 - served.sum() > _NEGLIGIBLE:
            continue
        masses = _masses_of_wait(served, arriving, kept)
        if masses is None:
            continue
        wait = _histogram(masses, step_s)
        served, arriving = _masses(service, 2.0 * step_s), _arriving(interval, 2.0 * step_s)
        coarse = _masses_of_wait(served, arriving, kept)
        if coarse is None:
            return None
        error = _CAUTION * _apart(wait, _histogram(coarse, 2.0 * step_s)) + _ROUNDING
        return RenewalWait(wait, error)
    return None


def _apart(one: Empirical, other: Empirical) -> float:
    """The most by which two CDFs differ: at an edge, since both are straight between edges."""
    edges_s = np.union1d(one.edges_s, other.edges_s)
    return float(np.abs(one.cdf(edges_s) - other.cdf(edges_s)).max())


def _placed(found: Atoms, step_s: float, points: int) -> Floats:
    """Atoms on the lattice on which they lie; what lies beyond at its end."""
    places = np.rint(np.array(found.times_s) / step_s).astype(np.int64)
    masses: Floats = np.zeros(points)
    np.add.at(masses, np.minimum(places, points - 1), found.shares)
    return masses


def _masses(law: Law, step_s: float) -> Floats:
    """A law on the lattice, every time shared between its neighbours so that the mean is kept."""
    over = law.mean_s * left_share(law, step_s * np.arange(_POINTS + 1.0)) / step_s
    below = np.concatenate([[0.0], 1.0 + np.diff(over)])
    found: Floats = np.maximum(np.diff(below), 0.0)
    return found


def _arriving(interval: Law, step_s: float) -> Floats:
    """Intervals on the lattice; after a pause that is longer nobody waits."""
    found = _masses(interval, step_s)
    found[-1] += 1.0 - found.sum()
    return found


def _masses_of_wait(served: Floats, arriving: Floats, kept: float) -> Floats | None:
    """Masses of the wait at 0, 1, … lattice steps; None where the lattice is too short."""
    decay = _decay(served, arriving, kept)
    if decay is None or math.exp(-decay * served.size) >= _REST:
        return None
    return _walk(served, arriving, kept, 0.5 * decay)


def _step(served: Floats, arriving: Floats, kept: float, tilt: float) -> float:
    """E[e^{g(S − T)}], g a lattice step."""
    points = np.arange(served.size)
    longer = float(served @ np.exp(np.minimum(tilt * points, 600.0)))
    shorter = float(arriving @ np.exp(-tilt * points))
    return longer * kept * shorter / (1.0 - (1.0 - kept) * shorter)


def _decay(served: Floats, arriving: Floats, kept: float) -> float | None:
    """The g above 0 with E[e^{g(S − T)}] = 1: how fast the tail of the wait falls, a step."""
    points = served.size
    high = 1.0 / float(served @ np.arange(points))
    while _step(served, arriving, kept, high) < 1.0:
        high *= 2.0
        if high > 600.0:
            return None
    low = high
    while _step(served, arriving, kept, low) >= 1.0:
        low *= 0.5
        if low < 1.0 / points:
            return None
    return float(optimize.brentq(lambda tilt: _step(served, arriving, kept, tilt) - 1.0, low, high))


def _walk(served: Floats, arriving: Floats, kept: float, tilt: float) -> Floats:
    """Masses of the wait at 0, 1, … lattice steps."""
    count = served.size
    points, length = np.arange(count), 4 * count
    longer = fft.rfft(served * np.exp(np.minimum(tilt * points, 600.0)), length)
    shorter = np.conj(fft.rfft(arriving * np.exp(-tilt * points), length))
    step = longer * kept * shorter / (1.0 - (1.0 - kept) * shorter)
    above = fft.irfft(-np.log1p(-step), length)[: 2 * count]
    above *= np.exp(-tilt * np.arange(2 * count))
    above[0] = 0.0
    found = fft.irfft(np.exp(fft.rfft(above, length) - above.sum()), length)[:count]
    positive = np.maximum(found, 0.0)
    masses: Floats = positive / positive.sum()
    return masses


def _used(masses: Floats) -> int:
    """How many points hold all but a negligible rest."""
    return int(np.searchsorted(np.cumsum(masses), 1.0 - _NEGLIGIBLE)) + 1


def _steps(masses: Floats, step_s: float) -> Empirical:
    """Every point's mass as an atom."""
    held = np.flatnonzero(masses > 0.0)
    weights = np.zeros(2 * held.size - 1)
    weights[::2] = masses[held]
    edges_s = np.repeat(step_s * (1.0 - _EARLY) * held, 2)
    return Empirical(edges_s=tuple(edges_s.tolist()), weights=tuple(weights.tolist()))


def _histogram(masses: Floats, step_s: float) -> Empirical:
    """Every point's mass spread over the step around it; that at 0 is an atom.

    But for half a step's density above 0, which is as dense as what follows.
    """
    used = _used(masses)
    if used == 1:
        return Empirical(edges_s=(0.0, 0.0), weights=(1.0,))
    edges_s = step_s * (np.arange(1, used + 1) - 0.5)
    half = min(0.5 * float(masses[1]), float(masses[0]))
    return Empirical(
        edges_s=(0.0, 0.0, *edges_s.tolist()),
        weights=(float(masses[0]) - half, half, *masses[1:used].tolist()),
    )
