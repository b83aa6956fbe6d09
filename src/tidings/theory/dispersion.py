r"""Mean waits in a network whose streams are not Poisson, by dispersion curves.

Every stream has a curve I(t) = Var N(t)/E N(t); what is carried is I − 1, which is 0 for a Poisson
stream and nearly everything does to it is linear. For an arc out of a broker, with λ its rate and q
its share of what leaves the broker:

1. what goes over the arc, as it *arrives* at the broker, by origin: each source is thinned (p I +
   1 − p) and the sources count by their rates: A;
2. each station lets it through in two ways: as part of all that departs, G = w(t) A + (1 − w(t))
   I_S(ρt) (Whitt and You; I_S is the dispersion of its services in a row), and as events delayed by
   sojourns of their own, H (``displacement``). What leaves has q G + (1 − q) H;
3. what is copied to other arcs too comes back the less (``echoes``), and the arc's own random
   delays displace it once more.

At a broker the curves of all that arrives count by their rates; where traffic goes both ways
between brokers, what that does to the streams' independence is added (``echoes``). Spitzer's
identity then gives the moments of the wait (``workload``), counts behind regular servers being
skewed (``departures``) and in an order (``direction``). Sojourns need waits and waits need curves,
so this repeats until the waits stand still. Where every curve is exactly 0, arrivals are Poisson
and nothing is approximated; where one stream of independent intervals is all that arrives, no curve
is needed (``lone_streams``).
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import linalg

from tidings.model.behaviour import Connectivity
from tidings.model.laws import Deterministic, Exponential, Law, unshifted
from tidings.model.routes import Routes
from tidings.model.system import System
from tidings.theory import queues
from tidings.theory.burstiness import mean_wait_gg1_s
from tidings.theory.dependence import Dependence
from tidings.theory.flows import Flows
from tidings.theory.lone_streams import KnownWait, LoneStream
from tidings.theory.mobility.completion import completion
from tidings.theory.mobility.publishing import (
    emitted_dispersion,
    mobile_centre,
    peak_per_s,
    settling_s,
)
from tidings.theory.splitting import Splits, splits
from tidings.theory.stations import Curves, Station, Third
from tidings.theory.time_grid import TimeGrid, time_grid
from tidings.theory.workload import WaitMoments

Floats = NDArray[np.float64]

_MOST_PASSES = 12
_SETTLED = 1e-3  # change of a wait, in mean services, from which on it stands still
_SHORT = 3e-3  # of the shortest mean service: where the grid begins
_LONG_INTERVALS, _LONG_WAITS = 30.0, 100.0  # where it ends
_LONG_ABSENCES = 1e3
_BUSY, _NEARLY_ALL, _UNLIKE = 0.5, 0.9, 0.01  # loads, shares and c² of brokers in a line
_LEAST_SPARE = 1e-2  # 1 − ρ below which the grid does not grow further


KnownBy = Literal["poisson", "alone", "curves"]  # "alone": one publisher feeds it (lone_streams)


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """Of every broker's stations: the mean wait in seconds, E[W²], and how they are known.

    Where arrivals are Poisson the whole law is known, and E[W²] is left out (NaN).
    """

    means_s: tuple[tuple[float, ...], ...]
    squares_s2: tuple[tuple[float, ...], ...]
    known_by: tuple[tuple[KnownBy, ...], ...]
    alone: tuple[tuple[KnownWait, ...], ...] = ()  # all that is known; laws only where "alone"
    in_line: tuple[bool, ...] = ()  # brokers in whose waits those before matter
    settled: bool = True  # whether curves and waits agreed with each other in the end
    streams: Streams | None = None  # what flows where; None: Poisson streams everywhere


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaving:
    """What leaves a broker for somebody: how much, its I − 1 on a grid, how much at most."""

    rate_per_s: float
    beyond: Floats
    peak_per_s: float
    grid: TimeGrid


@dataclass(frozen=True, slots=True, kw_only=True)
class Streams:
    """The streams of a network whose waits stand still."""

    network: _Network
    beyond: Floats  # [source, time]
    stations: list[list[Station]]

    def leaving(self, broker: int, brought: Floats) -> Leaving:
        """Those of all sources' events, so many a second of each [source], that leave a broker."""
        network = self.network
        here = np.where(network.split.into == broker, brought, 0.0)
        rate = float(here.sum())
        used = here > 0.0
        shares = here[used] / network.split.rates[used]
        curve: Floats = (here[used] * shares / max(rate, 1e-300)) @ self.beyond[used]
        part = np.array([min(rate / max(float(network.flows.arrivals[broker]), 1e-300), 1.0)])
        peak = float(shares @ network.peaks[used])
        for station in self.stations[broker]:
            curve = station.departing(curve[None, :], part)[0]
            peak = min(peak, 1.0 / station.service.mean_s)
        return Leaving(
            rate_per_s=rate * float(network.flows.passes[broker]),
            beyond=curve,
            peak_per_s=peak if network.mobile else math.inf,
            grid=network.grid,
        )


def waits(system: System, routes: Routes, flows: Flows) -> Waits:
    """The mean wait at every station, in seconds; infinite where it is overloaded."""
    network = _Network(system=system, routes=routes, flows=flows)
    if _all_exponential(system, flows) and not network.dependence.copies.nnz:
        poisson: KnownBy = "poisson"
        return Waits(
            means_s=tuple(
                tuple(queues.mean_wait_s(float(rate), law) for law in laws)
                for rate, laws in zip(flows.arrivals, flows.services, strict=True)
            ),
            squares_s2=tuple((math.nan,) * len(laws) for laws in flows.services),
            known_by=tuple((poisson,) * len(laws) for laws in flows.services),
        )
    return network.settle()


def _all_exponential(system: System, flows: Flows) -> bool:
    if any(publisher.connectivity is not None for publisher in system.publishers):
        return False
    intervals = (publisher.every for publisher in system.publishers)
    services = (law for laws in flows.services for law in laws if law.mean_s > 0)
    return all(isinstance(law, Exponential) for law in (*intervals, *services))


@dataclass(frozen=True, kw_only=True)
class _Network:
    """The streams of one system, and what is worked out of them once."""

    system: System
    routes: Routes
    flows: Flows

    @cached_property
    def split(self) -> Splits:
        return splits(self.system, self.routes, self.flows)

    @cached_property
    def memory(self) -> sparse.csr_array:
        return self.split.memory()

    @cached_property
    def arriving(self) -> sparse.csr_array:
        return self.split.arriving_shares(len(self.system.brokers))

    @cached_property
    def grid(self) -> TimeGrid:
        """From far below the shortest service to far above intervals and times to settle."""
        services = [law.mean_s for laws in self.flows.services for law in laws if law.mean_s > 0]
        intervals = [law.mean_s * (1.0 + law.scv) for law in self.intervals]
        longest_s = _LONG_INTERVALS * max(intervals)
        for publisher in self.system.publishers:
            centre = mobile_centre(publisher)
            if centre is not None:
                settled_s = settling_s(centre, publisher.rate_per_s)
                longest_s = max(longest_s, min(settled_s, _LONG_ABSENCES * centre.off.mean_s))
        for rate, laws in zip(self.flows.arrivals, self.flows.services, strict=True):
            for law in laws:
                spare = max(1.0 - rate * law.mean_s, _LEAST_SPARE)
                longest_s = max(longest_s, _LONG_WAITS * law.mean_s / spare**2)
        shortest_s = _SHORT * min(services, default=min(intervals))
        return time_grid(shortest_s, longest_s)

    @cached_property
    def intervals(self) -> list[Law]:
        return [each.every for each in self.system.publishers if each.every is not None]

    @cached_property
    def curves(self) -> Curves:
        """What is known of laws on the grid, each worked out once."""
        return Curves(grid=self.grid)

    @cached_property
    def dependence(self) -> Dependence:
        """What its streams have to do with each other."""
        delays_s = np.array([arc.channel.delay.mean_s for arc in self.routes.arcs])
        return Dependence(
            split=self.split,
            arriving=self.arriving,
            round_trips_s=delays_s + delays_s[np.arange(delays_s.size) ^ 1],
            grid=self.grid,
        )

    def emitted(self, index: int) -> Floats:
        """I − 1 of what a publisher hands to its link."""
        publisher = self.system.publishers[index]
        if publisher.connectivity is None:
            return self.curves.renewal(self.intervals[index])
        key = (publisher.connectivity, publisher.every)
        if key not in self._known_emitted:
            self._known_emitted[key] = emitted_dispersion(publisher, self.grid)
        return self._known_emitted[key]

    @cached_property
    def _known_emitted(self) -> dict[tuple[Connectivity, Law | None], Floats]:
        """Of publishers that come and go alike, once."""
        return {}

    @cached_property
    def mobile(self) -> bool:
        """Whether any publisher comes and goes: only then are bursts known to have a limit."""
        return any(each.connectivity is not None for each in self.system.publishers)

    @cached_property
    def peaks(self) -> Floats:
        """[source]: events per second at most while many come; infinite: bursts have no limit."""
        found = np.full(self.split.rates.size, np.inf)
        for index, publisher in enumerate(self.system.publishers):
            found[index] = publisher.link.reliability * peak_per_s(publisher)
        slowest_s = [max((law.mean_s for law in laws), default=0.0) for laws in self.flows.services]
        fastest = [1.0 / mean_s if mean_s > 0.0 else math.inf for mean_s in slowest_s]
        handed = self.split.handed
        for arc in np.concatenate([*self.levels, np.empty(0, dtype=np.int64)]):
            row = slice(handed.indptr[arc], handed.indptr[arc + 1])
            sources = handed.indices[row]
            through = float(handed.data[row] / self.split.rates[sources] @ found[sources])
            place = self.split.publishers + int(arc)
            found[place] = min(through, fastest[self.split.out_of[arc]])
        return found

    @cached_property
    def arriving_peaks(self) -> Floats:
        """[broker]: events per second that can arrive at most while many come."""
        found: Floats = np.zeros(len(self.system.brokers))
        used = self.split.rates > 0.0
        np.add.at(found, self.split.into[used], self.peaks[used])
        return found

    @cached_property
    def levels(self) -> list[NDArray[np.int64]]:
        """Arcs in an order in which what feeds an arc comes before it (where there is one)."""
        feeds = self.memory[:, self.split.publishers :].tocsr()
        waiting = np.diff(feeds.indptr).astype(np.int64)
        fed_by = feeds.tocsc()
        found = []
        ready = np.flatnonzero(waiting == 0)
        while ready.size:
            found.append(ready)
            waiting[ready] = -1
            fed = [fed_by.indices[fed_by.indptr[a] : fed_by.indptr[a + 1]] for a in ready]
            np.subtract.at(waiting, np.concatenate(fed), 1)
            ready = np.flatnonzero(waiting == 0)
        circular = np.flatnonzero(waiting > 0)  # only where trees differ; passes settle it
        return [*found, *([circular] if circular.size else [])]

    @cached_property
    def limits(self) -> Floats:
        """[source]: I − 1 for t → ∞; departures are then as arrivals, split by origin."""
        found = np.zeros(self.split.rates.size)
        for index, publisher in enumerate(self.system.publishers):
            scv = self.intervals[index].scv
            centre = mobile_centre(publisher)
            if centre is not None and centre.is_overloaded(publisher.rate_per_s):
                scv = completion(centre).scv
            found[index] = publisher.link.reliability * (scv - 1.0)
        count = self.split.publishers
        full = self.flows.overloaded[self.split.out_of]
        known = np.where(full, self._overloaded_limits(), self.memory[:, :count] @ found[:count])
        between = sparse.diags_array(np.where(full, 0.0, 1.0)) @ self.memory[:, count:]
        matrix = (sparse.eye_array(known.size) - between).tocsc()
        if known.size:
            found[count:] = linalg.spsolve(matrix, known)
        return found

    def _overloaded_limits(self) -> Floats:
        slowest = [
            max(laws, key=lambda law: law.mean_s, default=None) for laws in self.flows.services
        ]
        beyond = np.array([0.0 if law is None else law.scv - 1.0 for law in slowest])
        found: Floats = self.split.arc_shares * beyond[self.split.out_of]
        return found

    @cached_property
    def in_line(self) -> tuple[bool, ...]:
        """[broker]: whether nearly all of its traffic is nearly all that leaves another busy one,
        or one of its stations another, and publishers are not as uneven as services: what waits
        long there waits less here.
        """
        found = np.array([self._has_line(broker) for broker in range(len(self.system.brokers))])
        busy = (self.flows.loads >= _BUSY) & ~self.flows.overloaded
        for arc, there in enumerate(self.split.out_of.tolist()):
            source = self.split.publishers + arc
            here = int(self.split.into[source])
            share = min(self.split.arc_shares[arc], float(self.arriving[here, source]))
            if share < _NEARLY_ALL or not (busy[there] and busy[here]):
                continue
            served = max(law.scv for law in self.flows.services[there]) - 1.0
            found[here] |= abs(served - self.limits[source]) > _UNLIKE
        return tuple(found.tolist())

    def _has_line(self, broker: int) -> bool:
        """Whether two of a broker's stations are busy, the first not as uneven as what arrives."""
        rate = float(self.flows.arrivals[broker])
        busy = [law for law in self.flows.services[broker] if rate * law.mean_s >= _BUSY]
        arriving = float((self.arriving @ self.limits)[broker])
        return any(abs(law.scv - 1.0 - arriving) > _UNLIKE for law in busy[:-1])

    def settle(self) -> Waits:
        """Curves and waits in turn, until the waits stand still."""
        beyond = np.zeros((self.split.rates.size, self.grid.points))
        for index, publisher in enumerate(self.system.publishers):
            own = publisher.link.reliability * self.emitted(index)
            beyond[index] = self.curves.jittered(own[None, :], publisher.link.delay)[0]
        means_s = self._first_waits()
        for _ in range(_MOST_PASSES):
            stations = self._stations(means_s)
            self._carry(beyond, stations)
            before, found = means_s, self._waits(beyond, stations)
            means_s = found.means_s
            settled = _stands_still(before, means_s, self.flows)
            if settled:
                break
        streams = Streams(network=self, beyond=beyond, stations=stations)
        return replace(found, settled=settled, streams=streams)

    def _first_waits(self) -> tuple[tuple[float, ...], ...]:
        arriving = self.arriving @ self.limits
        return tuple(
            tuple(mean_wait_gg1_s(float(rate), law, max(1.0 + float(own), 0.0)) for law in laws)
            for own, rate, laws in zip(
                arriving, self.flows.arrivals, self.flows.services, strict=True
            )
        )

    def _stations(self, means_s: tuple[tuple[float, ...], ...]) -> list[list[Station]]:
        arriving = self.arriving @ self.limits
        return [
            [
                Station(
                    service=law,
                    rate_per_s=float(self.flows.arrivals[broker]),
                    wait_s=wait_s,
                    limit=float(arriving[broker]),
                    peak_per_s=float(self.arriving_peaks[broker]) if self.mobile else math.inf,
                    curves=self.curves,
                )
                for law, wait_s in zip(self.flows.services[broker], means, strict=True)
                if law.mean_s > 0
            ]
            for broker, means in enumerate(means_s)
        ]

    def _carry(self, beyond: Floats, stations: list[list[Station]]) -> None:
        """One pass over all arcs: their curves from those of what feeds them."""
        count = self.split.publishers
        shares = self.split.arc_shares
        copies = None if self.mobile else self.dependence.echoes_of_copies(stations)
        for level in self.levels:
            passing = self.memory[level] @ beyond
            by_broker = defaultdict(list)
            for position, arc in enumerate(level):
                by_broker[int(self.split.out_of[arc])].append(position)
            for broker, positions in by_broker.items():
                curves = passing[positions]
                for station in stations[broker]:
                    curves = station.departing(curves, shares[level[positions]])
                passing[positions] = curves
            if copies is not None:
                passing += (1.0 + passing) * copies[level]
            for position, arc in enumerate(level):
                channel = self.routes.arcs[arc].channel
                one = passing[position : position + 1]
                beyond[count + arc] = self.curves.jittered(one, channel.delay)[0]

    def _waits(self, beyond: Floats, stations: list[list[Station]]) -> Waits:
        arriving = self.arriving @ beyond
        thirds = self.dependence.thirds(arriving, stations)
        if not self.mobile:
            arriving = arriving + self.dependence.echoes(arriving, beyond, stations)
        found = [
            self._waits_at(broker, arriving[broker], stations[broker], thirds[broker])
            for broker in range(len(stations))
        ]
        return Waits(
            means_s=tuple(tuple(each.moments.mean_s for each, _ in own) for own in found),
            squares_s2=tuple(tuple(each.moments.square_s2 for each, _ in own) for own in found),
            known_by=tuple(tuple(by for _, by in own) for own in found),
            alone=tuple(tuple(each for each, _ in own) for own in found),
            in_line=self.in_line,
        )

    def _waits_at(
        self, broker: int, curve: Floats, stations: list[Station], third: Third
    ) -> list[tuple[KnownWait, KnownBy]]:
        """The waits at one broker's stations, from the curve of what arrives at the first."""
        working = iter(stations)
        lone = self.lone_stream(broker)
        found: list[tuple[KnownWait, KnownBy]] = []
        for law in self.flows.services[broker]:
            by: KnownBy = "curves" if np.any(curve) else "poisson"
            if law.mean_s == 0:
                found.append((KnownWait(WaitMoments(0.0, 0.0)), by))
                continue
            station = next(working)
            alone = station.wait_alone(lone) if lone is not None and by == "curves" else None
            if alone is None:
                found.append((KnownWait(station.wait(curve, third)), by))
            else:
                found.append((alone, "alone"))
            third = Third(skew=station.skew(curve), orders=(station.order,))
            curve = station.departing(curve[None, :], np.ones(1))[0]
            lone = None
        return found

    def lone_stream(self, broker: int) -> LoneStream | None:
        """The stream of independent intervals that alone feeds a broker, delayed all alike.

        A publisher's, or all that an overloaded broker can serve.
        """
        begin, end = self.arriving.indptr[broker : broker + 2]
        feeding = self.arriving.indices[begin:end][self.arriving.data[begin:end] > 0]
        if feeding.size != 1:
            return None
        source, arc = int(feeding[0]), int(feeding[0]) - self.split.publishers
        if arc < 0:
            publisher = self.system.publishers[source]
            if publisher.connectivity is not None:
                return None
            channel, interval = publisher.link, self.intervals[source]
        else:
            channel, there = self.routes.arcs[arc].channel, int(self.split.out_of[arc])
            services = self.flows.services[there]
            if not self.flows.overloaded[there] or len(services) != 1:
                return None
            if self.split.arc_shares[arc] < channel.reliability - 1e-9:
                return None
            interval = services[0]
        if not isinstance(unshifted(channel.delay)[0], Deterministic):
            return None
        return LoneStream(interval=interval, kept=channel.reliability)


def _stands_still(
    before: tuple[tuple[float, ...], ...], after: tuple[tuple[float, ...], ...], flows: Flows
) -> bool:
    return all(
        one == other or abs(one - other) <= _SETTLED * (law.mean_s + 0.1 * other)
        for ones, others, laws in zip(before, after, flows.services, strict=True)
        for one, other, law in zip(ones, others, laws, strict=True)
    )
