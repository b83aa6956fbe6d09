"""Log-normal and Weibull laws. Their transforms have no closed form and are integrated here.

Both integrals are taken in the logarithm of time, where the integrand is entire, by the trapezoidal
rule, which then converges geometrically. For complex z the line of integration is moved into the
complex plane until the integrand no longer oscillates, so a few hundred nodes give about 1e-14.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import scipy

from tidings.model.arrays import Complexes
from tidings.model.laws.law import (
    Reals,
    Size,
    as_nodes,
    as_shares,
    as_times,
    check,
    check_number,
    limit_problems,
    number_problems,
)

LEAST_WEIBULL_SHAPE = 0.05  # below it the moments leave the range of floating point
MOST_SIGMA = 6.0  # of a log-normal law
MOST_SCV = math.expm1(MOST_SIGMA**2)  # 4e15
_BLOCK = 1024  # transform arguments integrated at once, to bound memory
_REMEMBERED = 1024  # transforms at no more nodes than that


@dataclass(frozen=True, slots=True, kw_only=True)
class LogNormal:
    """The exponential of a normal variable, given by its own mean and squared variation c²."""

    mean_s: float
    scv: float

    def __post_init__(self) -> None:
        check(
            number_problems("LogNormal.mean_s", self.mean_s),
            number_problems("LogNormal.scv", self.scv),
        )
        check(limit_problems("LogNormal.scv", self.scv, most=MOST_SCV))

    @property
    def sigma(self) -> float:
        """The standard deviation of ln X: σ² = ln(1 + c²)."""
        return math.sqrt(math.log1p(self.scv))

    @property
    def mu(self) -> float:
        """The mean of ln X (X in seconds): ln(mean) − σ²/2."""
        return math.log(self.mean_s) - 0.5 * math.log1p(self.scv)

    def cdf(self, t_s: npt.ArrayLike) -> Reals:
        """Compute P[X ≤ t] = Φ((ln t − μ)/σ)."""
        times = as_times(t_s)
        logs = np.log(np.where(times > 0, times, 1.0))
        share: Reals = scipy.special.ndtr((logs - self.mu) / self.sigma)
        return np.where(times > 0, share, 0.0)

    def quantile(self, u: npt.ArrayLike) -> Reals:
        """Compute the quantile exp(μ + σ Φ⁻¹(u)), in seconds; infinite at u = 1."""
        time: Reals = np.exp(self.mu + self.sigma * scipy.special.ndtri(as_shares(u)))
        return time

    def transform(self, z: npt.ArrayLike) -> Complexes:
        """Compute E[exp(−zX)] by quadrature, to about 1e-14, for Re z ≥ 0."""
        return _transform(self, as_nodes(z))

    def integrate(self, z: Complexes) -> Complexes:
        """Integrate the transform by the quadrature that suits the distribution."""
        return self._through_saddle(z) if self.sigma < 0.7 else self._turned(z)

    def sample(self, rng: np.random.Generator, size: Size) -> Reals:
        """Draw independent samples, in seconds."""
        return rng.lognormal(self.mu, self.sigma, size)

    def scaled(self, factor: float) -> LogNormal:
        """Give the distribution of factor · X."""
        check_number("factor", factor)
        return LogNormal(mean_s=factor * self.mean_s, scv=self.scv)

    def _through_saddle(self, z: Complexes) -> Complexes:
        """Integrate along the horizontal line through the saddle point.

        It is that of exp(−z e^(μ+σy) − y²/2). With w = W(z σ² e^μ), Lambert's function, the saddle
        is y = −w/σ and what remains is exp(−(w² + 2w)/2σ²) · E[exp(−(w/σ²)(e^(σY) − 1 − σY))], Y
        standard normal.
        """
        variance = self.sigma**2
        w = scipy.special.lambertw(z * (variance * math.exp(self.mu)))
        y, step = np.linspace(-9.0, 9.0, 361, retstep=True)
        bend = (np.expm1(self.sigma * y) - self.sigma * y) / variance
        weight = np.exp(-0.5 * y**2) * (step / math.sqrt(2.0 * math.pi))
        rest: Complexes = np.exp(-w[:, None] * bend) @ weight
        height: Complexes = np.exp(-w * (w + 2.0) / (2.0 * variance))
        return rest * height

    def _turned(self, z: Complexes) -> Complexes:
        """Integrate along the line on which z · x is real.

        The phase of z goes into the normal density.
        """
        y, step = np.linspace(-10.0, 10.0, 421, retstep=True)
        turn = np.angle(z)[:, None] / self.sigma
        decay = np.exp(self.mu + self.sigma * y) * np.abs(z)[:, None]
        value: Complexes = np.exp(-decay - 0.5 * (y - 1j * turn) ** 2).sum(axis=1)
        return value * (step / math.sqrt(2.0 * math.pi))


@dataclass(frozen=True, slots=True, kw_only=True)
class Weibull:
    """P[X > t] = exp(−(t/scale)^shape); shapes below 1 have a heavy tail."""

    scale_s: float
    shape: float

    def __post_init__(self) -> None:
        check(
            number_problems("Weibull.scale_s", self.scale_s),
            number_problems("Weibull.shape", self.shape),
        )
        least = LEAST_WEIBULL_SHAPE
        check(limit_problems("Weibull.shape", self.shape, least=least, most=math.inf))

    @property
    def mean_s(self) -> float:
        """The scale times Γ(1 + 1/shape), in seconds."""
        return self.scale_s * math.gamma(1.0 + 1.0 / self.shape)

    @property
    def scv(self) -> float:
        """Γ(1 + 2/shape)/Γ(1 + 1/shape)² − 1."""
        k = self.shape
        return math.expm1(math.lgamma(1.0 + 2.0 / k) - 2.0 * math.lgamma(1.0 + 1.0 / k))

    def cdf(self, t_s: npt.ArrayLike) -> Reals:
        """Compute P[X ≤ t] = 1 − exp(−(t/scale)^shape)."""
        with np.errstate(over="ignore"):
            power = (np.maximum(as_times(t_s), 0.0) / self.scale_s) ** self.shape
        share: Reals = -np.expm1(-power)
        return share

    def quantile(self, u: npt.ArrayLike) -> Reals:
        """Compute the quantile scale · (−ln(1 − u))^(1/shape), in seconds; infinite at u = 1."""
        with np.errstate(divide="ignore"):
            time: Reals = self.scale_s * (-np.log1p(-as_shares(u))) ** (1.0 / self.shape)
        return time

    def transform(self, z: npt.ArrayLike) -> Complexes:
        """Compute E[exp(−zX)] by quadrature, to about 1e-14, for Re z ≥ 0."""
        return _transform(self, as_nodes(z))

    def integrate(self, z: Complexes) -> Complexes:
        """Integrate the transform by quadrature."""
        return self._turned(z)

    def sample(self, rng: np.random.Generator, size: Size) -> Reals:
        """Draw independent samples, in seconds."""
        return self.scale_s * rng.weibull(self.shape, size)

    def scaled(self, factor: float) -> Weibull:
        """Give the distribution of factor · X."""
        check_number("factor", factor)
        return Weibull(scale_s=factor * self.scale_s, shape=self.shape)

    def _turned(self, z: Complexes) -> Complexes:
        """Integrate exp(−z·scale·e^(y/k) − e^y + y) dy along a line on which both terms decay.

        Moving y by −iδ turns the two exponentials by δ/k and δ in opposite directions; half of the
        phase of z each is best for k = 1, and for large k no more than an eighth of a circle.
        """
        k = self.shape
        turn = -np.angle(z) * min(k / (1.0 + k), 0.5)
        step = min(0.06, 0.16 * k)
        y = step * np.arange(math.ceil(41.2 / step)) - 37.0
        first = (z * self.scale_s * np.exp(1j * turn / k))[:, None] * np.exp(y / k)
        direction: Complexes = np.exp(1j * turn)
        value: Complexes = np.exp(y - first - direction[:, None] * np.exp(y)).sum(axis=1)
        return value * direction * step


def _transform(law: LogNormal | Weibull, z: Complexes) -> Complexes:
    """Compute the integral at every z.

    Few nodes are remembered: predictions with one number changed ask for the transforms of all
    other laws again.
    """
    if z.size <= _BLOCK:
        return _remembered(law, z.tobytes()).reshape(z.shape).copy()
    return _in_blocks(law, z)


@lru_cache(maxsize=_REMEMBERED)
def _remembered(law: LogNormal | Weibull, nodes: bytes) -> Complexes:
    return _in_blocks(law, np.frombuffer(nodes, dtype=np.complex128))


def _in_blocks(law: LogNormal | Weibull, z: Complexes) -> Complexes:
    flat = z.ravel()
    value = np.empty(flat.shape, dtype=np.complex128)
    for begin in range(0, flat.size, _BLOCK):
        value[begin : begin + _BLOCK] = law.integrate(flat[begin : begin + _BLOCK])
    return value.reshape(z.shape)
