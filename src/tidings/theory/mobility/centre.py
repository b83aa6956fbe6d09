r"""The ON/OFF centre: a queue served only while a peer is connected, and its mean response.

Events arrive at a rate λ and are kept while the peer is away; the one being handed over is gone on
with after the next connection (preempt-resume), first come first served. The peer's clock of times
ON and OFF runs whether events wait or not. With D the mean service, s = (T_ON + T_OFF)/T_ON and
a = T_OFF²/(T_ON + T_OFF),

.. math:: R = \frac{a + D s}{1 - \lambda D s}

for Poisson arrivals and exponential times: exact, the M/M/1 queue with breakdowns. If only ON is
exponential, a service takes with its interruptions a time C of known moments and

.. math:: R = E[C] + \frac{\lambda E[C^2]}{2 (1 - \lambda E[C])}
   + P[\text{OFF}] \frac{E[\text{OFF}^2]}{2 E[\text{OFF}]}.

From λ D s = 1 on the queue grows without limit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tidings.model.laws import Exponential, Law
from tidings.theory.queues import FULL_LOAD


@dataclass(frozen=True, slots=True, kw_only=True)
class OnOff:
    """A server that works on one event for a time ``service``, but only while it is ON."""

    service: Law
    on: Law
    off: Law

    @property
    def slowdown(self) -> float:
        """s: how much longer a service takes for being interrupted, on average."""
        return 1.0 + self.off.mean_s / self.on.mean_s

    @property
    def away(self) -> float:
        """The share of time OFF."""
        return self.off.mean_s / (self.on.mean_s + self.off.mean_s)

    @property
    def demand_s(self) -> float:
        """Mean time a service takes, interruptions included, in seconds: D s."""
        return self.service.mean_s * self.slowdown

    @property
    def demand_square_s2(self) -> float:
        """E[C²] = s² E[S²] + D E[OFF²]/T_ON, in seconds squared; ON taken as exponential."""
        (service_s2, _), (off_s2, _) = _square_and_cube(self.service), _square_and_cube(self.off)
        return self.slowdown**2 * service_s2 + self.service.mean_s * off_s2 / self.on.mean_s

    @property
    def demand_cube_s3(self) -> float:
        """E[C³] = s³ E[S³] + 3 s E[S²] E[OFF²]/T_ON + D E[OFF³]/T_ON, in seconds cubed.

        ON taken as exponential; E[S³] and E[OFF³] as of gamma laws with their mean and c².
        """
        service_s2, service_s3 = _square_and_cube(self.service)
        off_s2, off_s3 = _square_and_cube(self.off)
        absences = 3.0 * self.slowdown * service_s2 * off_s2 + self.service.mean_s * off_s3
        return self.slowdown**3 * service_s3 + absences / self.on.mean_s

    @property
    def absence_s(self) -> float:
        """Mean time until the peer is back, over all moments (0 while it is ON), in seconds."""
        return self.away * 0.5 * self.off.mean_s * (1.0 + self.off.scv)

    @property
    def most_per_s(self) -> float:
        """Events per second from which on the queue grows without limit; it does *at* this rate."""
        return 1.0 / self.demand_s if self.demand_s > 0.0 else math.inf

    def load(self, rate_per_s: float) -> float:
        """λ D s: work offered, interruptions included, in seconds per second."""
        return rate_per_s * self.demand_s

    def is_overloaded(self, rate_per_s: float) -> bool:
        """Whether the queue grows without limit."""
        return self.load(rate_per_s) >= FULL_LOAD

    @property
    def all_exponential(self) -> bool:
        """Whether service, ON and OFF are exponential."""
        return all(isinstance(law, Exponential) for law in (self.service, self.on, self.off))


def _square_and_cube(law: Law) -> tuple[float, float]:
    """E[X²], and E[X³] as of a gamma law, in seconds squared and cubed."""
    square_s2 = law.mean_s**2 * (1.0 + law.scv)
    return square_s2, law.mean_s * square_s2 * (1.0 + 2.0 * law.scv)


def exponential_centre(service_s: float, on_s: float, off_s: float) -> OnOff:
    """The centre of the published model: three exponential times by their means, in seconds."""
    service, on, off = (Exponential(mean_s=mean_s) for mean_s in (service_s, on_s, off_s))
    return OnOff(service=service, on=on, off=off)


def mean_response_s(centre: OnOff, rate_per_s: float) -> float:
    """Mean time from arrival to the end of service, in seconds; infinite from full load on.

    Exact for Poisson arrivals and exponential ON, whatever OFF and service are. With other ON laws
    it is right for few events only, see ``periods``.

    >>> round(mean_response_s(exponential_centre(0.125, 20.0, 20.0), 2.0), 12)
    20.5
    """
    load = centre.load(rate_per_s)
    if load >= FULL_LOAD:
        return math.inf
    wait_s = rate_per_s * centre.demand_square_s2 / (2.0 * (1.0 - load))
    return centre.demand_s + wait_s + centre.absence_s


def published_response_s(
    rate_per_s: float, *, service_s: float, on_s: float, off_s: float
) -> float:
    """Mean response of the published theorem, R = (a + D s)/(1 − λ D s), in seconds.

    ``off_s`` of 0 is a plain M/M/1 queue. Infinite from full load on.

    >>> published_response_s(2.0, service_s=0.125, on_s=20.0, off_s=20.0)
    20.5
    """
    away_s, slowdown = _absence_and_slowdown(on_s, off_s)
    load = rate_per_s * service_s * slowdown
    if load >= FULL_LOAD:
        return math.inf
    return (away_s + service_s * slowdown) / (1.0 - load)


def effective_demand_s(
    own_per_s: float, others_per_s: float, service_s: float, *, on_s: float = 1.0, off_s: float = 0
) -> float:
    """The service that one flow alone would need to respond as it does among others, in seconds.

    It keeps the mean response only, R(own, D_eff) = R(own + others, D): D/(1 − λ_oth D) for an
    M/M/1 queue, D (1 + a(λ_ps + λ_oth))/(1 + a λ_ps − s λ_oth D) for an ON/OFF centre. Infinite
    where both flows together are too much.

    >>> effective_demand_s(1.0, 4.0, 0.125)
    0.25
    """
    away_s, slowdown = _absence_and_slowdown(on_s, off_s)
    total_per_s = own_per_s + others_per_s
    if total_per_s * service_s * slowdown >= FULL_LOAD:
        return math.inf
    loss = slowdown * others_per_s * service_s
    return service_s * (1.0 + away_s * total_per_s) / (1.0 + away_s * own_per_s - loss)


def _absence_and_slowdown(on_s: float, off_s: float) -> tuple[float, float]:
    """A = T_OFF²/(T_ON + T_OFF), in seconds, and s = (T_ON + T_OFF)/T_ON."""
    return off_s**2 / (on_s + off_s), (on_s + off_s) / on_s
