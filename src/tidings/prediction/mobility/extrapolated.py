"""A delay between two that are off in the same direction, one of them twice as far as the other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidings.model.laws import PhaseType
from tidings.prediction.lattice import Lattice
from tidings.prediction.stages import Chain, Complexes, Floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Extrapolated:
    """2 · near − far: what remains of an error that grows evenly is its square (Richardson)."""

    near: PhaseType
    far: PhaseType

    @property
    def mean_s(self) -> float:
        """E[X], in seconds."""
        return 2.0 * self.near.mean_s - self.far.mean_s

    @property
    def variance_s2(self) -> float:
        """Var X, from the squares of both."""
        near_s2, far_s2 = (law.mean_s**2 * (1.0 + law.scv) for law in (self.near, self.far))
        return 2.0 * near_s2 - far_s2 - self.mean_s**2

    @property
    def atom(self) -> float:
        """None: a service takes time."""
        return 0.0

    @property
    def order(self) -> float:
        """That of phases."""
        return 1.0

    @property
    def kinked(self) -> bool:
        """Smooth, as phases are."""
        return False

    def chain(self) -> Chain | None:
        """None: a difference has no phases."""
        return None

    def cdf(self, t_s: Floats) -> Floats | None:
        """P[X ≤ t], within 0 and 1."""
        found: Floats = np.clip(2.0 * self.near.cdf(t_s) - self.far.cdf(t_s), 0.0, 1.0)
        return found

    def transform(self, z: Complexes) -> Complexes:
        """E[exp(−zX)]."""
        found: Complexes = 2.0 * self.near.transform(z) - self.far.transform(z)
        return found

    def on_lattice(self, lattice: Lattice) -> tuple[Complexes, Complexes]:
        """Images of the delay made earlier and made later."""
        return lattice.enclosing(self._grown)

    def _grown(self, t_s: Floats) -> Floats:
        """P[X ≤ t] at times in order; a lattice must not be told that it falls."""
        found = self.cdf(t_s)
        assert found is not None
        return np.maximum.accumulate(found)
