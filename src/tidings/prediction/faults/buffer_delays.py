"""Waits in buffers as delays of a path: dense where that is cheap, else by counting jumps."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse, special
from scipy.sparse import linalg

from tidings.model.laws import PhaseType
from tidings.prediction.faults.waiting import Wait
from tidings.prediction.lattice import Lattice
from tidings.prediction.stages import Chain, Complexes, Delay, Floats, LawDelay

MOST_DENSE_STATES = 64
_LEFT = 1e-13  # share of events that may still wait after the last jump counted
_MOST_JUMPS = 200_000
_BLOCK = 1 << 22  # (time, jump) pairs handled at once


def buffer_delay(wait: Wait) -> Delay | None:
    """The wait as a delay of a path, or None where there is none."""
    if float(wait.initial.sum()) == 0.0:
        return None
    if wait.initial.size > MOST_DENSE_STATES:
        return CountedJumps(wait=wait)
    generator = wait.generator.toarray()
    law = PhaseType(initial=tuple(wait.initial), generator=tuple(map(tuple, generator)))
    return LawDelay(law=law, atom=wait.atom, order=0.0 if wait.atom > 0.0 else 1.0, kinked=False)


@dataclass(frozen=True, kw_only=True, eq=False)
class CountedJumps:
    """The wait of a large chain: jumps come at a constant rate, and some jump ends it.

    With e_k the probability that jump k is the last one and Λ the rate of jumps,
    P[X ≤ t] = atom + Σ e_k P[k jumps by t], and the transform is atom + Σ e_k (Λ/(Λ + z))^k.
    """

    wait: Wait
    kinked: bool = False

    @property
    def atom(self) -> float:
        """P[X = 0]."""
        return self.wait.atom

    @property
    def order(self) -> float:
        """0 beside an atom, else 1."""
        return 0.0 if self.atom > 0.0 else 1.0

    @cached_property
    def _moments(self) -> tuple[float, float]:
        rates = sparse.csc_array(-self.wait.generator)
        solve = linalg.splu(rates).solve
        once = solve(np.ones(rates.shape[0]))
        return float(self.wait.initial @ once), float(2.0 * self.wait.initial @ solve(once))

    @property
    def mean_s(self) -> float:
        """E[X], in seconds."""
        return self._moments[0]

    @property
    def variance_s2(self) -> float:
        """Var X, in seconds squared."""
        mean_s, square_s2 = self._moments
        return square_s2 - mean_s**2

    def chain(self) -> Chain | None:
        """None: too many phases to put them in series with others."""
        return None

    @cached_property
    def _last_jump(self) -> tuple[float, Floats]:
        """The rate of jumps (1/s) and the probability that the wait ends with jump 1, 2, …"""
        rates = self.wait.generator
        per_s = float(-rates.diagonal().min())
        jump = sparse.csr_array((sparse.eye_array(rates.shape[0]) + rates / per_s).T)
        left = self.wait.initial.copy()
        remains = [float(left.sum())]
        while remains[-1] > _LEFT * remains[0] and len(remains) <= _MOST_JUMPS:
            left = jump @ left
            remains.append(float(left.sum()))
        return per_s, np.maximum(-np.diff(remains), 0.0)

    def cdf(self, t_s: Floats) -> Floats | None:
        """P[X ≤ t], what has not ended with the last jump counted left out."""
        per_s, ends = self._last_jump
        times = np.asarray(t_s, dtype=np.float64)
        flat = times.ravel()
        jumps = np.arange(1, ends.size + 1)
        value = np.empty(flat.size)
        step = max(1, _BLOCK // ends.size)
        for begin in range(0, flat.size, step):
            mean = per_s * np.maximum(flat[begin : begin + step], 0.0)
            value[begin : begin + step] = special.gammainc(jumps, mean[:, None]) @ ends
        found: Floats = np.where(flat >= 0.0, self.atom + value, 0.0).reshape(times.shape)
        return np.minimum(found, 1.0)

    def transform(self, z: Complexes) -> Complexes:
        """E[exp(−zX)]."""
        per_s, ends = self._last_jump
        ratio = per_s / (per_s + z)
        value: Complexes = np.zeros(z.shape, dtype=np.complex128)
        for end in ends[::-1]:
            value = (value + end) * ratio
        return value + self.atom

    def on_lattice(self, lattice: Lattice) -> tuple[Complexes, Complexes]:
        """Images of the wait made earlier and made later."""
        below = self.cdf(lattice.step_s * np.arange(lattice.points + 2))
        assert below is not None
        return lattice.image(below[1:]), lattice.image(below[:-1])
