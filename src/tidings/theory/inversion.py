"""Laws from their transforms: the Euler rule of Abate and Whitt at nodes z = β/t.

F(t) = (1/t) Σ η_k Re[X*(β_k/t)/(β_k/t)]. With m terms (2m + 1 nodes) the error for a smooth law is
about 10^(−0.6 m), and rounding about 10^(m/3 − 16): 17 terms give some 1e-10. A second rule with
fewer terms tells how far the first can be off.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cache

import numpy as np
from numpy.typing import NDArray

from tidings.theory.stages import Complexes, Delay, Floats

TERMS, FEWER_TERMS = 17, 14
# The difference between the rules swings around 0 as t grows, so it is looked at nearby too. It was
# never below half the error on narrow laws and on laws with corners; the floor covers rounding.
_NEARBY = np.array([1.0, 0.965, 1.04])
CAUTION = 4.0
_FLOOR = 2e-10
SERIES_FLOOR = 2e-9  # damping and rounding of the long series
FAR = 25.0  # standard deviations beyond the mean, from where on a law has all but ended
_DAMPING = 21.0  # A: e^−21 is 8e-10, and rounding grows by e^10.5 to 4e-12
_SERIES, _SHORTER_SERIES, _AVERAGED = 64, 48, 12
_MOST_VALUES = 1 << 23  # complex numbers remembered


@cache
def euler_rule(terms: int) -> tuple[Complexes, Floats]:
    """The nodes β and weights η of the Euler rule with so many terms."""
    k = np.arange(2 * terms + 1)
    share = np.ones(2 * terms + 1)
    share[0] = 0.5
    share[2 * terms] = 2.0**-terms
    for j in range(1, terms):
        share[2 * terms - j] = share[2 * terms - j + 1] + 2.0**-terms * math.comb(terms, j)
    nodes: Complexes = terms * math.log(10.0) / 3.0 + 1j * math.pi * k.astype(np.complex128)
    weights: Floats = (-1.0) ** k * share * 10.0 ** (terms / 3.0)
    return nodes, weights


@cache
def series_rule() -> tuple[Complexes, Floats, Floats]:
    """Nodes β of a long Fourier series, its weights, and those of a shorter one on the same nodes.

    The plain form of the rule: k-th node (A + 2πik)/2, the alternating series averaged over its
    last partial sums. Its error is below e^−A for any law once the series is long enough; that it
    is, the shorter one tells. It resolves laws far narrower than their distance from 0.
    """
    k = np.arange(_SERIES + _AVERAGED + 1)
    nodes: Complexes = 0.5 * _DAMPING + 1j * math.pi * k.astype(np.complex128)
    choose = np.array([math.comb(_AVERAGED, j) for j in range(_AVERAGED + 1)]) / 2.0**_AVERAGED
    left = 1.0 - np.concatenate([[0.0], np.cumsum(choose)[:-1]])  # share of sums a term is in

    def weights(terms: int) -> Floats:
        share = np.zeros(nodes.size)
        share[: terms + 1] = 1.0
        share[terms : terms + left.size] = left
        share[0] = 0.5
        found: Floats = math.exp(0.5 * _DAMPING) * (-1.0) ** np.arange(nodes.size) * share
        return found

    return nodes, weights(_SERIES), weights(_SHORTER_SERIES)


class NodeValues:
    """The transforms of delays at the nodes of times, each computed once.

    A path is then a product of these vectors.
    """

    def __init__(self, terms: Iterable[int] = (), nodes: Complexes | None = None) -> None:
        known = [euler_rule(each)[0] for each in terms] + ([] if nodes is None else [nodes])
        self._nodes: Complexes = np.concatenate(known)
        self._known: dict[tuple[tuple[Delay, ...], bytes], Complexes] = {}

    def product(self, delays: tuple[Delay, ...], t_s: Floats) -> tuple[Complexes, Complexes]:
        """The nodes z [time, node] and the transform of the sum of the delays there.

        What comes before the last delay is remembered too: many paths differ only in their end.
        """
        z: Complexes = self._nodes / t_s[:, None]
        times = t_s.tobytes()
        before = self._remembered(delays[:-1], times)
        if before is None:
            before = np.ones(z.shape, dtype=np.complex128)
            for delay in delays[:-1]:
                before = before * self._transform(delay, z, times)
            self._remember(delays[:-1], times, before)
        return z, before * self._transform(delays[-1], z, times)

    def _transform(self, delay: Delay, z: Complexes, times: bytes) -> Complexes:
        found = self._remembered((delay,), times)
        if found is None:
            found = delay.transform(z)
            self._remember((delay,), times, found)
        return found

    def _remembered(self, delays: tuple[Delay, ...], times: bytes) -> Complexes | None:
        return self._known.get((delays, times))

    def _remember(self, delays: tuple[Delay, ...], times: bytes, value: Complexes) -> None:
        if len(self._known) * value.size > _MOST_VALUES:
            self._known.clear()
        self._known[delays, times] = value


def inverted_cdf(
    values: NodeValues, delays: tuple[Delay, ...], t_s: Floats
) -> tuple[Floats, Floats]:
    """P[sum of the delays ≤ t] for t > 0, and an estimate of its error, on the safe side.

    ``values`` must hold the nodes of ``TERMS`` and then of ``FEWER_TERMS``.
    """
    times_s = np.outer(_NEARBY, t_s).ravel()
    z, transform = values.product(delays, times_s)
    density: NDArray[np.float64] = (transform / z).real
    (_, weights), (_, fewer) = euler_rule(TERMS), euler_rule(FEWER_TERMS)
    best = density[:, : weights.size] @ weights / times_s
    check = density[:, weights.size :] @ fewer / times_s
    difference = np.abs(best - check).reshape(_NEARBY.size, t_s.size).max(axis=0)
    return np.clip(best[: t_s.size], 0.0, 1.0), CAUTION * difference + _FLOOR


def series_cdf(values: NodeValues, delays: tuple[Delay, ...], t_s: Floats) -> tuple[Floats, Floats]:
    """The same by the long series, for narrow laws; ``values`` must hold the nodes of that.

    Far beyond the law it is asked nearer, as there can be next to nothing between.
    """
    mean_s = sum(delay.mean_s for delay in delays)
    far_s = mean_s + FAR * math.sqrt(sum(delay.variance_s2 for delay in delays))
    asked_s = np.minimum(t_s, far_s)
    times_s = np.outer(_NEARBY, asked_s).ravel()
    z, transform = values.product(delays, times_s)
    _, weights, fewer = series_rule()
    both = (transform / z).real @ np.stack([weights, fewer], axis=1) / times_s[:, None]
    difference = np.abs(both[:, 0] - both[:, 1]).reshape(_NEARBY.size, t_s.size).max(axis=0)
    found = np.clip(both[: t_s.size, 0], 0.0, 1.0)
    error = CAUTION * difference + SERIES_FLOOR + np.where(t_s > asked_s, 1.0 - found, 0.0)
    return found, error
