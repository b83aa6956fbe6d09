r"""The wait at a station that is fed by one publisher alone, whose intervals are independent.

No curves are needed there. With T the interval, S the service and ρ = E[S]/E[T] < 1:

- no service is longer than the shortest interval: nobody ever waits;
- exponential services, 1/μ: whoever arrives waits with probability σ, for an exponential time of
  rate x = μ(1 − σ), where σ = T*(μ(1 − σ)) is the root below 1 (GI/M/1);
- any other laws: the whole law of the wait on a lattice (``renewal_waits``), where it is no longer
  than that and has no atoms that lie on none.

Losses on the publisher's link thin the stream like a coin and leave its intervals independent:
T*(z) becomes r T*(z)/(1 − (1 − r) T*(z)).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from scipy import optimize

from tidings.model.laws import Exponential, Law
from tidings.theory.renewal_waits import renewal_wait
from tidings.theory.workload import WaitMoments


@dataclass(frozen=True, slots=True, kw_only=True)
class LoneStream:
    """One publisher's events as they arrive: their intervals, of which a share gets through."""

    interval: Law
    kept: float = 1.0

    def transform(self, z: float) -> float:
        """E[e^{−zT}] of the time between two events that get through."""
        whole = float(self.interval.transform(z).real)
        return self.kept * whole / (1.0 - (1.0 - self.kept) * whole)


class KnownWait(NamedTuple):
    """Moments of the wait, and unless it is 0 with some probability, else exponential, its law."""

    moments: WaitMoments
    law: Law | None = None
    law_error: float = 0.0  # how far the CDF can be off
    stay: Law | None = None  # of wait and service, where both are made of atoms


def lone_wait(stream: LoneStream, service: Law) -> KnownWait | None:
    """The wait of a lone stream's events; None where only curves can tell.

    >>> from tidings.model.laws import Deterministic
    >>> stream = LoneStream(interval=Deterministic(value_s=1.0))
    >>> found = lone_wait(stream, Exponential(mean_s=0.5))
    >>> round(found.moments.mean_s, 6)  # σ = e^−2(1−σ) = 0.203188
    0.1275
    """
    shortest_s, longest_s = (
        float(stream.interval.quantile(0.0)),
        float(service.quantile(1.0)),
    )
    if longest_s <= shortest_s:
        return KnownWait(WaitMoments(0.0, 0.0))
    if isinstance(service, Exponential):
        return KnownWait(_exponential_services(stream, service.mean_s))
    found = renewal_wait(stream.interval, stream.kept, service)
    if found is None:
        return None
    law = found.wait
    moments = WaitMoments(law.mean_s, law.mean_s**2 * (1.0 + law.scv))
    return KnownWait(moments, law, found.error, found.stay)


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
