"""Times that a law takes with a probability of their own, and lattices on which they lie."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import NamedTuple

from tidings.model.laws import Deterministic, Empirical, Law, unshifted

_ALL = 1.0 - 1e-12  # of a law, from which on there is nothing besides its atoms
_SAME = 1e-12  # by which times may miss a lattice point, relative


class Atoms(NamedTuple):
    """The atoms of a law in seconds, and their probabilities."""

    times_s: tuple[float, ...]
    shares: tuple[float, ...]

    @property
    def whole(self) -> bool:
        """Whether the law has nothing else."""
        return sum(self.shares) >= _ALL


def atoms(law: Law) -> Atoms:
    """The times that a law takes with a probability above 0.

    >>> atoms(Empirical(edges_s=(0.0, 1.0, 1.0), weights=(0.5, 0.5)))
    Atoms(times_s=(1.0,), shares=(0.5,))
    """
    base, shift_s = unshifted(law)
    if isinstance(base, Deterministic):
        return Atoms((base.value_s + shift_s,), (1.0,))
    if not isinstance(base, Empirical):  # others have one at 0 at most
        first = float(base.cdf(0.0))
        return Atoms((shift_s,), (first,)) if first > 0.0 else Atoms((), ())
    shares: dict[float, float] = {}
    total = sum(base.weights)
    for low_s, high_s, weight in zip(
        base.edges_s[:-1], base.edges_s[1:], base.weights, strict=True
    ):
        if low_s == high_s and weight > 0.0:
            shares[low_s + shift_s] = shares.get(low_s + shift_s, 0.0) + weight / total
    return Atoms(tuple(shares), tuple(shares.values()))


def common_step_s(times_s: Iterable[float], most: int) -> float | None:
    """The longest step of which all times are multiples, in seconds; None: ``most`` is not enough.

    >>> common_step_s([1.0, 0.25, 1.75], most=100), common_step_s([1.0, 2.0**0.5], most=100)
    (0.25, None)
    """
    positive = sorted(time_s for time_s in times_s if time_s > 0.0)
    parts = 1
    for time_s in positive:
        ratio = Fraction(time_s / positive[0]).limit_denominator(most)
        parts = math.lcm(parts, ratio.denominator)
        if parts > most or abs(float(ratio) * positive[0] - time_s) > _SAME * time_s:
            return None
    return positive[0] / parts
