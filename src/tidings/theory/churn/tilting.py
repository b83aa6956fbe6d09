"""Delays as those see them who stay an exponential time: weighted by exp(−θX).

A subscriber that leaves at rate θ sees of all delays X more of the short ones. Weighted so, a sum
of independent delays is still a sum of independent delays, each with transform X*(z + θ)/X*(θ).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import fft

from tidings.theory.lattice import Lattice
from tidings.theory.stages import Chain, Complexes, Delay, Floats

_TINY = 1e-30  # step into the complex plane: derivatives without cancellation
_NEARBY = 1e-4  # step in θ for the second derivative, in parts of 1/E[X]


def transform_at(delay: Delay, per_s: float) -> float:
    """E[exp(−θX)] at one real θ, per second."""
    return float(delay.transform(np.array([per_s], dtype=np.complex128))[0].real)


@dataclass(frozen=True, kw_only=True, eq=False)
class Tilted:
    """A delay X with its law weighted by exp(−θX), and made a law again."""

    delay: Delay
    per_s: float  # θ

    @cached_property
    def mass(self) -> float:
        """E[exp(−θX)]: the share of events whose subscriber is still there."""
        return transform_at(self.delay, self.per_s)

    @cached_property
    def mean_s(self) -> float:
        """E[X exp(−θX)]/E[exp(−θX)], in seconds."""
        return self._mean_s(self.per_s) if self._moments is None else self._moments[0]

    @cached_property
    def variance_s2(self) -> float:
        """The variance under the weighted law, in seconds squared; good to three digits."""
        if self._moments is not None:
            return max(self._moments[1] - self._moments[0] ** 2, 0.0)
        step = _NEARBY / self.delay.mean_s
        fall = self._mean_s(self.per_s) - self._mean_s(self.per_s + step)
        return max(fall / step, 0.0)

    @cached_property
    def _moments(self) -> tuple[float, float] | None:
        """Mean and mean square from its phases; None where it has none.

        Transforms of many phases turn through the complex plane, where so small a step is lost.
        """
        phases = self.chain()
        if phases is None:
            return None
        initial, generator = phases
        once = np.linalg.solve(-generator, np.ones(initial.size))
        twice = np.linalg.solve(-generator, once)
        return float(initial @ once), 2.0 * float(initial @ twice)

    def _mean_s(self, per_s: float) -> float:
        """−d/dθ ln E[exp(−θX)]."""
        step = _TINY * per_s
        value = self.delay.transform(np.array([complex(per_s, step)]))[0]
        return -float(value.imag) / step / float(value.real)

    @property
    def atom(self) -> float:
        """P[X = 0] under the weighted law."""
        return self.delay.atom / self.mass

    @property
    def order(self) -> float:
        """As smooth as the delay itself."""
        return self.delay.order

    @property
    def kinked(self) -> bool:
        """With corners where the delay itself has them."""
        return self.delay.kinked

    def chain(self) -> Chain | None:
        """The phases, of the ways through them on which θ did not strike."""
        found = self.delay.chain()
        if found is None:
            return None
        initial, generator = found
        slowed = generator - self.per_s * np.eye(len(initial))
        arrives = np.linalg.solve(-slowed, -generator.sum(axis=1))  # before θ strikes, by phase
        weights = initial * arrives
        total = weights.sum() + (1.0 - initial.sum())
        return weights / total, slowed * arrives / arrives[:, None]

    def cdf(self, t_s: Floats) -> Floats | None:
        """Not in closed form."""
        return None

    def transform(self, z: Complexes) -> Complexes:
        """X*(z + θ)/X*(θ)."""
        return self.delay.transform(z + self.per_s) / self.mass

    def on_lattice(self, lattice: Lattice) -> tuple[Complexes, Complexes]:
        """Images that still enclose the truth: what is made earlier weighs more, and later less."""
        early, late = self.delay.on_lattice(lattice)
        return self._weighed(early, lattice), self._weighed(late, lattice)

    def _weighed(self, image: Complexes, lattice: Lattice) -> Complexes:
        length = 2 * lattice.points
        masses = fft.irfft(image, length)
        weights = np.exp(-self.per_s * lattice.step_s * np.arange(length)) / self.mass
        found: Complexes = fft.rfft(masses * weights, length)
        return found
