"""What moving a parameter by its standard error makes of queues, links, entries and repairs.

Of a broker's queue one change is worked out, that of slower services; what more events make of it
follows, since a queue of faster streams is one of slower services on another scale of time: with
arrivals Λ and services s, ∂ log W/∂ log Λ = ∂ log W/∂ log s + ∂ log W/∂ log t.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tidings.model.arrays import Complexes, Floats, Ints
from tidings.model.behaviour import Failure
from tidings.model.laws import Law
from tidings.model.loads import FULL_LOAD
from tidings.model.record_tables import names
from tidings.model.uncertainty import failure_of
from tidings.theory.delay.delays import Delays, from_law, from_transform, tabulated
from tidings.theory.delay.grids import Grid
from tidings.theory.delay.paths import BrokerStages, Paths
from tidings.theory.error_bars.changes import Changes, StageChange, StageOrder, change, stage_order
from tidings.theory.error_bars.rate_moves import RateMoves
from tidings.theory.peers.connectivity import entry_delay
from tidings.theory.repairs.components import process_places

_LEAST_STEP, _OF_SPARE = 1e-3, 0.25  # of a service time; of what is free of a broker's time


@dataclass(frozen=True, kw_only=True)
class Moves(RateMoves):
    """One move for each parameter, by a standard error, and what it makes of stages."""

    paths: Paths  # of the network, at the times that matter

    @cached_property
    def queues(self) -> list[MovedQueues]:
        """How the queue of each broker that parameters touch answers to slower services."""
        touched = np.abs(self.of_services).sum(axis=1) + np.abs(self.of_arrivals).sum(axis=1)
        loads = self.network.rates.loads
        return [
            self._queue(int(broker))
            for broker in np.flatnonzero((touched > 0.0) & (loads < FULL_LOAD) & (loads > 0.0))
        ]

    def _queue(self, broker: int) -> MovedQueues:
        network, grid = self.network, self.paths.grid
        laws = network.rates.services[broker]
        together = math.hypot(*self.of_services[broker], *self.of_arrivals[broker])
        spare = 1.0 / float(network.rates.loads[broker]) - 1.0
        step = max(min(together, _OF_SPARE * spare), _LEAST_STEP * min(spare, 1.0))
        slower = [law.scaled(1.0 + step) for law in laws]
        of_all = self._solved(broker, slower)
        has_more = len(laws) > 1 and bool(np.any(self.of_services[broker]))
        sources = network.queues.sources(broker)
        return MovedQueues(
            broker=broker,
            sources=sources,
            step=step,
            waiting=network.stages.waiting.take(sources).on(grid),
            serving=network.stages.serving.take(sources).on(grid),
            slower=of_all,
            slower_first=self._solved(broker, [slower[0], *laws[1:]]) if has_more else of_all,
        )

    def _solved(self, broker: int, laws: Sequence[Law]) -> BrokerStages:
        """Solve the queues of a broker with other services, at the times that matter."""
        network = self.network
        services = list(network.rates.services)
        services[broker] = tuple(laws)
        rates = replace(network.rates, services=tuple(services))
        curves = replace(network.dispersion, rates=rates)
        grid = self.paths.grid
        return replace(network.queues, grid=grid, rates=rates, curves=curves, solved={}).at(broker)

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

    def _direct(self, first_cause: int) -> Iterator[StageChange]:
        """Yield what parameters change of links, of publishers' entries and of what fails."""
        for column, one in enumerate(self.parameters):
            cause = first_cause + column
            if one.field.startswith("failure."):
                yield from self._of_failures(column, cause)
            elif one.section == "links":
                yield from self._of_links(column, cause)
            elif one.section == "publishers":
                yield from self._of_entry(column, cause)

    def _of_links(self, column: int, cause: int) -> Iterator[StageChange]:
        for arc, moved in enumerate(self.arcs[column]):
            channel = moved.channel
            if channel != self.network.routes.arcs[arc].channel:
                before = self.paths.over_arc.take([arc])
                after = from_law(self.paths.grid, channel.delay, channel.reliability)
                yield change(self._stages.arc + arc, cause, before, after)

    def _of_entry(self, column: int, cause: int) -> Iterator[StageChange]:
        one, system, network = self.parameters[column], self.systems[column], self.network
        place = names(system.publishers).index(one.owner)
        publisher = system.publishers[place]
        if one.field != "rate" or publisher.connectivity is not None:
            before = network.entry(np.array([place])).on(self.paths.grid)
            after = entry_delay(self.paths.grid, publisher)
            yield change(self._stages.entry + place, cause, before, after)

    def _of_failures(self, column: int, cause: int) -> Iterator[StageChange]:
        """Yield the changes that failures of a process make.

        A process that is down more often loses more, or lets events wait more often.
        """
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
        yield StageChange(
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


@dataclass(frozen=True, kw_only=True)
class MovedQueues:
    """The queues of one broker, and what they are if services take longer by a small part."""

    broker: int
    sources: Ints
    step: float  # relative change of service times
    waiting: Delays  # [source]
    serving: Delays
    slower: BrokerStages  # all stations are
    slower_first: BrokerStages  # the first station is, whose service is a parameter

    @cached_property
    def waits_s(self) -> Floats:
        """[source, 2]: change of the mean wait by service times and by arrivals, relative."""
        before = self.waiting.shift_s + self.waiting.mean_s
        first, every = (
            (each.waiting.shift_s + each.waiting.mean_s - before) / self.step
            for each in (self.slower_first, self.slower)
        )
        return np.column_stack([first, every - before])

    def changes(self, services: int, arrivals: int) -> Iterator[StageChange]:
        """Give what services (a cause) and arrivals (another) change for each source."""
        later = _by_log_time(self.waiting)
        for row, source in enumerate(self.sources.tolist()):
            waits, serves, more = (
                change(source, services, before.take([row]), after.take([row]))
                for before, after in (
                    (self.waiting, self.slower_first.waiting),
                    (self.serving, self.slower_first.serving),
                    (self.waiting, self.slower.waiting),
                )
            )
            yield StageChange(
                stage=source,
                cause=services,
                values=(waits.values + serves.values) / self.step,
                shift_s=(waits.shift_s + serves.shift_s) / self.step,
                mean_s=(waits.mean_s + serves.mean_s) / self.step,
            )
            yield StageChange(
                stage=source,
                cause=arrivals,
                values=more.values / self.step + later[row],
                mean_s=float(self.waits_s[row, 1]),
            )


def _by_log_time(delays: Delays) -> Complexes:
    """Compute ∂ log of transforms by the logarithm of the time they belong to, [n, time · node]."""
    points = delays.grid.times_s.size
    folded = delays.values.reshape(len(delays), points, -1)
    return (np.gradient(folded, delays.grid.step, axis=1) / folded).reshape(len(delays), -1)


def _wait_for_repair(grid: Grid, failure: Failure) -> Delays:
    """Compute the wait of what meets a component at any moment until that is up."""
    down = tabulated(grid, failure.down)
    at_once = failure.availability
    rest = (1.0 - down.transform(grid.z)) / (grid.z * down.mean_s)
    mean_s = (1.0 - at_once) * 0.5 * down.mean_s * (1.0 + down.scv)
    values = at_once + (1.0 - at_once) * rest
    return from_transform(grid, values, mean_s=mean_s, atom=at_once)
