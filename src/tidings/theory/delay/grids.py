r"""The times at which delays are held, and the inversion of their transforms there.

The inversion is the Euler rule of Abate and Whitt (2006): F(t) = (1/t) Σ η_k Re[X(β_k/t)/(β_k/t)],
good to about 1e-5 where the distribution is smooth; the corner of a lone uniform delay is smeared
by up to .01, beside other random delays by far less.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from tidings.model.arrays import Complexes, Floats
from tidings.model.laws import Law

TERMS = 12  # of the Euler rule: 2 · 12 + 1 nodes for every time
STEP = 0.125  # of the grid, in the logarithm of time
_FINER = 4  # parts of a step of the grid
_MOST_KEPT = 512  # transforms of laws, 40 kB each


def euler_rule(terms: int = TERMS) -> tuple[Complexes, Floats]:
    """Compute nodes β and weights η of the Euler rule (dimensionless)."""
    k = np.arange(2 * terms + 1)
    share = np.ones(2 * terms + 1)
    share[0] = 0.5
    share[2 * terms] = 2.0**-terms
    for j in range(1, terms):
        share[2 * terms - j] = share[2 * terms - j + 1] + 2.0**-terms * math.comb(terms, j)
    nodes: Complexes = terms * math.log(10.0) / 3.0 + 1j * math.pi * k.astype(np.complex128)
    weights: Floats = (-1.0) ** k * share * 10.0 ** (terms / 3.0)
    return nodes, weights


@dataclass(frozen=True, eq=False)
class Grid:
    """Times in seconds that grow by a constant factor, and the inversion nodes of each."""

    times_s: Floats
    z: Complexes  # [time · node], 1/s
    weights: Floats  # [node]
    fine_s: Floats  # times closer together, from 0 on, between which CDFs may be taken as straight

    @staticmethod
    def spanning(least_s: float, most_s: float) -> Grid:
        """Build the grid that reaches from one time to another, in seconds."""
        return _grid(math.floor(math.log(least_s) / STEP), math.ceil(math.log(most_s) / STEP))

    @cached_property
    def step(self) -> float:
        """From one time to the next, in the logarithm of time."""
        return float(np.log(self.times_s[1] / self.times_s[0]))

    def between(self, least_s: float, most_s: float) -> Grid:
        """Keep of the grid what lies around some times, in seconds."""
        first = max(int(np.searchsorted(self.times_s, least_s)) - 2, 0)
        last = min(int(np.searchsorted(self.times_s, most_s)) + 2, self.times_s.size)
        return self._part(slice(first, max(last, first + 2)))

    def thinned(self) -> Grid:
        """Keep every second time of the grid."""
        return self._part(slice(1 - self.times_s.size % 2, None, 2))

    def _part(self, points: slice) -> Grid:
        key = points.indices(self.times_s.size)
        if key not in self._parts:
            z = self.z.reshape(self.times_s.size, -1)[points]
            self._parts[key] = Grid(self.times_s[points], z.ravel(), self.weights, self.fine_s)
        return self._parts[key]

    @cached_property
    def _parts(self) -> dict[tuple[int, int, int], Grid]:
        """Parts that were asked for: what is worked out of one serves all who ask for it again."""
        return {}

    def kept(self, law: Law, start_s: float, values: Callable[[], Complexes]) -> Complexes:
        """Give the transform of what a law has after a start in seconds, worked out only once.

        Systems that differ by one change have nearly all their laws in common.
        """
        if (law, start_s) in self._kept:
            return self._kept[law, start_s]
        worked_out = values()
        if len(self._kept) < _MOST_KEPT:
            worked_out.flags.writeable = False
            self._kept[law, start_s] = worked_out
        return worked_out

    @cached_property
    def _kept(self) -> dict[tuple[Law, float], Complexes]:
        return {}

    @cached_property
    def rules(self) -> tuple[Complexes, Complexes]:
        """[time, node], twice: weights of transforms whose real sums are a CDF and its slope."""
        z = self.z.reshape(self.times_s.size, -1)
        below: Complexes = self.weights / (z * self.times_s[:, None])
        slope: Complexes = np.broadcast_to(self.weights * self.step + 0j, z.shape)
        return below, slope

    @cached_property
    def _rule(self) -> Floats:
        """[time, part of node, 2]: the same for real and imaginary parts side by side."""
        both = np.stack(self.rules, axis=-1)
        parts = np.stack([both.real, -both.imag], axis=2)  # Re(ab) = Re a · Re b − Im a · Im b
        return parts.reshape(len(both), -1, 2)

    def invert(self, values: Complexes) -> tuple[Floats, Floats]:
        """Compute CDFs and their slopes per grid step from transforms [n, time · node]."""
        parts = np.ascontiguousarray(values).view(np.float64)
        shape = len(values), self.times_s.size, 2 * self.weights.size
        folded = parts.reshape(shape).transpose(1, 0, 2)
        both = np.matmul(folded, self._rule)
        return both[:, :, 0].T.copy(), both[:, :, 1].T.copy()

    @cached_property
    def _pieces(self) -> Complexes:
        """[fine time, node]: transforms of uniform times between fine times, and of the last."""
        ends: Complexes = np.exp(-np.outer(self.fine_s, self.z))
        ends[:-1] = -np.diff(ends, axis=0) / (np.diff(self.fine_s)[:, None] * self.z)
        return ends

    def transform(self, below: Floats) -> Complexes:
        """Compute transforms at the nodes from CDFs at the fine times [n, fine time]."""
        masses = np.diff(below, axis=1, append=1.0)
        values: Complexes = masses @ self._pieces + below[:, :1]
        return values


@lru_cache(maxsize=2)
def _grid(first: int, last: int) -> Grid:
    """Make the grid between two steps; systems that differ little have the same one."""
    times_s: Floats = np.exp(STEP * np.arange(first, last + 1))
    nodes, weights = euler_rule()
    count = (times_s.size - 1) * _FINER + 1
    fine_s = np.concatenate([[0.0], np.geomspace(times_s[0], times_s[-1], count)])
    return Grid(times_s, (nodes / times_s[:, None]).ravel(), weights, fine_s)
