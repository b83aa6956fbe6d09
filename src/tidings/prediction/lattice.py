"""Rough laws between two lattice laws: every delay rounded down, and every delay rounded up.

Both sums are laws on whole steps, and the true one lies between them whatever its shape. They are
multiplied as images: generating functions at damped roots of unity, so that what runs over the end
of the lattice returns only with a factor ``_RETURNS``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import fft

Floats = NDArray[np.float64]
Complexes = NDArray[np.complex128]

_RETURNS = 1e-10
# Returning mass, and rounding of the transforms magnified by undoing half of the damping.
NOISE = 1e-9


@dataclass(frozen=True, kw_only=True)
class Lattice:
    """Delays of 0, 1, … ``points`` steps, in seconds a step; transforms have twice that length."""

    step_s: float
    points: int

    @cached_property
    def damping(self) -> Floats:
        """The factor of each point, from 1 down to the square root of ``_RETURNS``."""
        values: Floats = _RETURNS ** (np.arange(self.points + 1) / (2.0 * self.points))
        return values

    def image(self, cumulative: Floats) -> Complexes:
        """The damped transform of the law with this CDF at points 0, 1, …"""
        masses = np.diff(cumulative, prepend=0.0) * self.damping
        values: Complexes = fft.rfft(masses, 2 * self.points)
        return values

    def cumulative(self, image: Complexes) -> Floats:
        """The CDF at points 0, 1, … of the law with this image."""
        masses = fft.irfft(image, 2 * self.points)[: self.points + 1] / self.damping
        found: Floats = np.clip(np.cumsum(masses), 0.0, 1.0)
        return found

    def geometric(self, ratio: float, image: Complexes) -> Complexes:
        """The image of a sum of N terms, P[N = n] = (1 − ratio) ratioⁿ."""
        values: Complexes = (1.0 - ratio) / (1.0 - ratio * image)
        return values


def bracket(
    lattice: Lattice, early: Complexes, late: Complexes, t_s: Floats
) -> tuple[Floats, Floats]:
    """P[X ≤ t] as the middle between the two lattice laws, and half of what lies between them.

    Times must not lie beyond the lattice.
    """
    at = np.clip(np.floor(t_s / lattice.step_s * (1.0 + 1e-13)), 0, lattice.points).astype(np.int64)
    high = lattice.cumulative(early)[at]
    low = lattice.cumulative(late)[at]
    return 0.5 * (high + low), 0.5 * np.maximum(high - low, 0.0) + NOISE
