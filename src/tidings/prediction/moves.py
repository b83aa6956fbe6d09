"""What moving a parameter by its standard error makes of rates, queues, links and entries.

Of a broker's queue one change is worked out, that of slower services; what more events make of it
follows, since a queue of faster streams is one of slower services on another scale of time: with
arrivals Λ and services s, ∂ log W/∂ log Λ = ∂ log W/∂ log s + ∂ log W/∂ log t. What a stream that
is burstier than the others does beyond its load is taken from W ∝ ρ/(1 − ρ) · (c² + c_s²).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tidings.model import topology
from tidings.model.arrays import Complexes, Floats, Ints
from tidings.model.behaviour import Failure
from tidings.model.loads import FULL_LOAD
from tidings.model.record_tables import names
from tidings.model.system import System
from tidings.model.uncertainty import Uncertain, failure_of, with_values
from tidings.prediction.delays import Delays, from_law, from_transform, tabulated
from tidings.prediction.flows import offered_to_arcs
from tidings.prediction.grids import Grid
from tidings.prediction.influence import Change, Changes, StageOrder, change, stage_order
from tidings.prediction.network import Network, entry_delay
from tidings.prediction.paths import Paths
from tidings.prediction.repairs.components import process_places
from tidings.prediction.repairs.failing import acknowledged

_LEAST_STEP, _OF_SPARE = 1e-3, 0.25  # of a service time; of what is free of a broker's time


@dataclass(frozen=True, kw_only=True)
class Moves:
    """One move for each parameter, by a standard error."""

    network: Network
    paths: Paths  # of the network, at the times that matter
    parameters: Sequence[Uncertain]

    @cached_property
    def systems(self) -> list[System]:
        """[parameter]: the system with that parameter moved."""
        return [with_values(self.network.system, {one: one.moved}) for one in self.parameters]

    @cached_property
    def of_sources(self) -> Floats:
        """[source, parameter]: by how much what it brings changes, in events per second."""
        network = self.network
        publisher_of, brought = self._brought
        entering = network.rates.entering.sum(axis=1)
        by_publisher = np.zeros((len(network.routes.arcs), entering.size))
        np.add.at(by_publisher.T, publisher_of, brought.T)
        sent = self.of_published + self._of_entries
        over_arcs = by_publisher @ sent + self._behind_arcs(publisher_of, brought)
        return np.vstack([entering[:, None] * sent, over_arcs])

    @cached_property
    def _brought(self) -> tuple[Ints, Floats]:
        """[column]: a publisher, and [arc, column] what it brings of one class of content."""
        rates, routes = self.network.rates, self.network.routes
        publishers, classes = np.nonzero(rates.entering)
        apart = replace(
            routes,
            tree_of_class=routes.tree_of_class[classes],
            interest=routes.interest[:, classes],
            wants=routes.wants[classes],
        )
        at_broker = np.zeros((len(rates.services), classes.size))
        homes = routes.home_of_publisher[publishers]
        at_broker[homes, np.arange(classes.size)] = rates.entering[publishers, classes]
        reliability = np.array([arc.channel.reliability for arc in routes.arcs])
        return publishers, offered_to_arcs(apart, at_broker, rates.passes) * reliability[:, None]

    def _behind_arcs(self, publisher_of: Ints, brought: Floats) -> Floats:
        """[arc, parameter]: what less reliable arcs take from those behind them."""
        routes = self.network.routes
        changes = np.zeros((len(routes.arcs), len(self.parameters)))
        if not np.any(self._of_arcs):
            return changes
        _, classes = np.nonzero(self.network.rates.entering)
        starts = np.stack([routes.home_of_publisher[publisher_of], routes.tree_of_class[classes]])
        for start, tree in np.unique(starts, axis=1).T.tolist():
            columns = (starts[0] == start) & (starts[1] == tree)
            lost = np.zeros((len(self.network.rates.services), len(self.parameters)))
            for broker, into in topology.walk(routes.trees[tree], routes.arcs, start):
                if into >= 0:
                    lost[broker] = lost[routes.arcs[into].source] + self._of_arcs[into]
                    changes[into] += brought[into, columns].sum() * lost[broker]
        return changes

    @cached_property
    def _of_arcs(self) -> Floats:
        """[arc, parameter]: relative changes of reliability."""
        before = np.array([arc.channel.reliability for arc in self.network.routes.arcs])
        changes = np.zeros((before.size, len(self.parameters)))
        for column, one in enumerate(self.parameters):
            if one.section == "links" and one.field.endswith("reliability"):
                after = [arc.channel.reliability for arc in self.arcs[column]]
                changes[:, column] = np.array(after) / before - 1.0
        return changes

    @cached_property
    def loads(self) -> Floats:
        """[broker, parameter]."""
        rates = self.network.rates
        arrivals = np.repeat(rates.arrivals[:, None], len(self.parameters), axis=1)
        np.add.at(arrivals, rates.into, self.of_sources)
        busy_s = np.divide(
            rates.loads, rates.arrivals, out=np.zeros_like(rates.loads), where=rates.arrivals > 0.0
        )
        return arrivals * busy_s[:, None] * (1.0 + self.of_services)

    @cached_property
    def overloading(self) -> list[tuple[int, int]]:
        """Pairs of a broker and a parameter that decides whether it is overloaded."""
        before = self.network.rates.overloaded[:, None]
        pairs = np.argwhere((self.loads >= FULL_LOAD) & ~before)
        return [(int(broker), int(parameter)) for broker, parameter in pairs]

    @cached_property
    def of_published(self) -> Floats:
        """[publisher, parameter]: relative changes of what is published."""
        return self._relative("publishers", "rate")

    @cached_property
    def _of_entries(self) -> Floats:
        """[publisher, parameter]: relative changes of the reliability of publishers' links."""
        return self._relative("publishers", "link.reliability")

    # ---- queues ----------------------------------------------------------------------------------

    @cached_property
    def of_services(self) -> Floats:
        """[broker, parameter]: relative changes of service times."""
        return self._relative("brokers", "service")

    def _relative(self, section: str, field: str) -> Floats:
        """[owner, parameter]: relative changes of one field of brokers or publishers."""
        owners = names(getattr(self.network.system, section))
        changes = np.zeros((len(owners), len(self.parameters)))
        place_of = {name: place for place, name in enumerate(owners)}
        for column, one in enumerate(self.parameters):
            if (one.section, one.field) == (section, field):
                changes[place_of[one.owner], column] = one.moved / one.value - 1.0
        return changes

    @cached_property
    def of_arrivals(self) -> Floats:
        """[broker, parameter]: relative changes of arrivals, bursty streams counting for more."""
        rates, stages = self.network.rates, self.network.stages
        changes = np.zeros_like(self.of_services)
        for broker, arriving in enumerate(rates.arrivals):
            sources = np.flatnonzero((rates.into == broker) & (rates.source_rates > 0.0))
            if not sources.size:
                continue
            own = stages.own[sources]
            mean = float(own @ rates.source_rates[sources]) / float(arriving)
            served = max((law.scv for law in rates.services[broker]), default=0.0)
            spare = max(1.0 - float(rates.loads[broker]), 0.0)
            counts = 1.0 + spare * (own - mean) / max(mean + served, 0.1)
            changes[broker] = counts @ self.of_sources[sources] / arriving
        return changes

    @cached_property
    def queues(self) -> list[Queue]:
        """How the queue of each broker that parameters touch answers to slower services."""
        touched = np.abs(self.of_services).sum(axis=1) + np.abs(self.of_arrivals).sum(axis=1)
        loads = self.network.rates.loads
        return [
            self._queue(int(broker))
            for broker in np.flatnonzero((touched > 0.0) & (loads < FULL_LOAD) & (loads > 0.0))
        ]

    def _queue(self, broker: int) -> Queue:
        network = self.network
        together = math.hypot(*self.of_services[broker], *self.of_arrivals[broker])
        spare = 1.0 / float(network.rates.loads[broker]) - 1.0
        step = max(min(together, _OF_SPARE * spare), _LEAST_STEP * min(spare, 1.0))
        services = list(network.rates.services)
        services[broker] = tuple(law.scaled(1.0 + step) for law in services[broker])
        rates = replace(network.rates, services=tuple(services))
        curves = replace(network.dispersion, rates=rates)
        queues = replace(network.queues, grid=self.paths.grid, rates=rates, curves=curves)
        slower = replace(queues, solved={}).at(broker)
        sources = queues.sources(broker)
        return Queue(
            broker=broker,
            sources=sources,
            step=step,
            waiting=network.stages.waiting.take(sources).on(self.paths.grid),
            serving=network.stages.serving.take(sources).on(self.paths.grid),
            slower_waiting=slower.waiting,
            slower_serving=slower.serving,
        )

    @cached_property
    def mean_waits_s(self) -> Floats:
        """[broker, parameter]: changes of what events wait at brokers, on average."""
        rates, network = self.network.rates, self.network
        changes = np.zeros_like(self.of_services)
        for queue in self.queues:
            broker, arriving = queue.broker, rates.source_rates[queue.sources]
            each_s = queue.waiting.shift_s + queue.waiting.mean_s
            apart_s = each_s - network.mean_waits_s[broker]
            by_service, by_arrivals = arriving @ queue.waits_s
            changes[broker] = (
                by_service * self.of_services[broker]
                + by_arrivals * self.of_arrivals[broker]
                + apart_s @ self.of_sources[queue.sources]
            ) / arriving.sum()
        return changes

    # ---- changes of stages -----------------------------------------------------------------------

    @cached_property
    def changes(self) -> Changes:
        """All changes of stages.

        Causes are slower services of brokers, more arrivals there, and the parameters themselves.
        """
        count = len(self.of_services)
        each = [
            entry
            for queue in self.queues
            for entry in queue.changes(queue.broker, count + queue.broker)
        ]
        each += self._direct(2 * count)
        moves = np.vstack([self.of_services, self.of_arrivals, np.eye(len(self.parameters))])
        return Changes(each=each, moves=moves)

    def _direct(self, first_cause: int) -> Iterator[Change]:
        """What parameters change of links, of publishers' entries and of what fails."""
        for column, one in enumerate(self.parameters):
            cause = first_cause + column
            if one.field.startswith("failure."):
                yield from self._of_failures(column, cause)
            elif one.section == "links":
                yield from self._of_links(column, cause)
            elif one.section == "publishers":
                yield from self._of_entry(column, cause)

    def _of_links(self, column: int, cause: int) -> Iterator[Change]:
        for arc, moved in enumerate(self.arcs[column]):
            channel = moved.channel
            if channel != self.network.routes.arcs[arc].channel:
                before = self.paths.over_arc.take([arc])
                after = from_law(self.paths.grid, channel.delay, channel.reliability)
                yield change(self._stages.arc + arc, cause, before, after)

    def _of_entry(self, column: int, cause: int) -> Iterator[Change]:
        one, system, network = self.parameters[column], self.systems[column], self.network
        place = names(system.publishers).index(one.owner)
        publisher = system.publishers[place]
        if one.field != "rate" or publisher.connectivity is not None:
            before = network.entry(np.array([place])).on(self.paths.grid)
            after = entry_delay(self.paths.grid, publisher)
            yield change(self._stages.entry + place, cause, before, after)

    def _of_failures(self, column: int, cause: int) -> Iterator[Change]:
        """A process that is down more often loses more, or lets events wait more often."""
        one, grid = self.parameters[column], self.paths.grid
        process = process_places(self.network.system)[one.section, one.owner]
        before, after = (
            failure_of(dict(zip(names(owners), owners, strict=True))[one.owner])
            for owners in (
                getattr(system, one.section)
                for system in (self.network.system, self.systems[column])
            )
        )
        assert before is not None  # its times are the parameter
        assert after is not None
        less_up = after.availability / before.availability - 1.0
        yield Change(
            stage=self._stages.loss + process,
            cause=cause,
            values=np.zeros(grid.z.size, dtype=np.complex128),
            survival=less_up,
        )
        waits = [_wait_for_repair(grid, each) for each in (before, after)]
        yield replace(change(self._stages.wait + process, cause, *waits), held=less_up)

    @cached_property
    def _stages(self) -> StageOrder:
        return stage_order(self.network)

    @cached_property
    def arcs(self) -> list[tuple[topology.Arc, ...]]:
        """[parameter]: the arcs of its system, as routes have them."""
        routes = self.network.routes
        return [
            acknowledged(system, replace(routes, arcs=topology.arcs(system))).arcs
            for system in self.systems
        ]


@dataclass(frozen=True, kw_only=True)
class Queue:
    """The queue of one broker, and what it is if services take longer by a small part."""

    broker: int
    sources: Ints
    step: float  # relative change of service times
    waiting: Delays  # [source]
    serving: Delays
    slower_waiting: Delays
    slower_serving: Delays

    @cached_property
    def waits_s(self) -> Floats:
        """[source, 2]: change of the mean wait by service times and by arrivals, relative."""
        before = self.waiting.shift_s + self.waiting.mean_s
        by_service = (self.slower_waiting.shift_s + self.slower_waiting.mean_s - before) / self.step
        return np.column_stack([by_service, by_service - before])

    def changes(self, services: int, arrivals: int) -> Iterator[Change]:
        """Give what services (a cause) and arrivals (another) change for each source."""
        later = _by_log_time(self.waiting)
        for row, source in enumerate(self.sources.tolist()):
            waits = change(
                source, services, self.waiting.take([row]), self.slower_waiting.take([row])
            )
            serves = change(
                source, services, self.serving.take([row]), self.slower_serving.take([row])
            )
            yield Change(
                stage=source,
                cause=services,
                values=(waits.values + serves.values) / self.step,
                shift_s=(waits.shift_s + serves.shift_s) / self.step,
                mean_s=(waits.mean_s + serves.mean_s) / self.step,
            )
            yield Change(
                stage=source,
                cause=arrivals,
                values=waits.values / self.step + later[row],
                mean_s=float(self.waits_s[row, 1]),
            )


def _by_log_time(delays: Delays) -> Complexes:
    """[n, time · node]: ∂ log of transforms by the logarithm of the time they belong to."""
    points = delays.grid.times_s.size
    folded = delays.values.reshape(len(delays), points, -1)
    return (np.gradient(folded, delays.grid.step, axis=1) / folded).reshape(len(delays), -1)


def _wait_for_repair(grid: Grid, failure: Failure) -> Delays:
    """The wait of what meets a component at any moment until that is up."""
    down = tabulated(grid, failure.down)
    at_once = failure.availability
    rest = (1.0 - down.transform(grid.z)) / (grid.z * down.mean_s)
    mean_s = (1.0 - at_once) * 0.5 * down.mean_s * (1.0 + down.scv)
    values = at_once + (1.0 - at_once) * rest
    return from_transform(grid, values, mean_s=mean_s, atom=at_once)
