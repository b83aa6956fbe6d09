"""A system as theory sees it: rates, dispersion, queues, paths, who wants what."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from tidings.model import topology
from tidings.model.arrays import Floats, Ints
from tidings.model.laws import Exponential, Law
from tidings.model.record_tables import column
from tidings.model.routes import Routes
from tidings.model.system import System
from tidings.theory.delay.delays import Delays, from_law, stack
from tidings.theory.delay.grids import Grid
from tidings.theory.delay.paths import BrokerStages, Paths, paths
from tidings.theory.feature_names import ALONG, FAILING, FEATURES
from tidings.theory.network.audiences import Audience, Streams, audiences, streams
from tidings.theory.network.regimes import PathFeatures
from tidings.theory.peers.churn import ChurnModel
from tidings.theory.peers.connectivity import (
    entry_delay,
    on_scv_deviation,
    peer_delay,
    peer_load,
    periods,
)
from tidings.theory.queues.brokers import (
    Queues,
    Solved,
    broker_stages,
    poisson_sources,
    processing_stage,
)
from tidings.theory.queues.dispersion import Dispersion, dispersion
from tidings.theory.queues.flows import Flows, flows
from tidings.theory.queues.published import published_stages
from tidings.theory.repairs.components import Components, is_buffering
from tidings.theory.repairs.crowding import Crowding
from tidings.theory.repairs.failing import (
    Repairs,
    failing_parts,
    repair_times_s,
    repairs,
)
from tidings.theory.repairs.schemes import FailingPaths

_MANY_PATHS = 100_000  # brokers · publishers from which on grids of paths are thinner
_EVEN = 0.05  # |log c²| of publishers up to which they count as Poisson
_LEAST_SPARE = 0.02  # of a broker, left for what comes at once
_BEFORE, _BEHIND = 1e-3, 1.3  # of lifetimes, between which the influence of waits is worked out


@dataclass(frozen=True, kw_only=True)
class Network:
    """A system as theory sees it; each part worked out once, when it is first asked for."""

    system: System
    routes: Routes
    model: str = "law"
    faults: str = "exact"
    base: Network | None = None  # a like one, whose grid, dispersion and queues serve here, too
    solved: Solved = field(default_factory=dict)  # queues, by their streams and service
    carried: Flows | None = None  # rates, where they are not those that its subscribers ask for

    @cached_property
    def rates(self) -> Flows:
        """Events per second everywhere."""
        if self.carried is not None:
            return self.carried
        return flows(self.system, self.routes, self.churn.open_shares if self.churns else None)

    @cached_property
    def churn(self) -> ChurnModel:
        """Who is subscribed when."""
        return ChurnModel(system=self.system, routes=self.routes)

    @cached_property
    def churns(self) -> bool:
        """Whether subscriptions come and go."""
        return any(law is not None for law in column(self.system.subscribers, "stays").values)

    @cached_property
    def emitted(self) -> list[Law | None]:
        """Intervals of what each publisher hands to its link; None: taken as Poisson."""
        return [
            publisher.every if publisher.connectivity is None else None
            for publisher in self.system.publishers
        ]

    @cached_property
    def grid(self) -> Grid:
        """From far below the shortest random time to beyond the longest delay and lifetime."""
        if self.base is not None:
            return self.base.grid
        services = [law for laws in self.rates.services for law in laws if law.mean_s > 0.0]
        times = [law.mean_s for law in services]
        times += [arc.channel.delay.mean_s for arc in self.routes.arcs]
        times += [peer.link.delay.mean_s for peer in self.system.publishers]
        exits = column(self.system.subscribers, "link").values
        processing = column(self.system.subscribers, "processing").values
        times += [channel.delay.mean_s for channel in exits]
        times += [law.mean_s for law in processing if law is not None]
        lifetimes = [row.lifetime for row in self.routes.rows]
        lifetimes += list(column(self.system.subscribers, "lifetime").values)
        limits = [law.mean_s for law in lifetimes if law is not None]
        peers = [peer.connectivity for peer in self.system.publishers]
        peers += list(column(self.system.subscribers, "connectivity").values)
        for connectivity in peers:
            if connectivity is not None:
                on, off = periods(connectivity)
                handover_s = connectivity.service.mean_s if connectivity.service else off.mean_s
                times += [on.mean_s, off.mean_s * (1.0 + off.scv), handover_s]
        known = [time for time in times if time > 0.0] or [1.0]
        longest = max(known)
        for load, laws in zip(self.rates.loads, self.rates.services, strict=True):
            for law in laws:
                spare = max(1.0 - load, 0.01)
                longest = max(longest, law.mean_s * (2.0 + law.scv) / spare)
        if self.failing is not None and self.buffering:
            shortest, longest_wait = repair_times_s(self.failing)
            known.append(shortest)
            longest = max(longest, longest_wait)
        return Grid.spanning(0.01 * min(known), 30.0 * max(longest, min([longest, *limits])))

    @cached_property
    def failing(self) -> Components | None:
        """What fails, if anything does."""
        return failing_parts(self.system, self.faults)

    @property
    def buffering(self) -> bool:
        """Whether brokers keep events until what is down is repaired."""
        return is_buffering(self.system)

    @cached_property
    def queues(self) -> Queues:
        """How the queues of brokers are solved."""
        return Queues(
            grid=self.grid,
            rates=self.rates,
            curves=self.dispersion,
            emitted=self.emitted,
            poisson=poisson_sources(self.rates, self.emitted),
            solved=self.solved,
        )

    @cached_property
    def stages(self) -> BrokerStages:
        """What events meet at brokers."""
        if self.model != "law":
            return published_stages(self.grid, self.rates, self.emitted, self.model)
        stages = broker_stages(self.queues)
        if self.failing is None:
            return stages
        return replace(stages, exact=np.zeros_like(stages.exact))  # what is lost does not arrive

    @cached_property
    def mean_waits_s(self) -> Floats:
        """[broker]: what events wait there on average; infinite where it is overloaded."""
        rates, waiting = self.rates, self.stages.waiting
        each_s = np.where(waiting.survival > 0.0, waiting.shift_s + waiting.mean_s, np.inf)
        arriving = rates.source_rates > 0.0
        waited: Floats = np.zeros(len(self.system.brokers))
        np.add.at(waited, rates.into[arriving], each_s[arriving] * rates.source_rates[arriving])
        arrivals = rates.arrivals
        return np.divide(waited, arrivals, out=np.zeros_like(waited), where=arrivals > 0.0)

    @cached_property
    def dispersion(self) -> Dispersion:
        """How bursty streams are; that of the base serves for small changes."""
        if self.base is not None:
            return replace(self.base.dispersion, rates=self.rates)
        return dispersion(self.rates, self.emitted)

    @cached_property
    def paths(self) -> Paths:
        """Paths between brokers."""
        everybody = np.arange(len(self.system.publishers))
        every = paths(self.routes, self.stages, self.entry(everybody))
        return every.on(self._grid_of_paths)

    @cached_property
    def _grid_of_paths(self) -> Grid:
        """All times, or half of them where there are very many paths that nothing weighs."""
        many = len(self.system.brokers) * len(self.system.publishers) > _MANY_PATHS
        weighed = self.churns or self.failing is not None
        return self.grid.thinned() if many and not weighed else self.grid

    @cached_property
    def longer(self) -> Paths:
        """The same with all waits that are not exact a step longer, to see how much they matter.

        Only around lifetimes, where nothing else of distributions is asked for.
        """
        longer = self.paths.with_longer_waits()
        if self.churns or self.failing is not None:
            return longer
        laws = {row.lifetime for row in self.routes.rows}
        laws |= set(column(self.system.subscribers, "lifetime").values)
        ends_s = [law.quantile(np.array([0.005, 0.995])) for law in laws if law is not None]
        if not ends_s:
            return longer
        return longer.on(longer.grid.between(_BEFORE * np.min(ends_s), _BEHIND * np.max(ends_s)))

    @cached_property
    def repairs(self) -> Repairs | None:
        """What failures do to paths, if anything fails."""
        if self.failing is None:
            return None
        return repairs(self.system, self.routes, self.grid, self.failing, self.faults)

    @cached_property
    def followed(self) -> Sequence[Paths | FailingPaths]:
        """Paths as they are, and with all waits a step longer, both with what fails."""
        plain = (self.paths, self.longer)
        if self.repairs is None:
            return plain
        return [FailingPaths(paths=p, rates=self.rates, repairs=self.repairs) for p in plain]

    @cached_property
    def regimes(self) -> PathFeatures:
        """Features of paths."""
        if_all_there = flows(self.system, self.routes).loads if self.churns else self.rates.loads
        loads = if_all_there
        if self.repairs is not None and self.repairs.bypassing:
            crowding = Crowding(rates=self.rates, detouring=self.repairs.detouring)
            loads = np.maximum(loads, crowding.loads_at_worst())
        return PathFeatures(
            routes=self.routes,
            rates=self.rates,
            loads_at_worst=loads,
            loads_if_all_there=if_all_there,
            brokers=self.stages,
        )

    @cached_property
    def streams(self) -> Streams:
        """What is published, in groups."""
        return self.streams_by(
            [
                (
                    publisher.at,
                    publisher.link,
                    publisher.every,
                    publisher.rate_per_s,
                    publisher.connectivity,
                )
                for publisher in self.system.publishers
            ]
        )

    @cached_property
    def unevenness(self) -> float:
        """How far publishers are from Poisson: |log c²| of their intervals, the mean by events."""
        rates = np.array([each.rate_per_s for each in self.system.publishers])
        return float(self._uneven @ rates / rates.sum()) if rates.size else 0.0

    @cached_property
    def _uneven(self) -> Floats:
        """[publisher]: |log c²| of its intervals, nearly."""
        laws = [each.every for each in self.system.publishers]
        scvs = np.array([1.0 if law is None else law.scv for law in laws])
        return np.abs(np.log((scvs + 0.1) / 1.1))

    @cached_property
    def publishers_move(self) -> bool:
        """Whether any publisher is away at times."""
        return any(each.connectivity is not None for each in self.system.publishers)

    @cached_property
    def handed_over(self) -> float:
        """The share of time in which others wait behind what publishers hand over on their return.

        While a publisher was away its events waited; when they come at once, the slowest broker is
        busy with them for as long as the load of the others lets it. Shorter than a lifetime, that
        makes few events late.
        """
        services_s = [law.mean_s for laws in self.rates.services for law in laws]
        slowest_s, load = max(services_s, default=0.0), float(self.rates.loads.max(initial=0.0))
        spare = max(1.0 - load, _LEAST_SPARE)
        lifetimes_s = [row.lifetime.mean_s for row in self.routes.rows if row.lifetime is not None]
        shares = [0.0]
        for publisher in self.system.publishers:
            if (peer := publisher.connectivity) is None:
                continue
            on, off = periods(peer)
            handover_s = 0.0 if peer.service is None else peer.service.mean_s
            backlog = publisher.rate_per_s * off.mean_s
            behind_s = backlog * max(slowest_s - handover_s * spare, 0.0) / spare
            late = min(behind_s / min(lifetimes_s, default=np.inf), 1.0)
            shares.append(min(behind_s / (on.mean_s + off.mean_s), 1.0) * late)
        return max(shares)

    @cached_property
    def _publishers_stay_unevenly(self) -> bool:
        """Whether a publisher is connected for times that are not exponential."""
        moving = (each.connectivity for each in self.system.publishers)
        return any(each is not None and on_scv_deviation(each) > 0.0 for each in moving)

    @cached_property
    def displaced(self) -> bool:
        """Whether a publisher that is not Poisson sends its events over a random delay."""
        return any(
            not isinstance(law, Exponential) and publisher.link.delay.scv > 0.0
            for publisher, law in zip(self.system.publishers, self.emitted, strict=True)
            if law is not None
        )

    def of_peers(self, audience: Audience, rate_per_s: float) -> Floats:
        """Compute the features of an audience's regime that do not depend on its paths."""
        one = audience.example
        peer = one.connectivity
        mobile = self.publishers_move
        return np.array(
            [
                float(peer is not None),
                0.0 if peer is None else min(peer_load(peer, rate_per_s), 1.0),
                0.0 if peer is None else on_scv_deviation(peer),
                0.0 if peer is None else self.unevenness,
                float(mobile),
                self.handed_over,
                float((mobile or peer is not None) and self.failing is not None),
                float(one.stays is not None),
                float(self.churns),
                0.0 if one.processing is None else min(rate_per_s * one.processing.mean_s, 1.0),
                float(self.displaced),
                float(one.processing is not None and bool(np.any(self._uneven > _EVEN))),
                float(one.stays is not None and self.failing is not None and self.buffering),
                float(self._publishers_stay_unevenly),
            ]
        )

    def features(self, publishers: Ints, home: int, tree: int) -> Floats:
        """Compute what the error of theory depends on, of paths to a home broker.

        The array is [publisher, feature].
        """
        first = self.followed[0]
        rows = np.zeros((publishers.size, len(FEATURES)))
        rows[:, : len(ALONG)] = self.regimes.of_paths(publishers, home, tree)
        if isinstance(first, FailingPaths):
            failing = slice(len(ALONG), len(ALONG) + len(FAILING))
            rows[:, failing] = first.features(publishers, home, tree)
        return rows

    def streams_by(self, alike: Sequence[object]) -> Streams:
        """Group what is published by a key of publishers."""
        return streams(self.system, self.routes, alike, by_class=self.churns)

    @cached_property
    def streams_by_publisher(self) -> Streams:
        """What is published, by publisher."""
        return self.streams_by(range(len(self.system.publishers)))

    @cached_property
    def audiences(self) -> list[Audience]:
        """Subscribers in groups, by home, neighbouring homes after each other."""
        order = topology.preorder(self.routes.trees[0], self.routes.arcs, len(self.system.brokers))
        everybody = audiences(self.system, self.routes)
        return sorted(everybody, key=lambda each: (order[each.home], each.home))

    def by_home(self) -> Iterator[list[Audience]]:
        """Give the audiences of one home after the other."""
        for _, group in itertools.groupby(self.audiences, key=lambda each: each.home):
            yield list(group)

    @cached_property
    def _entries(self) -> tuple[Delays, Ints]:
        """Delays from publishers to their brokers, one for each kind, and [publisher] its kind."""
        kinds: dict[object, int] = {}
        delays: list[Delays] = []
        kind_of = np.empty(len(self.system.publishers), dtype=np.int64)
        for index, each in enumerate(self.system.publishers):
            key = (each.link, each.connectivity, each.connectivity and each.rate_per_s)
            if key not in kinds:
                kinds[key] = len(delays)
                delays.append(entry_delay(self.grid, each))
            kind_of[index] = kinds[key]
        return stack(delays), kind_of

    def entry(self, publishers: Ints) -> Delays:
        """Give delays from publishers to home brokers, [publisher]; one row where all are alike."""
        delays, kind_of = self._entries
        return delays if len(delays) == 1 else delays.take(kind_of[publishers])

    def exit(self, audience: Audience, rate_per_s: float) -> Delays:
        """Compute the delay from the home broker to the subscriber, its own queue included."""
        one = audience.example
        last = from_law(self.grid, one.link.delay, one.link.reliability)
        if one.connectivity is not None:
            last = peer_delay(self.grid, one.connectivity, rate_per_s).series(last)
        if one.processing is None:
            return last
        arriving = rate_per_s * float(last.survival[0])
        return last.series(processing_stage(self.grid, arriving, one.processing))
