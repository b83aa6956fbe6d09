r"""How far several services together exceed a time: E[(S_1 + … + S_j − t)⁺].

Constant, exponential and gamma services in closed form. Of others, up to ``_SUMMED`` are added up
on a lattice that keeps the mean; more are taken as a gamma law that begins later than 0, or a
normal one with its skewness, with the three moments of the sum. Times are in mean services.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy import fft, special

from tidings.model.laws import Exponential, Gamma, Law

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_SUMMED = 16
_PER_MEAN = 64  # lattice points
_PIECES = 8  # pieces of a lattice step in which a law is integrated
_MOST_POINTS = 1 << 15
_REST = 1e-7  # of a law that may lie beyond the lattice
_CONSTANT = 1e-7  # c² below which services are constant
_SKEWED = 0.1  # third cumulant over variance from which on a sum is taken as gamma


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSums:
    """Sums of services of one law, scaled to mean 1."""

    scv: float
    third: float  # E[(S − 1)³]
    few: Floats = field(default_factory=lambda: np.empty((0, 1)))  # [j − 1, lattice point]

    def over(self, count: Ints, time: Floats) -> Floats:
        """E[(S_1 + … + S_j − t)⁺] for j ≥ 1, in mean services."""
        if self.scv < _CONSTANT:
            return np.maximum(count - time, 0.0)
        few = count <= len(self.few)
        found = np.empty(time.shape)
        found[few] = self._on_lattice(count[few], time[few])
        found[~few] = self._by_moments(count[~few], time[~few])
        return np.maximum(found, 0.0)

    def _on_lattice(self, count: Ints, time: Floats) -> Floats:
        place = time * _PER_MEAN
        last = self.few.shape[1] - 1
        at = np.clip(np.floor(place), 0, max(last - 1, 0)).astype(np.int64)
        part = place - at
        row = count - 1
        next_at = np.minimum(at + 1, last)
        found = (1.0 - part) * self.few[row, at] + part * self.few[row, next_at]
        return np.where(place >= last, 0.0, found)

    def _by_moments(self, count: Ints, time: Floats) -> Floats:
        if self.third < _SKEWED * self.scv:
            spread = np.sqrt(count * self.scv)
            u = np.clip((time - count) / spread, -38.0, 38.0)
            density = np.exp(-0.5 * u * u) / math.sqrt(2.0 * math.pi)
            skew = count * self.third / spread**2
            normal: Floats = spread * (density - u * special.ndtr(-u)) + skew / 6.0 * u * density
            return normal
        scale = 0.5 * self.third / self.scv
        shape = count * (self.scv / scale**2)
        begin = count * (1.0 - self.scv / scale)
        x = np.maximum(time - begin, 0.0) / scale
        beyond = special.gammaincc(shape, x)
        edge = np.exp(special.xlogy(shape, x) - x - special.gammaln(shape + 1.0))
        found: Floats = shape * scale * (beyond + edge) - (time - begin) * beyond
        return found


def service_sums(law: Law) -> ServiceSums:
    """The sums of services of a law.

    >>> sums = service_sums(Exponential(mean_s=3.0))
    >>> sums.over(np.array([1, 1]), np.array([0.0, 1.0])).round(4).tolist()  # 1 and 1/e
    [1.0, 0.3679]
    """
    if law.scv < _CONSTANT or isinstance(law, Exponential | Gamma):
        return ServiceSums(scv=law.scv, third=2.0 * law.scv**2)
    unit = law.scaled(1.0 / law.mean_s)
    end = float(unit.quantile(1.0 - _REST)) + _SUMMED + 8.0 * math.sqrt(_SUMMED * law.scv)
    points = min(math.ceil(end * _PER_MEAN), _MOST_POINTS)
    masses = _masses(unit, points)
    offset = np.arange(points) / _PER_MEAN - 1.0
    third = float(masses @ offset**3)
    length = 2 * points
    image = fft.rfft(masses, length)
    power = np.ones_like(image)
    few = np.empty((_SUMMED, points))
    for row in few:
        power = power * image
        beyond = 1.0 - np.minimum(np.cumsum(fft.irfft(power, length)[:points]), 1.0)
        # P[S > x] is constant between lattice points: sum it up from the far end.
        row[:] = np.concatenate([np.cumsum(beyond[-2::-1])[::-1], [0.0]]) / _PER_MEAN
    return ServiceSums(scv=law.scv, third=third, few=few)


def _masses(unit: Law, points: int) -> Floats:
    """A law on the lattice, every time shared between its neighbours so that the mean is kept."""
    width = 1.0 / (_PER_MEAN * _PIECES)
    beyond = 1.0 - unit.cdf(width * np.arange((points + 1) * _PIECES + 1))
    pieces = 0.5 * width * (beyond[1:] + beyond[:-1])
    over = np.concatenate([np.cumsum(pieces[::-1])[::-1], [0.0]])[::_PIECES]  # E[(S − x)⁺]
    over = np.concatenate([[over[0] + 1.0 / _PER_MEAN], over])
    masses = np.maximum((over[:-2] - 2.0 * over[1:-1] + over[2:]) * _PER_MEAN, 0.0)
    found: Floats = masses[:points] / masses.sum()
    return found
