r"""A queue as a stage: how long an event stays at a station that is offered λ events per second.

With μ = 1/E[S] and ρ = λ/μ:

- Poisson arrivals, the whole law. Exponential service: the sojourn is exponential(μ − λ). Any
  other service: the wait by Pollaczek and Khinchine, a geometric number (ratio ρ) of residual
  services, W*(z) = (1 − ρ)/(1 − ρ (1 − S*(z))/(z E[S])), then the service; phase-type service gives
  a phase-type wait.
- Other arrivals, of whose wait two moments are known: none with a probability, else exponential.
- The published shortcut: the service law shifted by a mean wait; q = λ/(μ(μ − λ)) is that of an
  M/M/1 queue.

At ρ ≥ 1 nothing arrives in time: the stage loses everything to ``overload``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tidings.model.laws import Deterministic, Exponential, Law, left_share, phases, unshifted
from tidings.model.loads import FULL_LOAD as FULL_LOAD
from tidings.theory.lattice import Lattice
from tidings.theory.pieces import Pieces
from tidings.theory.stages import (
    Chain,
    Complexes,
    Delay,
    Floats,
    LawDelay,
    Stage,
    in_series,
    law_stage,
)

_PIECES = 8  # pieces a lattice step is cut into where a residual law is summed up


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PoissonWait:
    """The wait before service in an M/G/1 queue in which services take ``service``."""

    service: Law
    load: float
    kinked: bool

    @property
    def order(self) -> float:
        """0: an event finds the server idle with probability 1 − ρ."""
        return 0.0

    @property
    def mean_s(self) -> float:
        """ρ E[S] (1 + c²)/(2 (1 − ρ)), in seconds."""
        residual_s = 0.5 * self.service.mean_s * (1.0 + self.service.scv)
        return self.load * residual_s / (1.0 - self.load)

    @property
    def variance_s2(self) -> float:
        """E[W]² + λ E[S³]/(3 (1 − ρ)), E[S³] as of a gamma law with its mean and c²."""
        mean_s, scv = self.service.mean_s, self.service.scv
        third_s3 = mean_s**3 * (1.0 + scv) * (1.0 + 2.0 * scv)
        return self.mean_s**2 + self.load / mean_s * third_s3 / (3.0 * (1.0 - self.load))

    @property
    def atom(self) -> float:
        """1 − ρ."""
        return 1.0 - self.load

    def chain(self) -> Chain | None:
        """Phase-type if the service is: PH(ρβ, T + ρ t β), β the phase of a service under way."""
        found = phases(self.service)
        if found is None or found.shift_s > 0 or found.initial.size == 0:
            return None
        under_way = np.linalg.solve(found.generator.T, -found.initial)
        under_way = under_way / under_way.sum()
        leaving = -found.generator.sum(axis=1)
        return self.load * under_way, found.generator + self.load * np.outer(leaving, under_way)

    def cdf(self, t_s: Floats) -> Floats | None:
        """None: there is no closed form for every service."""
        return None

    def transform(self, z: Complexes) -> Complexes:
        """Pollaczek and Khinchine; for z near 0 the residual by its mean, to save its digits."""
        mean_s = self.service.mean_s
        residual_s = 0.5 * mean_s * (1.0 + self.service.scv)
        small = np.abs(z) * residual_s < 1e-6
        safe: Complexes = np.where(small, 1.0 / mean_s, z).astype(np.complex128)
        whole = (1.0 - self.service.transform(safe)) / (safe * mean_s)
        residual: Complexes = np.where(small, 1.0 - z * residual_s, whole)
        value: Complexes = (1.0 - self.load) / (1.0 - self.load * residual)
        return value

    def on_lattice(self, lattice: Lattice) -> tuple[Complexes, Complexes]:
        """A geometric number of residual services, each rounded down, and each rounded up.

        The CDF of a residual service is ∫(1 − F)/E[S]; upper and lower sums enclose the integral.
        """
        width_s = lattice.step_s / _PIECES
        count = (lattice.points + 1) * _PIECES
        left = 1.0 - self.service.cdf(width_s * np.arange(count + 1))
        scale = width_s / self.service.mean_s
        upper = np.minimum(np.cumsum(left[:-1]) * scale, 1.0)[_PIECES - 1 :: _PIECES]
        lower = np.concatenate([[0.0], np.cumsum(left[1:]) * scale])[:-1:_PIECES]
        early, late = lattice.image(upper), lattice.image(lower)
        return lattice.geometric(self.load, early), lattice.geometric(self.load, late)

    @property
    def pieces(self) -> Pieces:
        """A geometric number of residual services; their density (1 − F)/E[S] only falls."""
        return Pieces(
            count=self.load / (1.0 - self.load),
            none=self.atom,
            peak_per_s=1.0 / self.service.mean_s,
            swing_per_s=2.0 / self.service.mean_s,
        )

    def alone(self, t_s: Floats) -> Floats:
        """(1 − ρ) ρ times the CDF of a residual service."""
        found: Floats = self.atom * self.load * (1.0 - left_share(self.service, t_s))
        return found

    def rounded(self, lattice: Lattice) -> Complexes:
        """A geometric number of residual services, each rounded to the nearest point."""
        piece = lattice.rounded(lambda t_s: 1.0 - left_share(self.service, t_s))
        return lattice.geometric(self.load, piece)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FittedWait:
    """A wait of which two moments are known: none with probability 1 − p, else exponential.

    p = 2 E[W]²/E[W²], at most 1, and the mean of a wait that is one is E[W]/p. For an M/M/1 queue p
    is ρ; where arrivals or services are uneven, few long waits make p smaller, and their tail,
    which decides about deadlines, comes out right at the cost of the share that does not wait.
    """

    waiting: float  # p
    mean_s: float

    @property
    def order(self) -> float:
        """0: an event does not wait at all with probability 1 − p."""
        return 0.0

    @property
    def kinked(self) -> bool:
        """Smooth above 0."""
        return False

    @property
    def variance_s2(self) -> float:
        """E[W]² (2/p − 1)."""
        return self.mean_s**2 * (2.0 / self.waiting - 1.0)

    @property
    def atom(self) -> float:
        """1 − p."""
        return 1.0 - self.waiting

    def chain(self) -> Chain | None:
        """One phase, entered with probability p."""
        return np.array([self.waiting]), np.array([[-self.waiting / self.mean_s]])

    def cdf(self, t_s: Floats) -> Floats | None:
        """1 − p exp(−p t/E[W])."""
        value: Floats = 1.0 - self.waiting * np.exp(
            -self.waiting / self.mean_s * np.maximum(t_s, 0.0)
        )
        return np.where(t_s >= 0.0, value, 0.0)

    def transform(self, z: Complexes) -> Complexes:
        """1 − p + p/(1 + z E[W]/p)."""
        value: Complexes = (
            1.0 - self.waiting + self.waiting / (1.0 + z * (self.mean_s / self.waiting))
        )
        return value

    def on_lattice(self, lattice: Lattice) -> tuple[Complexes, Complexes]:
        """Rounded down and rounded up."""
        times_s: Floats = lattice.step_s * np.arange(lattice.points + 2, dtype=np.float64)
        below = self.cdf(times_s)
        assert below is not None
        return lattice.image(below[1:]), lattice.image(below[:-1])

    @property
    def pieces(self) -> Pieces:
        """One with probability p."""
        peak_per_s = self.waiting / self.mean_s
        return Pieces(
            count=self.waiting, none=self.atom, peak_per_s=peak_per_s, swing_per_s=2.0 * peak_per_s
        )

    def alone(self, t_s: Floats) -> Floats:
        """P (1 − exp(−p t/E[W]))."""
        found: Floats = -self.waiting * np.expm1(-self.waiting / self.mean_s * t_s)
        return found

    def rounded(self, lattice: Lattice) -> Complexes:
        """Rounded to the nearest point."""
        return lattice.rounded(lambda t_s: self.atom + self.alone(t_s))


def offered_load(rate_per_s: float, service: Law) -> float:
    """ρ = λ E[S], the work that arrives per second, in seconds."""
    return rate_per_s * service.mean_s


def mean_wait_s(rate_per_s: float, service: Law) -> float:
    """Mean wait before service in an M/G/1 queue, in seconds; infinite from full load on.

    >>> mean_wait_s(0.5, Exponential(mean_s=1.0)), mean_wait_s(0.5, Deterministic(value_s=1.0))
    (1.0, 0.5)
    """
    load = offered_load(rate_per_s, service)
    if load >= FULL_LOAD:
        return float("inf")
    return load * 0.5 * service.mean_s * (1.0 + service.scv) / (1.0 - load)


def mean_wait_mm1_s(rate_per_s: float, service: Law) -> float:
    """Mean wait of an M/M/1 queue with this mean service, q = λ/(μ(μ − λ)), in seconds."""
    return mean_wait_s(rate_per_s, Exponential(mean_s=service.mean_s)) if service.mean_s else 0.0


def whole_law(rate_per_s: float, service: Law) -> Stage:
    """Wait and service by their whole laws; exact for Poisson arrivals."""
    load = offered_load(rate_per_s, service)
    if isinstance(service, Exponential):
        return law_stage(Exponential(mean_s=service.mean_s / (1.0 - load)))
    served = law_stage(service)
    if load == 0:
        return served
    base, shift_s = unshifted(service)
    corners = shift_s > 0 or isinstance(base, Deterministic) or _any_kink(served)
    wait: Delay = PoissonWait(service=service, load=load, kinked=corners)
    return in_series(Stage(delays=(wait,)), served)


def fitted_law(service: Law, wait_s: float, square_s2: float) -> Stage:
    """Wait and service where two moments of the wait are known: none, or exponential."""
    served = law_stage(service)
    if wait_s <= 0.0:
        return served
    waiting = min(2.0 * wait_s**2 / square_s2, 1.0)
    wait: Delay = FittedWait(waiting=waiting, mean_s=wait_s)
    return in_series(Stage(delays=(wait,)), served)


def mean_shift(service: Law, wait_s: float) -> Stage:
    """The service law, shifted by a mean wait."""
    served = law_stage(service)
    return replace(served, shift_s=served.shift_s + wait_s)


def _any_kink(stage: Stage) -> bool:
    return any(isinstance(delay, LawDelay) and delay.kinked for delay in stage.delays)
