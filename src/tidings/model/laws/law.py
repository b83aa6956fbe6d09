"""What every law of a random time can answer, and the checks its families share.

A law is the distribution of a non-negative time. Its families are plain frozen dataclasses; nothing
inherits, and whatever answers these questions is a law.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol, Self

import numpy as np
import numpy.typing as npt

from tidings.errors import InvalidInputError, Problem
from tidings.model.arrays import Complexes

Reals = npt.NDArray[np.float64]
Size = int | tuple[int, ...]

WEIGHT_SLACK = 1e-9  # how far probabilities may sum from 1 before they are refused
LOOK_BACK = 64  # numbers before a quantile; rounding lets some reach the share, seen up to 40 back
MOST_LOOKS = 64  # times that the numbers before are looked at
_AT_ONCE = 1 << 14  # times looked at together


class Law(Protocol):
    """The distribution of a random time X ≥ 0, in seconds; every question takes arrays."""

    @property
    def mean_s(self) -> float:
        """E[X], in seconds."""
        ...

    @property
    def scv(self) -> float:
        """The squared coefficient of variation, Var X / E[X]²; 0 where the mean is 0."""
        ...

    def cdf(self, t_s: npt.ArrayLike) -> Reals:
        """Compute P[X ≤ t]: atoms at t are included."""
        ...

    def quantile(self, u: npt.ArrayLike) -> Reals:
        """Find the least t with P[X ≤ t] ≥ u, in seconds.

        For u = 0 it is the lower end of the support.
        """
        ...

    def transform(self, z: npt.ArrayLike) -> Complexes:
        """Compute E[exp(−zX)] for complex z (1/s) with Re z ≥ 0."""
        ...

    def sample(self, rng: np.random.Generator, size: Size) -> Reals:
        """Draw independent samples, in seconds."""
        ...

    def scaled(self, factor: float) -> Self:
        """Give the distribution of factor · X."""
        ...


def check(*objections: Iterable[Problem]) -> None:
    """Raise the error of a law that cannot be, with all that is said against it."""
    problems = [problem for each in objections for problem in each]
    if problems:
        raise InvalidInputError("invalid distribution of a time:", problems)


def number_problems(at: str, value: float, *, positive: bool = True) -> Iterator[Problem]:
    """Yield a problem unless a number is finite and above 0 (if not ``positive``, at least 0)."""
    good = math.isfinite(value) and (value > 0 if positive else value >= 0)
    if not good:
        want = "a finite number above 0" if positive else "a finite number, 0 or more"
        yield Problem(at=at, saw=str(value), want=want)


def limit_problems(at: str, value: float, *, least: float = 0.0, most: float) -> Iterator[Problem]:
    """Yield a problem if a number is below ``least`` or above ``most``."""
    if value < least or value > most:
        want = f"at least {least:g}" if value < least else f"at most {most:.1g}"
        yield Problem(at=at, saw=str(value), want=want)


def weight_problems(at: str, weights: Sequence[float]) -> Iterator[Problem]:
    """Yield problems of anything but probabilities that sum to 1."""
    bad = [each for weight in weights for each in number_problems(at, weight, positive=False)]
    yield from bad
    total = math.fsum(weights) if not bad else 1.0
    if not weights or abs(total - 1.0) > WEIGHT_SLACK:
        saw = f"weights that sum to {total:.12g}" if weights else "no weights"
        yield Problem(at=at, saw=saw, want="weights that sum to 1")


def check_number(at: str, value: float, *, positive: bool = True) -> None:
    """Refuse anything but a finite number above 0 (or, if not ``positive``, at least 0)."""
    check(number_problems(at, value, positive=positive))


def as_floats(values: Iterable[float]) -> tuple[float, ...]:
    """Convert values to plain floats, so that laws compare, hash and are written the same."""
    return tuple(float(value) for value in values)


def as_times(t_s: npt.ArrayLike) -> Reals:
    """Convert times, in seconds, to an array of float64."""
    return np.asarray(t_s, dtype=np.float64)


def as_shares(u: npt.ArrayLike) -> Reals:
    """Convert probabilities to an array; refuse anything outside [0, 1]."""
    shares = np.asarray(u, dtype=np.float64)
    if not bool(np.all((shares >= 0.0) & (shares <= 1.0))):
        check([Problem(at="u", saw=str(u), want="probabilities from 0 to 1")])
    return shares


def as_nodes(z: npt.ArrayLike) -> Complexes:
    """Convert the arguments of a transform to an array of complex128."""
    return np.asarray(z, dtype=np.complex128)


def mean_exponential(x: Complexes) -> Complexes:
    """Compute (1 − e^{−x})/x, the transform of the uniform distribution on [0, 1].

    It is exact to rounding near 0 too.
    """
    safe = np.where(x == 0, 1.0, x)
    ratio: Complexes = np.where(x == 0, 1.0, -np.expm1(-safe) / safe)
    return ratio


def log1p(x: Complexes) -> Complexes:
    """Compute ln(1 + x), exact to rounding near 0 too (NumPy's own is not, for complex x)."""
    size = np.log1p(x.real * (2.0 + x.real) + x.imag**2) / 2.0
    value: Complexes = size + 1j * np.arctan2(x.imag, 1.0 + x.real)
    return value


def invert(cdf: Callable[[npt.ArrayLike], Reals], u: Reals, typical_s: float) -> Reals:
    """Find the t > 0, in seconds, at which an increasing ``cdf`` reaches each u of (cdf(0), 1).

    ``cdf`` is continuous. ``cdf``, as computed, is at least u at t and below u at each of the
    ``LOOK_BACK`` floating-point numbers before it, if it gives a time the same share in any array
    and wavers no further than ``MOST_LOOKS`` times as many. ``typical_s`` (a mean, say) is where
    the search for a bracket begins.
    """
    low = np.full(u.shape, typical_s)
    while np.any(above := (cdf(low) >= u) & (low > 0.0)):
        low = np.where(above, low * 0.125, low)
    high = np.full(u.shape, typical_s)
    while np.any(below := (cdf(high) < u) & (high < 1e290)):
        high = np.where(below, high * 2.0, high)
    # Halving is slower than cleverer searches, but never fails and needs no further library.
    while True:
        middle = low + (high - low) / 2.0
        if not np.any((middle > low) & (middle < high)):
            return _earliest(cdf, u, high)
        reached = cdf(middle) >= u
        low, high = np.where(reached, low, middle), np.where(reached, middle, high)


def _earliest(cdf: Callable[[npt.ArrayLike], Reals], u: Reals, times: Reals) -> Reals:
    """Go back to the first of neighbouring numbers that reaches u, where rounding makes one do."""
    earliest, some = times.copy(), max(1, _AT_ONCE // LOOK_BACK)
    for begin in range(0, u.size, some):
        asked = np.arange(begin, min(begin + some, u.size))
        for _ in range(MOST_LOOKS):
            bits = earliest[asked].view(np.int64)[:, None] - np.arange(LOOK_BACK, 0, -1)
            before = np.maximum(bits, 0).view(np.float64)
            reached = cdf(before) >= u[asked, None]
            rows = np.flatnonzero(reached.any(axis=1))
            asked = asked[rows]
            earliest[asked] = before[rows, reached[rows].argmax(axis=1)]
            if not asked.size:
                break
    return earliest
