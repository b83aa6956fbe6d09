"""What becomes of the states of a Markov chain as time goes by."""

from __future__ import annotations

import numpy as np
from scipy import linalg, sparse, stats

from tidings.theory.faults.processes import Floats

_UNSEEN = 1e-12  # share of the events that may jump more often than is counted
_FEW_STATES, _MANY_JUMPS = 700, 60  # from which on matrices are cheaper than jumps


class Evolution:
    """Shares of the states of a chain, and means over what becomes of them, as time goes by.

    Jumps at a constant rate are counted; where a small chain jumps very often, its transition
    matrix is made once for each length of time that is asked for.
    """

    def __init__(self, generator: sparse.csr_array) -> None:
        self.generator = generator
        self.per_s = max(float(-generator.diagonal().min()), 1e-12)
        unit = sparse.eye_array(generator.shape[0])
        self.forwards = sparse.csr_array(unit + generator / self.per_s)
        self.backwards = sparse.csr_array(self.forwards.T)
        self._matrices: dict[float, Floats] = {}

    def shares(self, rows: Floats, time_s: float) -> Floats:
        """Shares of states (the last axis), so much later."""
        matrix = self._matrix(time_s)
        if matrix is not None:
            return np.asarray(rows @ matrix)
        return self._summed(self.backwards, rows.T, time_s).T

    def means(self, values: Floats, time_s: float) -> Floats:
        """The mean of some value of the state so much later, by the state now."""
        matrix = self._matrix(time_s)
        if matrix is not None:
            return np.asarray(matrix @ values)
        return self._summed(self.forwards, values, time_s)

    def mean_shares(self, row: Floats, time_s: float) -> Floats:
        """Shares of states on average over the time from now: Σ P[more than k jumps]/mean jumpᵏ."""
        mean = self.per_s * time_s
        last = int(stats.poisson.isf(_UNSEEN, mean)) + 2
        weights = stats.poisson.sf(np.arange(last), mean) / mean
        now = row
        total: Floats = weights[0] * row
        for weight in weights[1:]:
            now = self.backwards @ now
            total = total + weight * now
        return np.asarray(total / weights.sum())

    def _matrix(self, time_s: float) -> Floats | None:
        """The transition probabilities over a time, or None where jumps are better counted."""
        if self.generator.shape[0] > _FEW_STATES or self.per_s * time_s < _MANY_JUMPS:
            return None
        key = float(f"{time_s:.12g}")  # equal steps differ by rounding
        if key not in self._matrices:
            found: Floats = linalg.expm(self.generator.toarray() * time_s)
            self._matrices[key] = found
        return self._matrices[key]

    def _summed(self, jump: sparse.csr_array, begin: Floats, time_s: float) -> Floats:
        """Σ P[k jumps] jumpᵏ, jumps at a constant rate."""
        mean = self.per_s * time_s
        weights = stats.poisson.pmf(np.arange(int(stats.poisson.isf(_UNSEEN, mean)) + 2), mean)
        now = begin
        total: Floats = weights[0] * begin
        for weight in weights[1:]:
            now = jump @ now
            total = total + weight * now
        return total
