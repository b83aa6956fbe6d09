"""Rough laws on a lattice: every delay rounded to the nearest point, or down and up.

Rounded to the nearest the error is known beforehand for delays with densities (``pieces``). Rounded
down and up, both sums are laws on whole steps between which the true one lies, whatever its shape.
Laws are multiplied as images: generating functions at damped roots of unity, so that what runs over
the end of the lattice returns only with a factor ``_RETURNS``.
"""

from __future__ import annotations

from collections.abc import Callable
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

    def rounded(self, cdf: Callable[[Floats], Floats]) -> Complexes:
        """The image of a law of delays, each rounded to the nearest point."""
        middles_s: Floats = self.step_s * (np.arange(self.points + 1, dtype=np.float64) + 0.5)
        return self.image(cdf(middles_s))

    def enclosing(self, cdf: Callable[[Floats], Floats | None]) -> tuple[Complexes, Complexes]:
        """Images of a law made earlier and made later, both whole steps.

        Rounded down, P[⌊X/h⌋ ≤ k] ≤ F((k+1)h); rounded up, P[⌈X/h⌉ ≤ k] = F(kh).
        """
        below = cdf(self.step_s * np.arange(self.points + 2.0))
        assert below is not None, "only a law that has a CDF is asked for both images"
        return self.image(below[1:]), self.image(below[:-1])

    def shared(self, over_s: Callable[[Floats], Floats]) -> Complexes:
        """The image of a law, each delay shared by the points next to it so that the mean is kept.

        ``over_s`` is E[(X − t)⁺] in seconds.
        """
        over = over_s(self.step_s * np.arange(self.points + 2, dtype=np.float64)) / self.step_s
        below = 1.0 + np.diff(over)  # the mean of the CDF over each step
        return self.image(np.clip(below, 0.0, 1.0))

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
