r"""How far several services together exceed a time: the first two moments of (S_1 + … + S_j − t)⁺.

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
_FAR = 38.0  # standard deviations beyond which there is nothing
_SKEWED = 0.1  # third cumulant over variance from which on a sum is taken as gamma


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSums:
    """Sums of services of one law, scaled to mean 1."""

    scv: float
    third: float  # E[(S − 1)³]
    few: Floats = field(default_factory=lambda: np.empty((0, 1)))  # [j − 1, lattice point]
    few_squared: Floats = field(default_factory=lambda: np.empty((0, 1)))

    def over(self, count: Ints, time: Floats) -> tuple[Floats, Floats]:
        """E[(S_1 + … + S_j − t)⁺] and that of its square for j ≥ 1, in mean services."""
        if self.scv < _CONSTANT:
            excess = np.maximum(count - time, 0.0)
            return excess, excess**2
        few = count <= len(self.few)
        first, second = np.empty(time.shape), np.empty(time.shape)
        first[few] = _on_lattice(self.few, count[few], time[few])
        second[few] = _on_lattice(self.few_squared, count[few], time[few])
        first[~few], second[~few] = self._by_moments(count[~few], time[~few])
        return np.maximum(first, 0.0), np.maximum(second, 0.0)

    def _by_moments(self, count: Ints, time: Floats) -> tuple[Floats, Floats]:
        if self.third < _SKEWED * self.scv:
            many = count.astype(np.float64)
            return normal_excess(time - many, many * self.scv, many * self.third)
        scale = 0.5 * self.third / self.scv
        shape = count * (self.scv / scale**2)
        after = time - count * (1.0 - self.scv / scale)  # the sum begins so long before
        x = np.maximum(after, 0.0) / scale
        beyond = special.gammaincc(shape, x)
        edge = np.exp(special.xlogy(shape, x) - x - special.gammaln(shape + 1.0))
        mean = shape * scale * (beyond + edge)  # of the sum, where it is beyond
        square = scale**2 * shape * ((shape + 1.0) * (beyond + edge) + x * edge)
        first: Floats = mean - after * beyond
        second: Floats = square - 2.0 * after * mean + after**2 * beyond
        return first, second


def normal_excess(distance: Floats, variance: Floats, third: Floats) -> tuple[Floats, Floats]:
    """E[(X − d)⁺] and E[((X − d)⁺)²], X normal around 0 but for its third cumulant.

    With d = s u: s (φ − u Φ(−u)) + κ₃/(6s²) u φ, and s² ((1 + u²) Φ(−u) − u φ) + κ₃/(3s) φ. Far
    below the mean there is nothing: −d, and d² + s².
    """
    spread = np.sqrt(np.maximum(variance, 1e-300))
    u = np.clip(distance / spread, -_FAR, _FAR)
    density = np.exp(-0.5 * u * u) / math.sqrt(2.0 * math.pi)
    beyond = special.ndtr(-u)
    first: Floats = spread * (density - u * beyond) + third / (6.0 * spread**2) * u * density
    even = spread**2 * ((1.0 + u * u) * beyond - u * density)
    second: Floats = even + third / (3.0 * spread) * density
    certain = distance < -_FAR * spread
    return np.where(certain, -distance, first), np.where(certain, distance**2 + variance, second)


def _on_lattice(table: Floats, count: Ints, time: Floats) -> Floats:
    place = time * _PER_MEAN
    last = table.shape[1] - 1
    at = np.clip(np.floor(place), 0, max(last - 1, 0)).astype(np.int64)
    part = place - at
    row = count - 1
    found = (1.0 - part) * table[row, at] + part * table[row, np.minimum(at + 1, last)]
    return np.where(place >= last, 0.0, found)


def service_sums(law: Law) -> ServiceSums:
    """The sums of services of a law.

    >>> sums = service_sums(Exponential(mean_s=3.0))
    >>> first, second = sums.over(np.array([1, 1]), np.array([0.0, 1.0]))
    >>> first.round(4).tolist(), second.round(4).tolist()  # 1 and 1/e, twice that
    ([1.0, 0.3679], [2.0, 0.7358])
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
    few, few_squared = np.empty((_SUMMED, points)), np.empty((_SUMMED, points))
    for row, squared in zip(few, few_squared, strict=True):
        power = power * image
        beyond = 1.0 - np.minimum(np.cumsum(fft.irfft(power, length)[:points]), 1.0)
        # P[S > x] is constant between lattice points: sum it up from the far end.
        row[:] = np.concatenate([np.cumsum(beyond[-2::-1])[::-1], [0.0]]) / _PER_MEAN
        lines = row[:-1] + row[1:]  # E[(S − x)⁺] is straight between them
        squared[:] = np.concatenate([np.cumsum(lines[::-1])[::-1], [0.0]]) / _PER_MEAN
    return ServiceSums(scv=law.scv, third=third, few=few, few_squared=few_squared)


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
