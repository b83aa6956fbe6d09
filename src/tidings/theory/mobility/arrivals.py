"""What arrives at a peer's queue, as far as a queue model can tell: how much, and how unevenly.

Three descriptions answer the same two questions: the wait in a queue of given services, and what
arrives after an ON/OFF centre.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from tidings.model.laws import Law
from tidings.theory import peaks, queues, workload
from tidings.theory.burstiness import mean_wait_gg1_s, thinned_scv
from tidings.theory.dispersion import Leaving
from tidings.theory.mobility.centre import OnOff
from tidings.theory.mobility.completion import completion
from tidings.theory.mobility.output import departing_dispersion
from tidings.theory.mobility.publishing import centre_peak_per_s, leaving_scv, settling_s
from tidings.theory.service_sums import service_sums
from tidings.theory.stations import uneven_wait
from tidings.theory.workload import WaitMoments

_ROUNDING = 1e-9  # far above that of c² by any order of its sums, far below what queues feel


class Arrivals(Protocol):
    """A stream of events into a queue."""

    @property
    def rate_per_s(self) -> float:
        """Events per second."""
        ...

    @property
    def poisson(self) -> bool:
        """Whether they are taken as Poisson, so that whole laws are exact."""
        ...

    def wait(self, service: Law) -> WaitMoments:
        """The moments of the wait before service; load below 1."""
        ...

    def completion_wait(self, centre: OnOff) -> WaitMoments:
        """The moments of the wait for other events at an ON/OFF centre; load below 1."""
        ...

    def thinned(self, share: float) -> Arrivals:
        """Of which each event is kept with probability ``share``."""
        ...

    def after(self, centre: OnOff) -> Arrivals:
        """What leaves an ON/OFF centre that is not overloaded."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PoissonArrivals:
    """Poisson, also after an ON/OFF centre: the published assumption."""

    rate_per_s: float
    poisson: bool = True

    def wait(self, service: Law) -> WaitMoments:
        """Pollaczek and Khinchine's moments, E[S³] as of a gamma law."""
        load = queues.offered_load(self.rate_per_s, service)
        whole = queues.PoissonWait(service=service, load=load, kinked=False)
        return WaitMoments(whole.mean_s, whole.variance_s2 + whole.mean_s**2)

    def completion_wait(self, centre: OnOff) -> WaitMoments:
        """The same with services that are completions: E[W²] = 2 E[W]² + λ E[C³]/(3 (1 − ρ))."""
        mean_s = queues.mean_wait_s(self.rate_per_s, completion(centre))
        spare = 1.0 - centre.load(self.rate_per_s)
        rare_s2 = self.rate_per_s * centre.demand_cube_s3 / (3.0 * spare)
        return WaitMoments(mean_s, 2.0 * mean_s**2 + rare_s2)

    def thinned(self, share: float) -> PoissonArrivals:
        """Poisson again."""
        return replace(self, rate_per_s=share * self.rate_per_s)

    def after(self, centre: OnOff) -> PoissonArrivals:
        """Taken as Poisson."""
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class VariableArrivals:
    """Known by c² alone, as in QNA."""

    rate_per_s: float
    scv: float

    @property
    def poisson(self) -> bool:
        """Where c² is 1, but for rounding."""
        return abs(self.scv - 1.0) < _ROUNDING

    def wait(self, service: Law) -> WaitMoments:
        """The mean by Krämer and Langenbach-Belz; the share ρ waits, and exponentially."""
        mean_s = mean_wait_gg1_s(self.rate_per_s, service, self.scv)
        load = queues.offered_load(self.rate_per_s, service)
        return WaitMoments(mean_s, 2.0 * mean_s**2 / load if load > 0.0 else 0.0)

    def completion_wait(self, centre: OnOff) -> WaitMoments:
        """The same with services that are completions."""
        return self.wait(completion(centre))

    def thinned(self, share: float) -> VariableArrivals:
        """The closer to Poisson the fewer are kept."""
        return VariableArrivals(
            rate_per_s=share * self.rate_per_s, scv=thinned_scv(self.scv, share)
        )

    def after(self, centre: OnOff) -> VariableArrivals:
        """With the c² of the intervals between departures."""
        return replace(self, scv=leaving_scv(centre, self.rate_per_s, self.scv))


@dataclass(frozen=True, slots=True, kw_only=True)
class UnevenArrivals:
    """Known by a dispersion curve and by how much can come at most."""

    leaving: Leaving

    @property
    def rate_per_s(self) -> float:
        """Events per second."""
        return self.leaving.rate_per_s

    @property
    def poisson(self) -> bool:
        """Where the curve is that of a Poisson stream, but for rounding."""
        return bool(np.all(np.abs(self.leaving.beyond) < _ROUNDING))

    def wait(self, service: Law) -> WaitMoments:
        """The moments by Spitzer's identity."""
        if self.poisson or self.rate_per_s == 0.0:
            return PoissonArrivals(rate_per_s=self.rate_per_s).wait(service)
        server = workload.Server(
            rate_per_s=self.rate_per_s, mean_s=service.mean_s, sums=service_sums(service)
        )
        stream = self.leaving
        if math.isfinite(stream.peak_per_s):
            return peaks.wait_moments(server, 1.0 + stream.beyond, stream.grid, stream.peak_per_s)
        return uneven_wait(server, stream.beyond, stream.grid, limit=float(stream.beyond[-1]))

    def completion_wait(self, centre: OnOff) -> WaitMoments:
        """That of Poisson arrivals, and how much longer uneven ones wait.

        Completions are rarely long and then very long, so that burstiness is felt at long times.
        With Z the work found, R what is left of a completion: E[W] = E[Z]/ρ − E[R] and
        E[W²] = E[Z²]/ρ − 2 E[W] E[R] − E[R²], of which only the changes are approximated.
        """
        if self.rate_per_s == 0.0 or centre.service.mean_s == 0.0:
            return WaitMoments(0.0, 0.0)
        stream, service = self.leaving, completion(centre)
        load = centre.load(self.rate_per_s)
        plain = PoissonArrivals(rate_per_s=self.rate_per_s).completion_wait(centre)
        more_s, more_s2 = peaks.extra_work(
            load, service.mean_s, service.scv, 1.0 + stream.beyond, stream.grid
        )
        more_s = max(more_s, -load * plain.mean_s)
        left_s = 0.5 * service.mean_s * (1.0 + service.scv)
        work_s = load * (plain.mean_s + left_s)
        mean_s = plain.mean_s + more_s / load
        squares_s2 = (more_s2 + more_s * (2.0 * work_s + more_s)) / load - 2.0 * left_s * (
            more_s / load
        )
        return WaitMoments(mean_s, max(plain.square_s2 + squares_s2, mean_s**2))

    def thinned(self, share: float) -> UnevenArrivals:
        """The same curve, less of it; so is the peak."""
        stream = self.leaving
        return UnevenArrivals(
            leaving=replace(
                stream,
                rate_per_s=share * stream.rate_per_s,
                beyond=share * stream.beyond,
                peak_per_s=share * stream.peak_per_s,
            )
        )

    def after(self, centre: OnOff) -> UnevenArrivals:
        """Bursts of the centre's own at its own speed; after long times, what arrived."""
        stream = self.leaving
        times_s = stream.grid.times_s
        own = departing_dispersion(centre, stream.rate_per_s, times_s)
        longer = times_s / (times_s + settling_s(centre, stream.rate_per_s))
        changed = replace(
            stream, beyond=own + longer * stream.beyond, peak_per_s=centre_peak_per_s(centre)
        )
        return UnevenArrivals(leaving=changed)
