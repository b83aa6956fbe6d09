"""Phase-type delays in series as one Markov chain: exact to rounding, equal rates or not."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Chain = tuple[Floats, Floats]

ROUNDING = 4e-15  # of one step of the computation
_TERMS = 14  # of the exponential series at a quarter: the rest is below 1e-20


def chain_in_series(chains: Sequence[Chain]) -> Chain:
    """The chain that goes through all the chains one after the other.

    What a chain's initial shares lack to 1 passes it in no time.

    >>> one = (np.ones(1), np.array([[-2.0]]))
    >>> chain_in_series([one, one])[1].tolist()
    [[-2.0, 2.0], [0.0, -2.0]]
    """
    initial, generator = np.empty(0), np.empty((0, 0))
    for share, rates in chains:
        leaving = -generator.sum(axis=1)
        before, after = len(initial), len(share)
        joined = np.zeros((before + after, before + after))
        joined[:before, :before] = generator
        joined[:before, before:] = np.outer(leaving, share)
        joined[before:, before:] = rates
        initial = np.concatenate([initial, (1.0 - initial.sum()) * share])
        generator = joined
    return initial, generator


def chain_cdf(chain: Chain, t_s: Floats) -> tuple[Floats, Floats]:
    """P[chain ended by t] = 1 − initial · exp(generator · t) · 1 for t ≥ 0, and its error."""
    initial, generator = chain
    if initial.size == 0:
        return np.ones(t_s.shape), np.zeros(t_s.shape)
    fastest = float(-generator.diagonal().min())
    triangular = not np.any(np.tril(generator, -1))
    decays = -generator.diagonal() if triangular else -np.linalg.eigvals(generator).real
    slowest = float(decays.min())
    jumps = np.eye(initial.size) + generator / fastest
    ended, error = np.empty(t_s.shape), np.empty(t_s.shape)
    for index, time_s in np.ndenumerate(t_s):
        until_s = min(float(time_s), 750.0 / slowest)  # e^−750 is no more than nothing
        halvings = max(0, math.ceil(math.log2(max(4.0 * fastest * until_s, 1.0))))
        alive = float(initial @ _exponential(generator, jumps, until_s, halvings).sum(axis=1))
        # Squaring doubles the relative error, unless the diagonal is put right each time.
        steps = halvings + 4.0 if triangular else 2.0**halvings * alive + 4.0
        ended[index] = min(max(1.0 - alive, 0.0), 1.0)
        error[index] = ROUNDING * initial.size * steps
    return ended, error


def _exponential(generator: Floats, jumps: Floats, time_s: float, halvings: int) -> Floats:
    """exp(generator · t) by uniformisation over t/2^halvings and squaring: sums of positive terms.

    ``jumps`` is 1 + generator/fastest, so that exp(generator · t) = e^−θ exp(θ · jumps).
    """
    diagonal = generator.diagonal()
    fastest = float(-diagonal.min())
    theta = fastest * time_s / 2.0**halvings
    term = power = np.eye(len(generator))
    for count in range(1, _TERMS):
        term = term @ jumps * (theta / count)
        power = power + term
    power = power * math.exp(-theta)
    triangular = not np.any(np.tril(generator, -1))
    for left in range(halvings - 1, -1, -1):
        power = power @ power
        if triangular:
            np.fill_diagonal(power, np.exp(diagonal * (time_s / 2.0**left)))
    return power
