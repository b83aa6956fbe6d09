"""Phase-type delays in series as one Markov chain: exact to rounding, equal rates or not."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tidings.model.laws import ended_share

Floats = NDArray[np.float64]
Chain = tuple[Floats, Floats]

ROUNDING = 4e-15  # of one step of the computation


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
    """P[chain ended by t] = 1 − initial · exp(generator · t) · 1 for t ≥ 0, and its error.

    No digits are lost on the way (``ended_share``), so that rounding adds up with the doublings
    of the time step and no faster.
    """
    initial, generator = chain
    if initial.size == 0:
        return np.ones(t_s.shape), np.zeros(t_s.shape)
    fastest_per_s = float(-generator.diagonal().min())
    doublings = np.maximum(np.ceil(np.log2(np.maximum(fastest_per_s * t_s, 1.0))), 0.0)
    error = ROUNDING * initial.size * (doublings + 4.0)
    return ended_share(initial, generator, t_s), error
