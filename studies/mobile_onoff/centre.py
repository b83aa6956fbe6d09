r"""The ON/OFF centre: a queue served only while a peer is connected, and its response.

Events arrive at a rate λ and are kept while the peer is away; the one being handed over is gone on
with after the next connection (preempt-resume), first come first served. The peer's clock of times
ON and OFF runs whether events wait or not. With D the mean service, s = (T_ON + T_OFF)/T_ON and
a = T_OFF²/(T_ON + T_OFF), the published theorem is

.. math:: R = \frac{a + D s}{1 - \lambda D s}

for Poisson arrivals and exponential times: exact, the M/M/1 queue with breakdowns. If only ON is
exponential, a service takes with its interruptions a time C of known moments and

.. math:: R = E[C] + \frac{\lambda E[C^2]}{2 (1 - \lambda E[C])}
   + P[\text{OFF}] \frac{E[\text{OFF}^2]}{2 E[\text{OFF}]}.

From λ D s = 1 on the queue grows without limit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from studies.mobile_onoff.phased import phased_response_s
from tidings.model.arrays import Floats
from tidings.model.behaviour import Connectivity
from tidings.model.laws import Exponential, Law
from tidings.model.loads import FULL_LOAD
from tidings.theory.delay.grids import Grid
from tidings.theory.peers.connectivity import peer_delay


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
    def demand_s(self) -> float:
        """Mean time a service takes, interruptions included, in seconds: D s."""
        return self.service.mean_s * self.slowdown

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


def exponential_centre(service_s: float, on_s: float, off_s: float) -> OnOff:
    """Build the centre of the published model: three exponential times by their means, in s."""
    service, on, off = (Exponential(mean_s=mean_s) for mean_s in (service_s, on_s, off_s))
    return OnOff(service=service, on=on, off=off)


def mean_response_s(centre: OnOff, rate_per_s: float) -> float:
    """Compute the mean time from a Poisson arrival to the end of its service, in seconds.

    Infinite from full load on. Exact for exponential ON, whatever OFF and service are; for other
    ON with exponential services by phases of ON and OFF.

    >>> round(mean_response_s(exponential_centre(0.125, 20.0, 20.0), 2.0), 12)
    20.5
    """
    if centre.is_overloaded(rate_per_s):
        return math.inf
    on, off, service = centre.on, centre.off, centre.service
    if not isinstance(on, Exponential) and isinstance(service, Exponential):
        return phased_response_s(on, off, service.mean_s, rate_per_s)
    square_s2 = centre.slowdown**2 * _square_s2(service)
    square_s2 += service.mean_s * _square_s2(off) / on.mean_s
    wait_s = rate_per_s * square_s2 / (2.0 * (1.0 - centre.load(rate_per_s)))
    absence_s = 0.5 * _square_s2(off) / (on.mean_s + off.mean_s)
    return centre.demand_s + wait_s + absence_s


def _square_s2(law: Law) -> float:
    return law.mean_s**2 * (1.0 + law.scv)


def response_quantiles_s(centre: OnOff, rate_per_s: float, shares: Sequence[float]) -> Floats:
    """Compute by when shares of the events have been served, in seconds; ON as exponential."""
    mean_s = mean_response_s(centre, rate_per_s)
    grid = Grid.spanning(0.01 * centre.service.mean_s, 100.0 * mean_s)
    connectivity = Connectivity(on=centre.on, off=centre.off, service=centre.service)
    response = peer_delay(grid, connectivity, rate_per_s)
    quantiles_s: Floats = response.quantiles(np.ones((1, 1)), shares)[0]
    return quantiles_s


def published_response_s(
    rate_per_s: float, *, service_s: float, on_s: float, off_s: float
) -> float:
    """Compute the mean response of the published theorem, R = (a + D s)/(1 − λ D s), in seconds.

    ``off_s`` of 0 is a plain M/M/1 queue. Infinite from full load on.

    >>> published_response_s(2.0, service_s=0.125, on_s=20.0, off_s=20.0)
    20.5
    """
    away_s, slowdown = off_s**2 / (on_s + off_s), (on_s + off_s) / on_s
    load = rate_per_s * service_s * slowdown
    if load >= FULL_LOAD:
        return math.inf
    return (away_s + service_s * slowdown) / (1.0 - load)
