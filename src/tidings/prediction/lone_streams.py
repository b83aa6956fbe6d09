r"""The wait at a station that is fed by one publisher alone, whose intervals are independent.

No curves are needed there. With T the interval, S the service and ρ = E[S]/E[T] < 1:

- no service is longer than the shortest interval: nobody ever waits;
- exponential services, 1/μ: whoever arrives waits with probability σ, for an exponential time of
  rate x = μ(1 − σ), where σ = T*(μ(1 − σ)) is the root below 1 (GI/M/1);
- constant intervals: Spitzer's identity for the walk of S − T, E[W] = Σ E[(S_n − nT)⁺]/n and
  Var W = Σ E[((S_n − nT)⁺)²]/n, S_n the sum of n services.

Losses on the publisher's link thin the stream like a coin and leave its intervals independent:
T*(z) becomes r T*(z)/(1 − (1 − r) T*(z)).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import optimize

from tidings.model.laws import Exponential, Law
from tidings.prediction.service_sums import ServiceSums
from tidings.prediction.workload import WaitMoments

_CERTAIN = 1e-9  # of a mean service: a wait for sure no longer than that is none
_REACH = 80.0  # (n(T − E[S]))² over n Var S, from which on S_n < nT
_MOST_SUMMED = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LoneStream:
    """One publisher's events as they arrive: their intervals, of which a share gets through."""

    interval: Law
    kept: float = 1.0

    def transform(self, z: float) -> float:
        """E[e^{−zT}] of the time between two events that get through."""
        whole = float(self.interval.transform(z).real)
        return self.kept * whole / (1.0 - (1.0 - self.kept) * whole)


def lone_wait(stream: LoneStream, service: Law, sums: ServiceSums) -> WaitMoments | None:
    """Moments of the wait, exact but for ``sums``; None where only curves can tell.

    >>> from tidings.model.laws import Deterministic
    >>> from tidings.prediction.service_sums import service_sums
    >>> served = Exponential(mean_s=0.5)
    >>> stream = LoneStream(interval=Deterministic(value_s=1.0))
    >>> round(lone_wait(stream, served, service_sums(served)).mean_s, 6)  # σ = e^−2(1−σ) = 0.203188
    0.1275
    """
    shortest_s, longest_s = (
        float(stream.interval.quantile(0.0)),
        float(service.quantile(1.0)),
    )
    if longest_s <= shortest_s:
        return WaitMoments(0.0, 0.0)
    if isinstance(service, Exponential):
        return _exponential_services(stream, service.mean_s)
    if stream.interval.scv == 0.0 and stream.kept == 1.0:
        return _constant_intervals(stream.interval.mean_s, service.mean_s, sums)
    return None


def _exponential_services(stream: LoneStream, mean_s: float) -> WaitMoments:
    """GI/M/1: none with probability 1 − σ, else exponential of rate x; here in units of 1/μ."""

    def over(x: float) -> float:
        return 1.0 - x - stream.transform(x / mean_s)

    # Concave, 0 at 0 and not above it at 1: halving finds where it is above.
    low = 0.5
    while over(low) <= 0.0:
        low *= 0.5
    x = optimize.brentq(over, low, 1.0, xtol=1e-15, rtol=1e-14)
    wait_s = mean_s * (1.0 - x) / x
    return WaitMoments(wait_s, 2.0 * wait_s * mean_s / x)


def _constant_intervals(period_s: float, mean_s: float, sums: ServiceSums) -> WaitMoments | None:
    spare = period_s / mean_s - 1.0
    steps = math.ceil(_REACH * max(sums.scv, sums.third) / spare**2 + _REACH / spare)
    if steps > _MOST_SUMMED:
        return None
    count = np.arange(1, steps + 1)
    first, second = sums.over(count, (1.0 + spare) * count.astype(np.float64))
    wait_s = mean_s * float(np.sum(first / count))
    return WaitMoments(wait_s, wait_s**2 + mean_s**2 * float(np.sum(second / count)))
