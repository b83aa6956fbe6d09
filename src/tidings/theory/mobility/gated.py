r"""How long events of an ON/OFF publisher wait, at the publisher and at a queue behind it in one.

What a publisher gathers while OFF comes to the next broker in a burst, and the later an event of a
burst, the shorter it has waited for the publisher and the longer it waits at the broker. The two
waits are no independent stages, so they are one here. λ events per second of the publisher and κ
of others (Poisson) come to a queue with services of transform β; ON and OFF are exponential with
rates ν and μ. Let U be the work at the queue and, while OFF, B the work that has gathered. With

.. math:: \psi_0(s) = s - \kappa(1 - \beta(s)), \quad \psi_1(s) = \psi_0(s) - \lambda(1 - \beta(s))

and σ(s) the root of ψ₀(σ) = μ + λ(1 − β(s)), balance gives for F₁(s) = E[e^{−sU}; ON]

.. math:: F_1(s) = s \frac{p (\mu - \psi_1(s)) + \mu\nu F_1(\sigma(s))/\sigma(s)}
   {\psi_1(s) (\mu + \nu - \psi_1(s))},

to be followed along s, σ(s), σ(σ(s)), … to the point where ψ₁ = μ. Its two constants are known
since the queue is idle for 1 − ρ of the time and F₁ is finite where ψ₁ = μ + ν. Where OFF,

.. math:: E[e^{-sU - wB}; \text{OFF}]
   = \frac{\nu F_1(s) - s \nu F_1(\sigma(w))/\sigma(w)}{\mu + \lambda(1 - \beta(w)) - \psi_0(s)}.

An event published while ON waits U; one published while OFF waits for the publisher, for what is
then left of U, and for B. This is exact where handing over takes no time.

Handing over one event takes a time H, below the time that the queue takes for it. Then, to the
first order: of the events ahead in a burst each may be interrupted by another OFF while it is
handed over (so each brings, besides its work, the OFF periods that fall into its H); a share of
bursts is still being handed over when the next OFF begins, and is ahead of what gathers then. What
faster servers in the line make an event wait is worked out as if they came after the slowest: the
order of exponential servers in a line does not matter to the whole time (Weber), and of constant
ones only the slowest lets anybody wait (Friedman).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import optimize

from tidings.model.laws import Exponential, Law
from tidings.theory.lattice import Lattice
from tidings.theory.mobility.centre import OnOff, mean_response_s
from tidings.theory.mobility.tables import Table, tabulated
from tidings.theory.partial_delays import KnownByTransform, TwoMoments
from tidings.theory.stages import Complexes

_MOST_ROUNDS = 2000
_SETTLED = 1e-13
_NUDGE = 1e-7  # off the real axis, where the transform is a difference of infinite numbers
_AROUND, _NEAR = 16, 0.05  # points around 0 that give moments, and how near they are


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A queue in the line behind a publisher: services, and what comes to it a second."""

    service: Law
    own_per_s: float  # of the publisher
    others_per_s: float

    @property
    def load(self) -> float:
        """ρ."""
        return (self.own_per_s + self.others_per_s) * self.service.mean_s

    @property
    def spacing_s(self) -> float:
        """Mean time between two of the publisher's events while many wait, in seconds."""
        return self.service.mean_s / max(1.0 - self.others_per_s * self.service.mean_s, 1e-12)


@dataclass(frozen=True, kw_only=True)
class GatedQueue:
    """A publisher that comes and goes with the queue behind it; ON and OFF by their means."""

    centre: OnOff
    queue: Served

    @property
    def _leaving(self) -> float:
        return 1.0 / self.centre.on.mean_s

    @property
    def _back(self) -> float:
        return 1.0 / self.centre.off.mean_s

    def work(self, s: Complexes) -> Complexes:
        """The publisher's work, as a rate: λ(1 − β(s))."""
        found: Complexes = self.queue.own_per_s * (1.0 - self.queue.service.transform(s))
        return found

    def drift(self, s: Complexes) -> Complexes:
        """ψ₁(s)."""
        share = 1.0 + self.queue.others_per_s / self.queue.own_per_s
        found: Complexes = s - share * self.work(s)
        return found

    def drift_off(self, s: Complexes) -> Complexes:
        """ψ₀(s)."""
        found: Complexes = s - self.queue.others_per_s / self.queue.own_per_s * self.work(s)
        return found

    def level(self, height: Complexes) -> Complexes:
        """The root of ψ₀(x) = height, by steps of which every third is Aitken's."""
        if self.queue.others_per_s == 0.0:
            return height
        root = height
        while True:
            once: Complexes = height + root - self.drift_off(root)
            twice: Complexes = height + once - self.drift_off(once)
            if np.abs(twice - once).max() <= _SETTLED * np.abs(twice).max():
                return twice
            bend = twice - 2.0 * once + root
            safe = np.abs(bend) > _SETTLED * np.abs(twice)
            jump = root - (once - root) ** 2 / np.where(safe, bend, 1.0)
            root = np.where(safe & (jump.real > 0.0), jump, twice)

    def _parts(self, s: Complexes) -> tuple[Complexes, Complexes]:
        """F₁(s) as a multiple of p and one of its value where ψ₁ = μ."""
        nu, mu = self._leaving, self._back
        of_idle, of_end = np.zeros_like(s), np.ones_like(s)
        for _ in range(_MOST_ROUNDS):
            drift, onwards = self.drift(s), self.level(mu + self.work(s))
            below = drift * (mu + nu - drift)
            of_idle = of_idle + of_end * s * (mu - drift) / below
            of_end = of_end * mu * nu * s / (onwards * below)
            if np.abs(onwards - s).max() <= _SETTLED * mu:
                break
            s = onwards
        return of_idle, of_end

    @cached_property
    def _constants(self) -> tuple[float, float]:
        """P[ON, no work] and F₁ where ψ₁ = μ."""
        nu, mu = self._leaving, self._back

        def over(s: float) -> float:
            return float(self.drift(np.array([s], dtype=np.complex128))[0].real) - mu - nu

        high = mu + nu
        while over(high) < 0.0:
            high *= 2.0
        pole = optimize.brentq(over, 0.5 * (mu + nu), high, xtol=1e-15, rtol=1e-14)
        at = self.level(mu + self.work(np.array([0.0, pole], dtype=np.complex128)))
        of_idle, of_end = (part.real for part in self._parts(at))
        first, second = at.real
        ratio = mu * of_end[1] / (second - mu * of_idle[1])
        end = (1.0 - self.queue.load) / (ratio + nu * (ratio * of_idle[0] + of_end[0]) / first)
        return ratio * end, end

    @property
    def idle(self) -> float:
        """P[ON, no work at the queue]."""
        return self._constants[0]

    def on(self, s: Complexes) -> Complexes:
        """F₁(s), its argument off the real axis."""
        of_idle, of_end = self._parts(s)
        idle, end = self._constants
        found: Complexes = idle * of_idle + end * of_end
        return found

    def off(self, s: Complexes, gathered: Complexes, on: Complexes) -> Complexes:
        """E[e^{−s wait}; OFF], where B gathers at a rate, like λ(1 − β(s)).

        ``on`` is F₁(s), needed here as well.
        """
        nu, mu = self._leaving, self._back
        level = self.level(mu + gathered)
        empty = nu * self.on(level) / level
        later = self.level(mu + s)  # at what is left of U when the peer is back
        now = (nu * on - s * empty) / (mu + gathered - self.drift_off(s))
        then = (nu * self.on(later) - later * empty) / (gathered - s)
        found: Complexes = mu * (now - s / later * then) / (mu + s - self.drift_off(s))
        return found


def is_exact(centre: OnOff) -> bool:
    """Whether times ON and OFF are such as this is about."""
    return isinstance(centre.on, Exponential) and isinstance(centre.off, Exponential)


@dataclass(frozen=True, kw_only=True, eq=False)
class GatedWait(TwoMoments, KnownByTransform):
    """All that an event of an ON/OFF publisher waits there and at queues in a line behind it.

    Not its own handing over and services. ``slowest`` is the queue that takes longest for one of
    the publisher's events, longer than handing over; ``others`` are the others.
    """

    centre: OnOff
    rate_per_s: float  # of the publisher's events, all of them
    slowest: Served
    others: tuple[Served, ...] = ()

    @cached_property
    def _pair(self) -> GatedQueue:
        return GatedQueue(centre=self.centre, queue=self.slowest)

    @cached_property
    def _unsent(self) -> float:
        """The share of ON in which a burst is being handed over."""
        load = self.rate_per_s * self.centre.service.mean_s
        return load * (self.centre.slowdown - 1.0) / (1.0 - load)

    @cached_property
    def _left(self) -> float:
        """Mean number of events of a burst that are not handed over yet, while there are any.

        There are λ(R − a) events on average while ON, R the mean time and a the mean absence that
        an event of the publisher meets there; outside of bursts they are as in an M/M/1 queue.
        """
        load = self.rate_per_s * self.centre.service.mean_s
        if load == 0.0:
            return 0.0
        met = self.centre.absence_s
        there = self.rate_per_s * (mean_response_s(self.centre, self.rate_per_s) - met)
        return max((there - (1.0 - self._unsent) * load / (1.0 - load)) / self._unsent, 0.0)

    @cached_property
    def _catching_up(self) -> float:
        """The share of ON in which a burst is being worked off."""
        own = self.slowest.own_per_s * self.slowest.service.mean_s
        share = (self.centre.slowdown - 1.0) * own / (1.0 - self.slowest.load)
        quiet = self._pair.idle / ((1.0 - self.centre.away) * (1.0 - self.slowest.load))
        return min(max(share, 1.0 - quiet), 1.0)

    @cached_property
    def _spacing_s(self) -> float:
        """Between two of all the publisher's events, while a burst is worked off, in seconds."""
        return self.slowest.spacing_s * self.slowest.own_per_s / self.rate_per_s

    @cached_property
    def _behind(self) -> tuple[_Behind, ...]:
        gathered = self.rate_per_s * self.centre.off.mean_s
        burst = gathered / max(1.0 - self.rate_per_s * self._spacing_s, 1e-3)
        handing = Served(service=self.centre.service, own_per_s=self.rate_per_s, others_per_s=0.0)
        return tuple(
            _behind(each, self.slowest, self._spacing_s * self.rate_per_s, burst)
            for each in (handing, *self.others)
            if each.service.mean_s > 0.0
        )

    def transform(self, z: Complexes) -> Complexes:
        """E[exp(−zX)]."""
        s = np.atleast_1d(np.asarray(z, dtype=np.complex128))
        s = np.where(np.abs(s.imag) < _NUDGE * np.abs(s), s + 1j * _NUDGE * np.abs(s), s)
        flat = self._off_axis(s.ravel()).reshape(np.shape(z))
        found: Complexes = np.where(np.imag(z) == 0.0, flat.real, flat)
        return found

    def _off_axis(self, s: Complexes) -> Complexes:
        pair, centre = self._pair, self.centre
        interrupted = centre.service.transform(s / (1.0 + s * centre.off.mean_s) * self._away_s)
        brings = (1.0 - pair.work(s) / self.rate_per_s) * interrupted
        on = pair.on(s)
        off = pair.off(s, self.rate_per_s * (1.0 - brings), on)
        off *= 1.0 - self._unsent + self._unsent / (1.0 + self._left * (1.0 - brings))
        alone = self._quiet * s / pair.drift(s)
        burst = off + (on - alone) * self._ahead(interrupted)
        for each in self._behind:
            alone, burst = alone * each.quiet(s), burst * each.burst(s)
        found: Complexes = (alone + burst) * interrupted
        return found

    @property
    def _away_s(self) -> float:
        """OFF per ON."""
        return self.centre.off.mean_s / self.centre.on.mean_s

    @property
    def _quiet(self) -> float:
        """P[ON, no burst is being worked off, no work]."""
        on = (1.0 - self._catching_up) * (1.0 - self.centre.away)
        return on * (1.0 - self.slowest.load)

    def _ahead(self, interrupted: Complexes) -> Complexes:
        """What interrupts those ahead of one that comes while a burst is being worked off."""
        sending = min(self._unsent / max(self._catching_up, 1e-12), 1.0)
        found: Complexes = 1.0 - sending + sending / (1.0 + self._left * (1.0 - interrupted))
        return found

    @cached_property
    def atom(self) -> float:
        """P[X = 0]."""
        interrupted = self.centre.service.transform(1.0 / self.centre.on.mean_s)
        kept, ahead = float(interrupted.real), float(self._ahead(interrupted).real)
        alone = self._quiet
        burst = max(self._pair.idle - alone, 0.0) * ahead
        for each in self._behind:
            alone, burst = alone * (1.0 - each.load), burst * (1.0 - each.peak_load)
        return kept * (alone + burst)

    @cached_property
    def moments(self) -> tuple[float, float]:
        """E[X] and E[X²], from values on a circle around 0."""
        longest_s = self.centre.off.mean_s + self.slowest.service.mean_s
        radius = _NEAR / longest_s * (1.0 - self.slowest.load) ** 2
        turns = 2.0j * np.pi * (np.arange(_AROUND) + 0.5) / _AROUND
        nodes: Complexes = radius * np.exp(turns)
        values = self._off_axis(nodes)
        first, second = (float((values / nodes**power).mean().real) for power in (1, 2))
        return -first, 2.0 * second

    @property
    def order(self) -> float:
        """0: it has an atom."""
        return 0.0

    def on_lattice(self, lattice: Lattice) -> tuple[Complexes, Complexes]:
        """From a table of the law, with its error on either side."""
        return self._table.on_lattice(lattice)

    @cached_property
    def _table(self) -> Table:
        last_s = self.mean_s + 40.0 * math.sqrt(self.variance_s2)
        first_s = 1e-3 * self.slowest.service.mean_s
        return tabulated(self.transform, (first_s, last_s), self.atom)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Behind:
    """The waits at a faster server behind the slowest: none, or exponential, quiet or in bursts."""

    load: float
    wait_s: float
    peak_load: float
    peak_wait_s: float

    def quiet(self, s: Complexes) -> Complexes:
        return _perhaps(self.load, self.wait_s)(s)

    def burst(self, s: Complexes) -> Complexes:
        return _perhaps(self.peak_load, self.peak_wait_s)(s)


def _behind(server: Served, slowest: Served, of_all: float, burst: float) -> _Behind:
    """The waits at a server to which events of a burst come as the slowest lets them through.

    ``of_all`` is the load that the publisher's events, all of them, would make at the speed of a
    burst, which has so many events. A queue that is just as fast as what comes grows with the root
    of their number, which keeps the mean finite.
    """
    mean_s, load = server.service.mean_s, min(server.load, 1.0 - 1e-9)
    own = server.own_per_s * mean_s / max(of_all, 1e-12)
    peak = min(own + server.others_per_s * mean_s, 1.0)
    spare = 1.0 - peak + 4.0 / (3.0 * math.sqrt(max(burst, 1.0)))
    uneven = 0.5 * (slowest.service.scv + server.service.scv)
    quiet_s = mean_s * load / (1.0 - load) * 0.5 * (1.0 + server.service.scv)
    return _Behind(
        load=load,
        wait_s=quiet_s,
        peak_load=peak,
        peak_wait_s=mean_s * peak / spare * uneven,
    )


def _perhaps(share: float, mean_s: float) -> Callable[[Complexes], Complexes]:
    """The transform of an exponential wait of this mean in all, with this share that waits."""

    def transform(s: Complexes) -> Complexes:
        if share == 0.0:
            return np.ones_like(s)
        found: Complexes = 1.0 - share + share / (1.0 + s * (mean_s / share))
        return found

    return transform
