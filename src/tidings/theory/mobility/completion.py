r"""How long a service takes when its server comes and goes: the completion time C.

While a service of length S is worked on, the server leaves at rate ν = 1/T_ON (ON exponential), so
that a Poisson number of absences, each a whole OFF period, is added:

.. math:: C^*(z) = S^*(z + \nu (1 - B^*(z))), \quad B^* \text{ the transform of OFF}.

With phase-type service and OFF it is phase-type.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from tidings.model.laws import (
    Deterministic,
    Empirical,
    Law,
    PhaseType,
    phases,
    residual,
    unshifted,
)
from tidings.model.laws.law import Complexes, Reals, Size, as_nodes, as_shares, as_times, invert
from tidings.theory.lattice import Lattice
from tidings.theory.mobility.centre import OnOff
from tidings.theory.mobility.tables import Table, tabulated
from tidings.theory.partial_delays import KnownByTransform
from tidings.theory.stages import Chain, Floats, Stage, law_stage

MOST_PHASES = 64  # of service times OFF, up to which a completion is spelt out as a chain
_UNLIKE = 1e-3  # of z E[P], from which on 1 and P*(z) differ by enough digits


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """The law of a service with its interruptions, by its transform; ON exponential."""

    centre: OnOff

    @property
    def mean_s(self) -> float:
        """D s, in seconds."""
        return self.centre.demand_s

    @property
    def scv(self) -> float:
        """E[C²]/E[C]² − 1."""
        return self.centre.demand_square_s2 / self.mean_s**2 - 1.0

    @property
    def least_s(self) -> float:
        """The certain part of the service, in seconds."""
        base, shift_s = unshifted(self.centre.service)
        return shift_s + (base.value_s if isinstance(base, Deterministic) else 0.0)

    @property
    def atom(self) -> float:
        """The probability of no more than the certain part: no interruption of a constant one."""
        base, _ = unshifted(self.centre.service)
        certain = 1.0 if isinstance(base, Deterministic) else float(base.cdf(0.0))
        return certain * math.exp(-self.least_s / self.centre.on.mean_s)

    def transform(self, z: npt.ArrayLike) -> Complexes:
        """E[exp(−zC)]."""
        nodes = as_nodes(z)
        return self.centre.service.transform(self._slowed(nodes))

    def beyond_least(self, z: Complexes) -> Complexes:
        """The transform of what C takes beyond the certain part of the service."""
        base, _ = unshifted(self.centre.service)
        slowed = self._slowed(z)
        value: Complexes = np.exp(self.least_s * (z - slowed))
        return value if isinstance(base, Deterministic) else value * base.transform(slowed)

    def cdf(self, t_s: npt.ArrayLike) -> Reals:
        """P[C ≤ t], from a table."""
        rest_s = as_times(t_s) - self.least_s
        return np.where(rest_s >= 0.0, _table(self).below(np.maximum(rest_s, 0.0)), 0.0)

    def quantile(self, u: npt.ArrayLike) -> Reals:
        """The inverse of the CDF by halving, in seconds; infinite at 1."""
        shares = as_shares(u)
        found = np.where(shares == 1.0, np.inf, self.least_s)
        inside = (shares > self.atom) & (shares < 1.0)
        if np.any(inside):
            found[inside] = invert(self.cdf, shares[inside], self.mean_s)
        return found

    def sample(self, rng: np.random.Generator, size: Size) -> Reals:
        """Independent draws, in seconds."""
        total_s = np.asarray(self.centre.service.sample(rng, size), dtype=np.float64).copy()
        absences = rng.poisson(total_s / self.centre.on.mean_s)
        flat = total_s.reshape(-1)
        owner = np.repeat(np.arange(flat.size), absences.reshape(-1))
        np.add.at(flat, owner, self.centre.off.sample(rng, owner.size))
        return total_s

    def scaled(self, factor: float) -> Completion:
        """The law of factor · C: service, ON and OFF all scaled."""
        laws = (self.centre.service, self.centre.on, self.centre.off)
        service, on, off = (law.scaled(factor) for law in laws)
        return Completion(centre=OnOff(service=service, on=on, off=off))

    def _slowed(self, z: Complexes) -> Complexes:
        leaving_per_s = 1.0 / self.centre.on.mean_s
        value: Complexes = z + leaving_per_s * (1.0 - self.centre.off.transform(z))
        return value


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CompletionRest(KnownByTransform):
    """What a completion takes beyond the certain part of its service, as a delay."""

    law: Completion

    @property
    def mean_s(self) -> float:
        """E[C] less the certain part, in seconds."""
        return self.law.mean_s - self.law.least_s

    @property
    def variance_s2(self) -> float:
        """Var C."""
        return self.law.scv * self.law.mean_s**2

    @property
    def atom(self) -> float:
        """P[C = its least]."""
        return self.law.atom

    @property
    def order(self) -> float:
        """At least that of a delay with an atom."""
        return 0.0

    def transform(self, z: Complexes) -> Complexes:
        """E[exp(−zX)]."""
        return self.law.beyond_least(z)

    def on_lattice(self, lattice: Lattice) -> tuple[Complexes, Complexes]:
        """From a table of the law, with its error on either side."""
        return _table(self.law).on_lattice(lattice)


@lru_cache(maxsize=128)
def _table(law: Completion) -> Table:
    spread_s = math.sqrt(law.scv) * law.mean_s
    first_s = 1e-4 * min(law.centre.service.mean_s, spread_s)
    return tabulated(law.beyond_least, (first_s, law.mean_s + 40.0 * spread_s), law.atom)


def completion(centre: OnOff) -> Law:
    """The law of a service with its interruptions; ON counts by its mean, as if exponential.

    Phase-type where service and OFF are. No service, no time.
    """
    if centre.service.mean_s == 0.0:
        return Deterministic(value_s=0.0)
    work, away = phases(centre.service), phases(centre.off)
    if work is None or away is None or work.shift_s > 0 or away.shift_s > 0:
        return Completion(centre=centre)
    if not 0 < work.initial.size * away.initial.size <= MOST_PHASES:
        return Completion(centre=centre)
    return _chained(centre, (work.initial, work.generator), (away.initial, away.generator))


def _chained(centre: OnOff, work: Chain, away: Chain) -> PhaseType:
    """Phases of service while ON, then (phase of service, phase of OFF) while interrupted."""
    leaving_per_s = 1.0 / centre.on.mean_s
    count, absent = work[0].size, away[0].size
    # An OFF period that is over at once does not interrupt.
    into = leaving_per_s * np.kron(np.eye(count), away[0][None, :])
    back = np.kron(np.eye(count), -away[1].sum(axis=1, keepdims=True))
    serving = work[1] - np.eye(count) * leaving_per_s * away[0].sum()
    generator = np.block([[serving, into], [back, np.kron(np.eye(count), away[1])]])
    initial = np.concatenate([work[0], np.zeros(count * absent)])
    return PhaseType(initial=tuple(initial), generator=tuple(map(tuple, generator)))


def completion_stage(centre: OnOff) -> Stage:
    """The time of a service with its interruptions as a stage, its certain part a shift."""
    law = completion(centre)
    if isinstance(law, Completion):
        return Stage(shift_s=law.least_s, delays=(CompletionRest(law=law),))
    return law_stage(law)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PerhapsDelay:
    """No delay with probability 1 − ``share``, else what is left of a period of a law."""

    period: Law
    law: Law  # of what is left, perhaps a table
    share: float
    kinked: bool

    @property
    def mean_s(self) -> float:
        """Share · E[P²]/(2 E[P]), in seconds."""
        return self.share * 0.5 * self.period.mean_s * (1.0 + self.period.scv)

    @property
    def variance_s2(self) -> float:
        """Share · E[X²] − (share · E[X])²."""
        return self.share * self.law.mean_s**2 * (1.0 + self.law.scv) - self.mean_s**2

    @property
    def atom(self) -> float:
        """P[no delay]."""
        return 1.0 - self.share * (1.0 - float(self.law.cdf(0.0)))

    @property
    def order(self) -> float:
        """0: it has an atom."""
        return 0.0

    def chain(self) -> Chain | None:
        """The law's phases, entered with the probability ``share``."""
        found = phases(self.law)
        if found is None or found.shift_s > 0.0:
            return None
        return self.share * found.initial, found.generator

    def cdf(self, t_s: Floats) -> Floats | None:
        """1 − share · P[X > t]."""
        value: Floats = 1.0 - self.share * (1.0 - self.law.cdf(t_s))
        return np.where(t_s >= 0.0, value, 0.0)

    def transform(self, z: Complexes) -> Complexes:
        """1 − share + share · E[exp(−zX)], with E[exp(−zX)] = (1 − P*(z))/(z E[P]).

        A table has thousands of bins and is asked only where that is a difference of like numbers.
        """
        if not isinstance(self.law, Empirical) or isinstance(self.period, Empirical):
            found: Complexes = 1.0 - self.share + self.share * self.law.transform(z)
            return found
        weighed = np.atleast_1d(z) * self.period.mean_s
        left: Complexes = np.empty(weighed.shape, dtype=np.complex128)
        plain = np.abs(weighed) > _UNLIKE
        left[plain] = (1.0 - self.period.transform(np.atleast_1d(z)[plain])) / weighed[plain]
        left[~plain] = self.law.transform(np.atleast_1d(z)[~plain])
        found = 1.0 - self.share + self.share * left
        return found.reshape(np.shape(z))

    def on_lattice(self, lattice: Lattice) -> tuple[Complexes, Complexes]:
        """Rounded down and rounded up."""
        below = self.cdf(lattice.step_s * np.arange(lattice.points + 2, dtype=np.float64))
        assert below is not None
        return lattice.image(below[1:]), lattice.image(below[:-1])


def absence_stage(centre: OnOff) -> Stage:
    """How long an event that arrives waits for the peer itself: what is left of an OFF period."""
    if centre.away == 0.0:
        return Stage()
    # A residual law is as smooth as its law, also where it is tabulated in thousands of bins.
    off = law_stage(centre.off)
    kinked = off.shift_s > 0.0 or any(delay.kinked for delay in off.delays)
    delay = PerhapsDelay(
        period=centre.off, law=residual(centre.off), share=centre.away, kinked=kinked
    )
    return Stage(delays=(delay,))
