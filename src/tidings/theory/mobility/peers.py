"""The ways between peers and their brokers: ON/OFF queues, links, a subscriber's own queue.

A publisher that comes and goes keeps its events in an ON/OFF centre before its link; a subscriber
that does has one at its home broker, then its link, then its own queue (``processing``). Each
centre is loaded with all that goes through it. Peers without queues of their own have only a link.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tidings.errors import UnsupportedError
from tidings.model.behaviour import Channel, Connectivity
from tidings.model.features import used_features
from tidings.model.laws import Exponential, Law
from tidings.model.record_tables import Coded, column
from tidings.model.system import Publisher, Subscriber
from tidings.theory.burstiness import departing_scv, thinned_scv
from tidings.theory.dispersion import Leaving
from tidings.theory.mobility.arrivals import (
    Arrivals,
    PoissonArrivals,
    UnevenArrivals,
    VariableArrivals,
)
from tidings.theory.mobility.buffers import buffered_stage
from tidings.theory.mobility.bursts import bursting
from tidings.theory.mobility.centre import OnOff
from tidings.theory.mobility.completion import absence_stage
from tidings.theory.mobility.periods import more_regular
from tidings.theory.mobility.publishing import centre_of
from tidings.theory.mobility.sojourn import (
    OVERLOADED,
    fitted_sojourn_stage,
    sojourn_stage,
)
from tidings.theory.queues import FULL_LOAD, fitted_law, offered_load, whole_law
from tidings.theory.renewal import averaged_dispersion
from tidings.theory.splitting import brought_by_class, brought_if_open
from tidings.theory.stages import (
    NOTHING,
    Floats,
    Stage,
    channel_stage,
    in_series,
    lossless,
)
from tidings.theory.stated_errors import Stated
from tidings.theory.time_grid import time_grid
from tidings.theory.traffic import Traffic
from tidings.theory.ways import Access

Bools = NDArray[np.bool_]
# What leaves a broker for a subscriber who wants these classes.
Source = Callable[[int, Bools], Arrivals]

MEMORYLESS = "times ON of a peer taken as exponential where its arrivals are not Poisson"
MOMENTS = "periods or services of a peer without phases taken by two moments"
REGULAR = Stated(
    "periods of a peer more regular than phases followed on a lattice of time: mean responses are "
    "within 2 %, shares on time within .015",
    0.015,
)
BUSY = Stated(
    "a peer's load is above .5 and its events come in bursts: shares on time may be too high, by "
    ".02 at a load of .5, .06 at .8",
    0.06,
)
NEARLY_FULL = Stated(
    "a peer's load is above .8 and its events come in bursts: shares on time may be too high by "
    "more than .06, how much more is not known",
    None,
)
AMONG_FAILURES = Stated(
    "what reaches a subscriber that comes and goes taken as coming all the time, where brokers or "
    "links fail and its load is above .5: its share on time may be too low, by .08 at a load of .7",
    0.08,
)
AMONG_GUESTS = Stated(
    "what reaches a subscriber that comes and goes taken as coming all the time, where "
    "subscriptions come and go and its load is above .5: its share on time may be too low, by .11 "
    "at a load of .7",
    0.11,
)
_BUSY_FROM, _NEARLY_FULL_FROM = 0.5, 0.8  # of load
BUFFERED = "arrivals at a peer with a bounded buffer taken as Poisson"
BEHIND_BUFFER = "what a subscriber with a bounded buffer takes in taken as Poisson"
AFTER = (
    "what mobile peers hand on taken as a stream of its exact dispersion that never exceeds the "
    "speed of handing over"
)


@dataclass(frozen=True, kw_only=True)
class Accesses:
    """The way of each publisher and subscriber to or from its broker: Channels or Accesses."""

    publishers: tuple[Channel | Access, ...]  # by position
    subscribers: Coded
    warnings: tuple[str, ...] = ()
    assumes: tuple[str, ...] = ()


def accesses(traffic: Traffic, model: str) -> Accesses:
    """The ways between peers and brokers of a system, under a queue model."""
    maker = _Maker(traffic=traffic, model=model)
    everyone = traffic.system.publishers
    apart = bursting(everyone) if model == "law" else frozenset()
    publishers = tuple(
        maker.publishing(each, index if index in apart else None)
        for index, each in enumerate(everyone)
    )
    subscribers = maker.subscribing()
    return Accesses(
        publishers=publishers,
        subscribers=subscribers,
        warnings=tuple(maker.warnings),
        assumes=tuple(dict.fromkeys(maker.assumes)),
    )


@dataclass(frozen=True, kw_only=True)
class _Maker:
    traffic: Traffic
    model: str
    warnings: list[str] = field(default_factory=list)
    assumes: list[str] = field(default_factory=list)
    _known: dict[object, Access] = field(default_factory=dict)
    _sources: list[Source] = field(default_factory=list)

    def publishing(self, publisher: Publisher, apart: int | None) -> Channel | Access:
        """A publisher's centre and its link; just the link if it is always connected.

        ``apart`` is its position if its bursts are told from those of others.
        """
        if publisher.connectivity is None:
            return publisher.link
        key = (publisher.connectivity, publisher.every, publisher.link, apart)
        if key not in self._known:
            arrivals = self._published(publisher)
            where = f"publisher '{publisher.name}'"
            waiting = self._centre(publisher.connectivity, arrivals, where)
            stage = in_series(waiting, channel_stage(publisher.link))
            self._known[key] = Access(stage=stage, publisher=apart)
        return self._known[key]

    def subscribing(self) -> Coded:
        """Each subscriber's centre, link and own queue, once for every kind; else just the link.

        Subscribers are of one kind if they have all of that in common, and home and filter.
        """
        everyone, routes = self.traffic.system.subscribers, self.traffic.routes
        links = column(everyone, "link")
        own = [column(everyone, field) for field in ("connectivity", "processing")]
        queued = np.unique(np.concatenate([each.where(_given) for each in own]))
        if queued.size == 0:
            return links
        homes, filters = routes.home_of_subscriber, routes.filter_of_subscriber
        codes = (homes, filters, links.codes, *(each.codes for each in own))
        kinds = np.stack([each[queued] for each in codes])
        _, first, kind_of = np.unique(kinds, axis=1, return_index=True, return_inverse=True)
        made = {index: self._access(int(queued[index])) for index in np.sort(first)}
        found = links.codes.copy()
        found[queued] = len(links.values) + kind_of.ravel()
        return Coded(values=(*links.values, *(made[index] for index in first)), codes=found)

    def _access(self, index: int) -> Access:
        routes = self.traffic.routes
        home = int(routes.home_of_subscriber[index])
        arrivals = self._source()(home, routes.wanted_by(index))
        subscriber = self.traffic.system.subscribers[index]
        return Access(stage=self._received(subscriber, arrivals), told=_told(subscriber))

    def _received(self, subscriber: Subscriber, arrivals: Arrivals) -> Stage:
        where = f"subscriber '{subscriber.name}'"
        stage = NOTHING
        if subscriber.connectivity is not None:
            stage = self._centre(subscriber.connectivity, arrivals, where)
            if centre_of(subscriber.connectivity).load(arrivals.rate_per_s) > _BUSY_FROM:
                self.assumes.extend(self._unsteady)
            if stage.survives == 0.0:
                return stage
            arrivals = self._after(subscriber.connectivity, arrivals, stage)
        arrivals = arrivals.thinned(subscriber.link.reliability)
        stage = in_series(stage, channel_stage(subscriber.link))
        if subscriber.processing is None:
            return stage
        return in_series(stage, self._own_queue(subscriber.processing, arrivals, where))

    @cached_property
    def _unsteady(self) -> tuple[Stated, ...]:
        """What makes events come to busy subscribers at some times more than at others."""
        used = used_features(self.traffic.system)
        among = {"failures": AMONG_FAILURES, "subscription churn": AMONG_GUESTS}
        return tuple(said for name, said in among.items() if name in used)

    def _after(self, connectivity: Connectivity, arrivals: Arrivals, centre: Stage) -> Arrivals:
        """What a subscriber's centre hands on to its link."""
        if connectivity.buffer is None:
            return arrivals.after(centre_of(connectivity)).thinned(centre.survives)
        # A full buffer cuts bursts short; what comes of them behind it is not worked out.
        self.assumes.append(BEHIND_BUFFER)
        return PoissonArrivals(rate_per_s=arrivals.rate_per_s * centre.survives)

    def _centre(self, connectivity: Connectivity, arrivals: Arrivals, where: str) -> Stage:
        centre, rate_per_s = centre_of(connectivity), arrivals.rate_per_s
        if connectivity.buffer is not None:
            self._require_exponential(centre, where)
            self.assumes.append(BUFFERED)
            return buffered_stage(centre, rate_per_s, connectivity.buffer)
        if centre.is_overloaded(rate_per_s):
            self.warnings.append(
                f"{where} is offered more events than it can take in while connected: "
                f"{rate_per_s:.4g}/s, and from {centre.most_per_s:.4g}/s on it never catches up; "
                "its events count as lost"
            )
            return OVERLOADED
        memoryless = isinstance(centre.on, Exponential)
        if arrivals.poisson:
            if not memoryless:
                self.assumes.append(REGULAR if more_regular(centre) else MOMENTS)
            return sojourn_stage(centre, rate_per_s)
        self.assumes.extend((AFTER,) if memoryless else (AFTER, MEMORYLESS))
        load = centre.load(rate_per_s)
        self.assumes.extend((BUSY,) if load > _BUSY_FROM else ())
        self.assumes.extend((NEARLY_FULL,) if load > _NEARLY_FULL_FROM else ())
        return fitted_sojourn_stage(centre, arrivals.completion_wait(centre))

    def _require_exponential(self, centre: OnOff, where: str) -> None:
        if not centre.all_exponential:
            raise UnsupportedError(
                f"{where} has a bounded buffer, which is predicted only where its service, ON and "
                "OFF are exponential; give them as {exponential: ...}, or leave the buffer out"
            )

    def _own_queue(self, service: Law, arrivals: Arrivals, where: str) -> Stage:
        if service.mean_s == 0.0:
            return NOTHING
        load = offered_load(arrivals.rate_per_s, service)
        if load >= FULL_LOAD:
            self.warnings.append(
                f"{where} is offered {load:.3g} s of work per second by the events it takes in; "
                "they count as lost"
            )
            return OVERLOADED
        if arrivals.poisson:
            return whole_law(arrivals.rate_per_s, service)
        return fitted_law(service, *arrivals.wait(service))

    def _published(self, publisher: Publisher) -> Arrivals:
        """The events of a publisher as its own centre gets them."""
        assert publisher.every is not None  # rates by time of day are refused before
        rate_per_s = publisher.rate_per_s
        if self.model == "mm1" or isinstance(publisher.every, Exponential):
            return PoissonArrivals(rate_per_s=rate_per_s)
        if self.model == "gg1":
            return VariableArrivals(rate_per_s=rate_per_s, scv=publisher.every.scv)
        assert publisher.connectivity is not None
        centre = centre_of(publisher.connectivity)
        longest_s = 1e3 * max(publisher.every.mean_s, centre.on.mean_s + centre.off.mean_s)
        grid = time_grid(1e-3 * (centre.demand_s or publisher.every.mean_s), longest_s)
        return UnevenArrivals(
            leaving=Leaving(
                rate_per_s=rate_per_s,
                beyond=averaged_dispersion(publisher.every, grid.times_s, grid.step) - 1.0,
                peak_per_s=math.inf,
                grid=grid,
            )
        )

    def _source(self) -> Source:
        """What leaves brokers, worked out when the first subscriber asks."""
        if not self._sources:
            build = {"mm1": self._poisson, "gg1": self._variable, "law": self._uneven}
            self._sources.append(build[self.model]())
        return self._sources[0]

    def _poisson(self) -> Source:
        flows = self.traffic.flows
        brought = self._brought()
        into = self._targets()

        def leaving(broker: int, wanted: Bools) -> Arrivals:
            rate = float(brought[into == broker][:, wanted].sum())
            return PoissonArrivals(rate_per_s=rate * float(flows.passes[broker]))

        return leaving

    def _variable(self) -> Source:
        scvs, flows = self.traffic.scvs, self.traffic.flows
        plain = self._poisson()

        def leaving(broker: int, wanted: Bools) -> Arrivals:
            rate_per_s = plain(broker, wanted).rate_per_s
            total_per_s = float(flows.arrivals[broker] * flows.passes[broker])
            scv = 1.0
            for own, service in zip(scvs[broker], flows.services[broker], strict=True):
                load = offered_load(float(flows.arrivals[broker]), service)
                scv = departing_scv(own, service.scv, load)
            share = rate_per_s / total_per_s if total_per_s > 0.0 else 0.0
            return VariableArrivals(rate_per_s=rate_per_s, scv=thinned_scv(scv, min(share, 1.0)))

        return leaving

    def _uneven(self) -> Source:
        streams = self.traffic.waits.streams
        if streams is None:
            return self._poisson_then_bursts()
        brought = self._brought()

        def leaving(broker: int, wanted: Bools) -> Arrivals:
            rates = np.minimum(brought[:, wanted].sum(axis=1), streams.network.split.rates)
            found = streams.leaving(broker, rates)
            return UnevenArrivals(leaving=found)

        return leaving

    def _poisson_then_bursts(self) -> Source:
        """Poisson streams everywhere, on a grid that holds what centres make of them."""
        plain = self._poisson()
        services = self.traffic.flows.services
        times_s = [law.mean_s for laws in services for law in laws if law.mean_s > 0]
        longest_s = 1.0
        everyone = self.traffic.system.subscribers
        for connectivity in filter(None, column(everyone, "connectivity").values):
            centre = centre_of(connectivity)
            times_s += [centre.service.mean_s or centre.off.mean_s]
            longest_s = max(longest_s, centre.on.mean_s + centre.off.mean_s)
        times_s += [law.mean_s for law in filter(None, column(everyone, "processing").values)]
        positive = [each_s for each_s in times_s if each_s > 0.0]
        grid = time_grid(3e-3 * min(positive, default=1.0), 3e3 * longest_s)

        def leaving(broker: int, wanted: Bools) -> Arrivals:
            rate_per_s = plain(broker, wanted).rate_per_s
            nothing = np.zeros(grid.points)
            return UnevenArrivals(
                leaving=Leaving(
                    rate_per_s=rate_per_s, beyond=nothing, peak_per_s=rate_per_s, grid=grid
                )
            )

        return leaving

    def _brought(self) -> Floats:
        """What every source brings of each class while a subscriber is there to want it."""
        traffic = self.traffic
        brought = brought_by_class(traffic.system, traffic.routes, traffic.flows)
        return brought_if_open(traffic.flows, brought)

    def _targets(self) -> NDArray[np.int64]:
        routes = self.traffic.routes
        targets = np.array([arc.target for arc in routes.arcs], dtype=np.int64)
        return np.concatenate([routes.home_of_publisher, targets])


def _told(subscriber: Subscriber) -> Stage:
    """What a subscriber tells its broker waits until it is connected, and crosses its link."""
    link = lossless(channel_stage(subscriber.link))
    if subscriber.connectivity is None:
        return link
    return in_series(absence_stage(centre_of(subscriber.connectivity)), link)


def _given(value: object) -> bool:
    return value is not None
