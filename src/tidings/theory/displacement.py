r"""What becomes of a stream's dispersion when every event is delayed by its own random time.

With E(t) = λ|t|(I(|t|) − 1) and Δ the difference of two independent delays, exactly

.. math:: E'(t) = \mathbb{E}[E(t + \Delta)] - \mathbb{E}[E(\Delta)].

On a grid of times that is a matrix on I − 1, the same for every stream that is so delayed.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from tidings.model.laws import Law
from tidings.theory.time_grid import TimeGrid

Floats = NDArray[np.float64]

_STEPS = 1024  # in which the law of a delay is cut
_GROUPS = 56  # in which the differences are gathered, finer near 0
_REST = 1e-5  # of a law that may lie beyond its cut


def displacing(law: Law, wait_s: float, load: float, grid: TimeGrid) -> Floats:
    """The matrix by which I − 1 changes: delays of this law after a fitted wait (mean, load)."""
    sizes_s, weights = differences(law, wait_s, load)
    t_s, size = grid.times_s, grid.points
    reached_s = np.stack([t_s[:, None] + sizes_s, np.abs(t_s[:, None] - sizes_s)])
    at, part = grid.places(reached_s)
    amount = 0.5 * weights * reached_s / t_s[:, None]
    place = (np.arange(size)[:, None] * size + at).ravel()
    moved = np.bincount(place, (amount * (1.0 - part)).ravel(), minlength=size * size)
    moved[1:] += np.bincount(place, (amount * part).ravel(), minlength=size * size)[:-1]
    at, part = grid.places(sizes_s)  # E[E(Δ)], the same for every time
    own = np.bincount(at, weights * sizes_s * (1.0 - part), minlength=size)
    own[1:] += np.bincount(at, weights * sizes_s * part, minlength=size)[:-1]
    matrix: Floats = moved.reshape(size, size) - np.outer(1.0 / t_s, own)
    return matrix


def sojourn(law: Law, wait_s: float, load: float) -> tuple[float, Floats]:
    """A service of this law after a fitted wait (mean, load): step in seconds, and masses on it."""
    beyond_s = wait_s / load if load > 0 else 0.0  # mean of a wait that is one
    span_s = float(law.quantile(1.0 - _REST)) - math.log(_REST) * beyond_s
    if span_s <= 0.0:
        return 0.0, np.ones(1)
    step_s = span_s / _STEPS
    edges_s = step_s * (np.arange(_STEPS + 1) + 0.5)
    served = np.diff(law.cdf(edges_s), prepend=0.0)
    if beyond_s == 0.0:
        return step_s, served
    waited = np.diff(1.0 - load * np.exp(-edges_s / beyond_s), prepend=0.0)
    images = np.fft.rfft(served, 4 * _STEPS) * np.fft.rfft(waited, 4 * _STEPS)
    return step_s, np.maximum(np.fft.irfft(images)[: 2 * _STEPS + 1], 0.0)


def differences(law: Law, wait_s: float, load: float) -> tuple[Floats, Floats]:
    """|D' − D''| of two independent sojourns: sizes in seconds, and their probabilities."""
    step_s, masses = sojourn(law, wait_s, load)
    if masses.size == 1:
        return np.zeros(1), np.ones(1)
    both = np.fft.irfft(np.abs(np.fft.rfft(masses, 4 * _STEPS)) ** 2)[: 2 * _STEPS + 1]
    both[1:] *= 2.0  # either may be the longer
    both = np.maximum(both, 0.0)
    marks = np.unique(np.geomspace(1, 2 * _STEPS + 1, _GROUPS).astype(np.int64))
    begins = np.concatenate([[0], marks[:-1]])
    weights = np.add.reduceat(both, begins)
    sizes = np.add.reduceat(both * np.arange(both.size), begins) / np.maximum(weights, 1e-300)
    return step_s * sizes, weights / weights.sum()
