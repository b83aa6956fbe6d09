r"""Stations as streams go through them: what arrives, waits, and leaves.

A station is seen under a supposed mean wait, which its sojourns depend on; ``dispersion`` repeats
until the waits that come out are those that were supposed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tidings.model.laws import Deterministic, Law, unshifted
from tidings.theory import peaks, queues, workload
from tidings.theory.departures import (
    departure_lags,
    departure_weight,
    equal_parts,
    idle_cumulant,
)
from tidings.theory.direction import Order, relieved_s
from tidings.theory.displacement import displacing, sojourn
from tidings.theory.echoes import Passage
from tidings.theory.lone_streams import KnownWait, LoneStream, lone_wait
from tidings.theory.queues import FULL_LOAD
from tidings.theory.renewal import averaged_dispersion
from tidings.theory.service_sums import ServiceSums, service_sums
from tidings.theory.time_grid import TimeGrid
from tidings.theory.workload import WaitMoments

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Curves:
    """Curves of laws on one grid of times, each worked out once."""

    grid: TimeGrid

    @cached_property
    def _known_curves(self) -> dict[tuple[Law, float], Floats]:
        return {}

    def renewal(self, law: Law, speed: float = 1.0) -> Floats:
        """I − 1 of a renewal stream, its time running at a speed; exactly 0 if Poisson."""
        key = (law, speed)
        if key not in self._known_curves:
            times_s = speed * self.grid.times_s
            beyond = averaged_dispersion(law, times_s, self.grid.step) - 1.0
            self._known_curves[key] = beyond
        return self._known_curves[key]

    @cached_property
    def _known_sums(self) -> dict[Law, ServiceSums]:
        return {}

    def sums(self, law: Law) -> ServiceSums:
        """Sums of services of this law."""
        if law not in self._known_sums:
            self._known_sums[law] = service_sums(law)
        return self._known_sums[law]

    @cached_property
    def _known_alone(self) -> dict[tuple[LoneStream, Law], KnownWait | None]:
        return {}

    def wait_alone(self, stream: LoneStream, service: Law) -> KnownWait | None:
        """The wait behind a lone stream, if it can be told."""
        key = (stream, service)
        if key not in self._known_alone:
            self._known_alone[key] = lone_wait(stream, service)
        return self._known_alone[key]

    @cached_property
    def _known_jitter(self) -> dict[Law, Floats]:
        return {}

    def jittered(self, beyond: Floats, delay: Law) -> Floats:
        """Curves after random delays of this law, each event its own."""
        base, _ = unshifted(delay)
        if isinstance(base, Deterministic) or not np.any(beyond):
            return beyond
        if delay not in self._known_jitter:
            self._known_jitter[delay] = displacing(base, 0.0, 0.0, self.grid)
        displaced: Floats = beyond @ self._known_jitter[delay].T
        return displaced


@dataclass(frozen=True, slots=True, kw_only=True)
class Third:
    """Third cumulants of what arrives: beyond those of the law with two moments, and in order."""

    skew: Floats | None = None
    orders: tuple[Order, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Station:
    """A station as streams go through it, under a supposed mean wait."""

    service: Law
    rate_per_s: float
    wait_s: float
    limit: float  # I − 1 of what arrives, for t → ∞
    peak_per_s: float  # of what arrives
    curves: Curves

    @property
    def load(self) -> float:
        """ρ = λ E[S], at most 1."""
        return min(self.rate_per_s * self.service.mean_s, 1.0)

    @cached_property
    def serving(self) -> Floats:
        """I − 1 of its services in a row, on the time that it is busy."""
        return self.curves.renewal(self.service, self.load)

    @property
    def uneven(self) -> float:
        """c² = I_a + c²_s of arrivals and services together, for t → ∞."""
        return max(1.0 + self.limit + self.service.scv, 1e-6)

    @property
    def unit_s(self) -> float:
        """The time in which what waits changes, ρ c²/((1 − ρ)² λ)."""
        return self.load * self.uneven / ((1.0 - self.load) ** 2 * self.rate_per_s)

    @cached_property
    def as_arrived(self) -> Floats:
        """w(t): how far departures are arrivals."""
        return departure_weight(self.curves.grid.times_s / self.unit_s)

    @cached_property
    def passage(self) -> Passage:
        """After which lags and sojourns events leave."""
        step_s, masses = sojourn(self.service, self.wait_s, self.load)
        times_s = step_s * np.arange(masses.size, dtype=np.float64)
        stays_s = equal_parts(times_s, masses)
        return Passage(lags_s=self.unit_s * departure_lags(), stays_s=stays_s)

    @property
    def smooths(self) -> bool:
        """Whether arrivals are no more uneven than Poisson ones, and services no more than they."""
        regular = self.limit <= 0.0 and self.service.scv <= 1.0 + self.limit
        return regular and 0.0 < self.load < FULL_LOAD

    @property
    def met(self) -> float:
        """How much of what heavy traffic says of three events together holds under this load.

        Heavy traffic has many events in the time in which what waits changes; with n of them so
        much is counted as if each of the two others were among them with probability n/(1 + n).
        An interpolation: 1 near full load, as n² under little, where three events hardly meet.
        """
        events = self.load * self.uneven / (1.0 - self.load) ** 2
        return (events / (1.0 + events)) ** 2

    @property
    def order(self) -> Order:
        """How far the order of its departures matters; like ``skew`` only where it smooths."""
        if not self.smooths:
            return Order(third=0.0, unit_s=1.0)
        part = self.service.scv / self.uneven
        events = self.uneven / (1.0 - self.load)
        third = part * (1.0 - 2.0 * part) * events**3
        return Order(third=self.met * third, unit_s=self.unit_s)

    def skew(self, curve: Floats) -> Floats:
        """By how much κ₃/E of the number that leaves falls short of the law with two moments.

        What arrives is taken as no more uneven than a Poisson stream and services as more regular
        than that, else nothing is known: κ₃ = E + the cumulant of ``departures``; the law with two
        moments has E·I(2I − 1). Only what is skewed to the left is counted.
        """
        if not self.smooths:
            return np.zeros_like(curve)
        part = self.service.scv / self.uneven
        t_s = self.curves.grid.times_s
        size = -3.0 * (0.5 - part) * (1.0 - part) * (self.uneven / (1.0 - self.load)) ** 3
        third = self.met * size * idle_cumulant(t_s / self.unit_s) / (self.rate_per_s * t_s)
        leaving = self.departing(curve[None, :], np.ones(1))[0]
        found: Floats = np.minimum(third - leaving * (3.0 + 2.0 * leaving), 0.0)
        return found

    @property
    def sojourns(self) -> Floats:
        """The matrix by which its sojourns displace; too large to be kept for every station."""
        return displacing(self.service, self.wait_s, self.load, self.curves.grid)

    def departing(self, curves: Floats, shares: Floats) -> Floats:
        """Curves of streams that leave, from those with which they arrive; shares of all."""
        if self.load == 0.0:
            return curves
        q = shares[:, None]
        if self.load >= FULL_LOAD:
            return q * self.serving
        together = self.as_arrived * curves + (1.0 - self.as_arrived) * self.serving
        if np.all(q >= 1.0 - 1e-12) or not np.any(curves):
            return q * together
        found: Floats = q * together + (1.0 - q) * (curves @ self.sojourns.T)
        return found

    def wait_alone(self, stream: LoneStream) -> KnownWait | None:
        """The wait where one stream of independent intervals is all that arrives, if known."""
        if not 0.0 < self.load < FULL_LOAD:
            return None
        return self.curves.wait_alone(stream, self.service)

    def wait(self, curve: Floats, third: Third) -> WaitMoments:
        """The moments of the wait of what arrives with this curve and these third cumulants."""
        if self.load >= FULL_LOAD:
            return WaitMoments(math.inf, math.inf)
        if self.load == 0.0 or not np.any(curve):
            return WaitMoments(queues.mean_wait_s(self.rate_per_s, self.service), math.nan)
        server = workload.Server(
            rate_per_s=self.rate_per_s,
            mean_s=self.service.mean_s,
            sums=self.curves.sums(self.service),
        )
        if math.isfinite(self.peak_per_s):
            return peaks.wait_moments(server, 1.0 + curve, self.curves.grid, self.peak_per_s)
        return uneven_wait(server, curve, self.curves.grid, limit=self.limit, third=third)


def uneven_wait(
    server: workload.Server,
    beyond: Floats,
    grid: TimeGrid,
    *,
    limit: float,
    third: Third | None = None,
) -> WaitMoments:
    """The moments of the wait of a stream without a peak, from I − 1 and its limit; load below 1.

    A stream and services no more uneven than Poisson and exponential: as many wait as in an M/M/1
    queue, the share ρ. At one queue two moments are nearer the truth here too, but paths composed
    of such waits were further off for periodic streams; chosen on two random trees, and so again on
    four others.
    """
    third = third or Third()
    work_s, spread_s2 = workload.work_cumulants(server, 1.0 + beyond, grid, third.skew)
    work_s -= relieved_s(server, work_s, third.orders)
    found = workload.from_work(server, work_s, spread_s2)
    if limit + server.sums.scv <= 1.0:
        return WaitMoments(found.mean_s, 2.0 * found.mean_s**2 / server.load)
    return found


def busiest(stations: list[Station]) -> Station | None:
    """The station that is busiest, if there is one, and none is overloaded."""
    found = max(stations, key=lambda station: station.load, default=None)
    return found if found is not None and 0.0 < found.load < FULL_LOAD else None
