"""Laws in closed form: constant, exponential, uniform, gamma (Erlang), and any law shifted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy

from tidings.errors import Problem
from tidings.model.arrays import Complexes
from tidings.model.laws.law import (
    Law,
    Reals,
    Size,
    as_nodes,
    as_shares,
    as_times,
    check,
    check_number,
    log1p,
    mean_exponential,
    number_problems,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Deterministic:
    """Always the same time.

    >>> law = Deterministic(value_s=0.25)
    >>> law.cdf([0.24, 0.25]).tolist()  # on time means at most
    [0.0, 1.0]
    """

    value_s: float

    def __post_init__(self) -> None:
        check_number("Deterministic.value_s", self.value_s, positive=False)

    @property
    def mean_s(self) -> float:
        """The time itself, in seconds."""
        return float(self.value_s)

    @property
    def scv(self) -> float:
        """0: nothing varies."""
        return 0.0

    def cdf(self, t_s: npt.ArrayLike) -> Reals:
        """Compute P[X ≤ t], a step at the value."""
        return (as_times(t_s) >= self.value_s).astype(np.float64)

    def quantile(self, u: npt.ArrayLike) -> Reals:
        """Give the value, in seconds, for every u."""
        return np.full(as_shares(u).shape, float(self.value_s))

    def transform(self, z: npt.ArrayLike) -> Complexes:
        """Compute E[exp(−zX)] = exp(−z·value)."""
        value: Complexes = np.exp(-as_nodes(z) * self.value_s)
        return value

    def sample(self, rng: np.random.Generator, size: Size) -> Reals:
        """Repeat the value, in seconds; no random number is used."""
        return np.full(size, float(self.value_s))

    def scaled(self, factor: float) -> Deterministic:
        """Give the distribution of factor · X."""
        check_number("factor", factor)
        return Deterministic(value_s=factor * self.value_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exponential:
    """Exponential with the given mean: P[X > t] = exp(−t/mean)."""

    mean_s: float

    def __post_init__(self) -> None:
        check_number("Exponential.mean_s", self.mean_s)

    @property
    def scv(self) -> float:
        """1, whatever the mean."""
        return 1.0

    def cdf(self, t_s: npt.ArrayLike) -> Reals:
        """Compute P[X ≤ t] = 1 − exp(−t/mean)."""
        share: Reals = -np.expm1(-np.maximum(as_times(t_s), 0.0) / self.mean_s)
        return share

    def quantile(self, u: npt.ArrayLike) -> Reals:
        """Compute the quantile −mean · ln(1 − u), in seconds; infinite at u = 1."""
        with np.errstate(divide="ignore"):
            time: Reals = -self.mean_s * np.log1p(-as_shares(u))
        return time

    def transform(self, z: npt.ArrayLike) -> Complexes:
        """Compute the transform E[exp(−zX)] = 1/(1 + z·mean), for Re z > −1/mean."""
        value: Complexes = 1.0 / (1.0 + as_nodes(z) * self.mean_s)
        return value

    def sample(self, rng: np.random.Generator, size: Size) -> Reals:
        """Draw independent samples, in seconds."""
        return rng.exponential(self.mean_s, size)

    def scaled(self, factor: float) -> Exponential:
        """Give the distribution of factor · X."""
        check_number("factor", factor)
        return Exponential(mean_s=factor * self.mean_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Uniform:
    """Uniform between two times."""

    low_s: float
    high_s: float

    def __post_init__(self) -> None:
        check(
            number_problems("Uniform.low_s", self.low_s, positive=False),
            number_problems("Uniform.high_s", self.high_s),
        )
        if not self.low_s < self.high_s:
            saw = f"{self.low_s:g} to {self.high_s:g}"
            check([Problem(at="Uniform", saw=saw, want="low_s below high_s")])

    @property
    def mean_s(self) -> float:
        """The middle, in seconds."""
        return 0.5 * self.low_s + 0.5 * self.high_s

    @property
    def scv(self) -> float:
        """Width²/12 over the mean squared: 1/3 when it begins at 0."""
        return ((self.high_s - self.low_s) / self.mean_s) ** 2 / 12.0

    def cdf(self, t_s: npt.ArrayLike) -> Reals:
        """Compute P[X ≤ t], rising linearly from ``low_s`` to ``high_s``."""
        share: Reals = (as_times(t_s) - self.low_s) / (self.high_s - self.low_s)
        return np.clip(share, 0.0, 1.0)

    def quantile(self, u: npt.ArrayLike) -> Reals:
        """Interpolate linearly between the ends, in seconds; exact at both."""
        shares = as_shares(u)
        return self.low_s * (1.0 - shares) + self.high_s * shares

    def transform(self, z: npt.ArrayLike) -> Complexes:
        """Compute E[exp(−zX)] = exp(−z·low) (1 − exp(−z·width))/(z·width), for every z."""
        nodes = as_nodes(z)
        value: Complexes = np.exp(-nodes * self.low_s)
        return value * mean_exponential(nodes * (self.high_s - self.low_s))

    def sample(self, rng: np.random.Generator, size: Size) -> Reals:
        """Draw independent samples, in seconds."""
        return rng.uniform(self.low_s, self.high_s, size)

    def scaled(self, factor: float) -> Uniform:
        """Give the distribution of factor · X."""
        check_number("factor", factor)
        return Uniform(low_s=factor * self.low_s, high_s=factor * self.high_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gamma:
    """Gamma with the given mean; a whole shape k is Erlang, the sum of k equal exponentials."""

    mean_s: float
    shape: float

    def __post_init__(self) -> None:
        check(
            number_problems("Gamma.mean_s", self.mean_s),
            number_problems("Gamma.shape", self.shape),
        )

    @property
    def scv(self) -> float:
        """1/shape."""
        return 1.0 / self.shape

    def cdf(self, t_s: npt.ArrayLike) -> Reals:
        """Compute P[X ≤ t], the regularised incomplete gamma function."""
        scaled_time = np.maximum(as_times(t_s), 0.0) * (self.shape / self.mean_s)
        share: Reals = scipy.special.gammainc(self.shape, scaled_time)
        return share

    def quantile(self, u: npt.ArrayLike) -> Reals:
        """Compute the inverse of the CDF, in seconds; infinite at u = 1."""
        time: Reals = scipy.special.gammaincinv(self.shape, as_shares(u)) * (
            self.mean_s / self.shape
        )
        return time

    def transform(self, z: npt.ArrayLike) -> Complexes:
        """Compute E[exp(−zX)] = (1 + z·mean/shape)^(−shape), for Re z > −shape/mean."""
        value: Complexes = np.exp(-self.shape * log1p(as_nodes(z) * (self.mean_s / self.shape)))
        return value

    def sample(self, rng: np.random.Generator, size: Size) -> Reals:
        """Draw independent samples, in seconds."""
        return rng.gamma(self.shape, self.mean_s / self.shape, size)

    def scaled(self, factor: float) -> Gamma:
        """Give the distribution of factor · X."""
        check_number("factor", factor)
        return Gamma(mean_s=factor * self.mean_s, shape=self.shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shifted:
    """A law plus a constant: never less than ``by_s``. A shift of a shift is one shift.

    >>> Shifted(law=Shifted(law=Exponential(mean_s=1.0), by_s=2.0), by_s=3.0)
    Shifted(law=Exponential(mean_s=1.0), by_s=5.0)
    """

    law: Law
    by_s: float

    def __post_init__(self) -> None:
        check_number("Shifted.by_s", self.by_s, positive=False)
        if isinstance(self.law, Shifted):
            object.__setattr__(self, "by_s", self.by_s + self.law.by_s)
            object.__setattr__(self, "law", self.law.law)

    @property
    def mean_s(self) -> float:
        """The mean of the law plus the shift, in seconds."""
        return self.by_s + self.law.mean_s

    @property
    def scv(self) -> float:
        """The same variance over a larger mean squared."""
        if self.law.mean_s == 0:
            return 0.0
        return self.law.scv * (self.law.mean_s / self.mean_s) ** 2

    def cdf(self, t_s: npt.ArrayLike) -> Reals:
        """Compute P[X ≤ t]: that of the unshifted distribution, ``by_s`` later."""
        return self.law.cdf(as_times(t_s) - self.by_s)

    def quantile(self, u: npt.ArrayLike) -> Reals:
        """Add the shift to the quantile of the unshifted distribution, in seconds."""
        return self.law.quantile(u) + self.by_s

    def transform(self, z: npt.ArrayLike) -> Complexes:
        """Compute E[exp(−zX)]: that of the unshifted distribution times exp(−z·by)."""
        nodes = as_nodes(z)
        delay: Complexes = np.exp(-nodes * self.by_s)
        return delay * self.law.transform(nodes)

    def sample(self, rng: np.random.Generator, size: Size) -> Reals:
        """Draw independent samples, in seconds."""
        return self.law.sample(rng, size) + self.by_s

    def scaled(self, factor: float) -> Shifted:
        """Give the distribution of factor · X."""
        check_number("factor", factor)
        return Shifted(law=self.law.scaled(factor), by_s=factor * self.by_s)


def shifted(law: Law, by_s: float) -> Law:
    """Make the distribution of X + by_s in its plainest form.

    There is no shift by 0, and a constant stays a constant.

    >>> shifted(Deterministic(value_s=1.0), 2.0)
    Deterministic(value_s=3.0)
    """
    base, already_s = unshifted(law)
    if isinstance(base, Deterministic):
        check_number("by_s", by_s, positive=False)
        return Deterministic(value_s=base.value_s + already_s + by_s)
    return Shifted(law=base, by_s=already_s + by_s) if already_s + by_s != 0 else base


def unshifted(law: Law) -> tuple[Law, float]:
    """Split a distribution from its shift, in seconds (0 if it has none)."""
    return (law.law, law.by_s) if isinstance(law, Shifted) else (law, 0.0)
