r"""A queue as a stage: how long an event stays at a station that is offered λ events per second.

With μ = 1/E[S] and ρ = λ/μ, arrivals taken as Poisson:

- ``law`` (the default): the whole law. Exponential service: the sojourn is exponential(μ − λ). Any
  other service: the wait by Pollaczek and Khinchine, a geometric number (ratio ρ) of residual
  services, W*(z) = (1 − ρ)/(1 − ρ (1 − S*(z))/(z E[S])), then the service; phase-type service gives
  a phase-type wait.
- ``mm1``: the published shortcut, the service law shifted by the mean wait q = λ/(μ(μ − λ)) of an
  M/M/1 queue whatever the service law is.

At ρ ≥ 1 nothing arrives in time: the stage loses everything to ``overload``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from tidings.model.laws import Deterministic, Exponential, Law, phases, unshifted
from tidings.prediction.lattice import Lattice
from tidings.prediction.stages import (
    NOTHING,
    Chain,
    Complexes,
    Delay,
    Floats,
    LawDelay,
    Stage,
    in_series,
    law_stage,
)

# A broker fed at exactly its own speed by an overloaded one is overloaded too, rounding aside.
FULL_LOAD = 1.0 - 1e-9
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


def mean_shift(rate_per_s: float, service: Law) -> Stage:
    """The service law, shifted by the mean wait of an M/M/1 queue."""
    served = law_stage(service)
    return replace(served, shift_s=served.shift_s + mean_wait_mm1_s(rate_per_s, service))


def _any_kink(stage: Stage) -> bool:
    return any(isinstance(delay, LawDelay) and delay.kinked for delay in stage.delays)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueModel:
    """How a queue is predicted: its stage below full load, its mean wait, and what that assumes."""

    stage: Callable[[float, Law], Stage]
    mean_wait_s: Callable[[float, Law], float]
    assumes: str


QUEUE_MODELS: dict[str, QueueModel] = {
    "law": QueueModel(
        stage=whole_law,
        mean_wait_s=mean_wait_s,
        assumes="the whole law of the wait at each broker, arrivals taken as Poisson",
    ),
    "mm1": QueueModel(
        stage=mean_shift,
        mean_wait_s=mean_wait_mm1_s,
        assumes="the wait at each broker taken as constant, the mean of an M/M/1 queue",
    ),
}


def station_stage(model: QueueModel, rate_per_s: float, service: Law) -> Stage:
    """One queue by a model; none where service takes no time; all lost where it is overloaded."""
    if service.mean_s == 0:
        return NOTHING
    if offered_load(rate_per_s, service) >= FULL_LOAD:
        return Stage(survives=0.0, lost={"overload": 1.0})
    return model.stage(rate_per_s, service)
