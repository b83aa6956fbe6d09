"""A law known by its transform as a table: cheap to ask at many times, with a stated error."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.interpolate import PchipInterpolator

from tidings.theory.inversion import TERMS, euler_rule
from tidings.theory.lattice import Lattice
from tidings.theory.stages import Complexes, Floats

_PER_DECADE = 48  # points
_ROUNDING = 1e-9  # of the inversion


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Table:
    """P[X ≤ t] on a logarithmic grid of times, and how far it may be off in between."""

    first_s: float
    atom: float
    curve: PchipInterpolator  # of ln t
    error: float

    def below(self, t_s: Floats) -> Floats:
        """The law at any times of 0 or more; from 0 to the first point it grows like t."""
        inside = np.clip(np.log(np.maximum(t_s, self.first_s)), None, self.curve.x[-1])
        early = np.minimum(t_s / self.first_s, 1.0)
        found: Floats = self.atom + (self.curve(inside) - self.atom) * early
        return found

    def on_lattice(self, lattice: Lattice) -> tuple[Complexes, Complexes]:
        """Images of the delay made earlier and made later, the table's error included."""
        below = self.below(lattice.step_s * np.arange(lattice.points + 2, dtype=np.float64))
        high = np.minimum(below[1:] + self.error, 1.0)
        low = np.maximum(below[:-1] - self.error, 0.0)
        return lattice.image(high), lattice.image(low)


def tabulated(
    transform: Callable[[Complexes], Complexes], ends_s: tuple[float, float], atom: float
) -> Table:
    """Inversion at some hundred times; what every other of them would have missed is the error."""
    first_s, last_s = ends_s
    count = 2 * math.ceil(0.5 * _PER_DECADE * math.log10(last_s / first_s)) + 1
    times_s = np.geomspace(first_s, last_s, count)
    nodes, weights = euler_rule(TERMS)
    z: Complexes = nodes / times_s[:, None]
    raw = (transform(z) / z).real @ weights / times_s
    below = np.maximum.accumulate(np.clip(raw, atom, 1.0))
    rough = PchipInterpolator(np.log(times_s[::2]), below[::2])
    missed = float(np.abs(rough(np.log(times_s[1::2])) - below[1::2]).max())
    curve = PchipInterpolator(np.log(times_s), below)
    return Table(first_s=first_s, atom=atom, curve=curve, error=missed + _ROUNDING)
