"""What an event meets at a broker: the wait that its own stream finds there, and its service."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tidings.model.arrays import Bools, Floats, Ints
from tidings.model.laws import Law
from tidings.model.loads import FULL_LOAD
from tidings.prediction.delays import Delays, Grid, all_lost, from_law, nothing, stack
from tidings.prediction.dispersion import Dispersion
from tidings.prediction.flows import Flows
from tidings.prediction.marked_queues import (
    MOST_PHASES,
    Stream,
    poisson_stream,
    renewal_stream,
    waits,
)

NEARLY_POISSON = 0.01  # |c² − 1| up to which a stream is taken as Poisson


@dataclass(frozen=True, kw_only=True)
class BrokerStages:
    """What events of every source meet at the broker they arrive at; a row for each source."""

    waiting: Delays
    serving: Delays
    own: Floats  # [source]: dispersion of the stream that its queue feels
    others: Floats  # [source]: dispersion of all that arrives, of the busiest station
    exact: Bools  # [source]: whether the queue is solved without approximation


@dataclass(frozen=True, slots=True, kw_only=True)
class _Arrival:
    """A stream at a station: its rate, the dispersion felt, and its interval law where known."""

    rate_per_s: float
    scv: float
    law: Law | None

    @property
    def poisson(self) -> bool:
        return abs(self.scv - 1.0) <= NEARLY_POISSON

    def stream(self) -> Stream:
        if self.poisson:
            return poisson_stream(self.rate_per_s)
        return renewal_stream(self.rate_per_s, self.scv, self.law)


def broker_stages(
    grid: Grid, rates: Flows, curves: Dispersion, emitted: Sequence[Law | None]
) -> BrokerStages:
    """Solve the queues of all brokers, for every stream that crosses them."""
    count = rates.into.size
    quiet = nothing(grid)
    waiting: list[Delays] = [quiet] * count
    serving: list[Delays] = [quiet] * count
    own, others, exact = np.ones(count), np.ones(count), np.ones(count, dtype=bool)
    for broker, laws in enumerate(rates.services):
        sources = np.flatnonzero((rates.into == broker) & (rates.source_rates > 0.0))
        if not sources.size:
            continue
        busiest = max((law.mean_s for law in laws), default=0.0)
        for place, law in enumerate(laws):
            arrivals, known = _arrivals(rates, curves, emitted, sources, (broker, law, place))
            found = _waits(grid, arrivals, law)
            served = from_law(grid, law)
            for source, wait, arrival in zip(sources, found, arrivals, strict=True):
                waiting[source] = waiting[source].series(wait)
                serving[source] = serving[source].series(served)
                exact[source] &= known
                if law.mean_s == busiest:
                    own[source] = arrival.scv
                    others[source] = _mean_scv(arrivals)
    return BrokerStages(
        waiting=stack(waiting), serving=stack(serving), own=own, others=others, exact=exact
    )


def _arrivals(
    rates: Flows,
    curves: Dispersion,
    emitted: Sequence[Law | None],
    sources: Ints,
    where: tuple[int, Law, int],
) -> tuple[list[_Arrival], bool]:
    """The streams at one station, and whether they are known exactly."""
    broker, service, place = where
    felt = curves.felt(broker, service)
    arrivals = []
    known = place == 0
    for source, scv in zip(sources, felt, strict=True):
        rate = float(rates.source_rates[source])
        law = emitted[source] if place == 0 and source < len(emitted) else None
        lossless = law is not None and abs(rate * law.mean_s - 1.0) < 1e-9
        fresh = source < len(emitted) and (law is None or lossless)
        known &= fresh
        if lossless and law is not None:
            arrivals.append(_Arrival(rate_per_s=rate, scv=law.scv, law=law))
        else:
            arrivals.append(_Arrival(rate_per_s=rate, scv=float(scv), law=None))
    return arrivals, known


def _mean_scv(arrivals: Sequence[_Arrival]) -> float:
    total = sum(each.rate_per_s for each in arrivals)
    return sum(each.rate_per_s * each.scv for each in arrivals) / total


def _waits(grid: Grid, arrivals: Sequence[_Arrival], service: Law) -> list[Delays]:
    """What the events of each stream wait at one station, in seconds."""
    load = sum(each.rate_per_s for each in arrivals) * service.mean_s
    if load >= FULL_LOAD:
        return [all_lost(grid, "overload")] * len(arrivals)
    if load <= 0.0:
        return [nothing(grid)] * len(arrivals)
    solved: dict[_Arrival, Delays] = {}
    for each in arrivals:
        if each not in solved:
            solved |= _solved(grid, each, arrivals, service)
    return [solved[each] for each in arrivals]


def _solved(
    grid: Grid, own: _Arrival, arrivals: Sequence[_Arrival], service: Law
) -> dict[_Arrival, Delays]:
    """Solve one queue: for all its streams if they are few, else for one, the rest as one."""
    uneven = [each for each in arrivals if not each.poisson]
    poisson = [each for each in arrivals if each.poisson]
    rest_rate = sum(each.rate_per_s for each in poisson)
    streams = [each.stream() for each in uneven]
    if np.prod([stream.size for stream in streams], dtype=float) <= MOST_PHASES:
        apart = [*streams, *([poisson_stream(rest_rate)] if poisson else [])]
        found = waits(grid, apart, service)
        answers = dict(zip(uneven, found, strict=False))
        return answers | dict.fromkeys(poisson, found[-1])
    others = list(arrivals)
    others.remove(own)
    lump = _Arrival(
        rate_per_s=sum(each.rate_per_s for each in others), scv=_mean_scv(others), law=None
    )
    mine = own.stream()
    most = max(MOST_PHASES // mine.size, 2)
    limited = max(lump.scv, 1.0 / most)
    rest = (
        poisson_stream(lump.rate_per_s)
        if lump.poisson
        else renewal_stream(lump.rate_per_s, limited)
    )
    return {own: waits(grid, [mine, rest], service)[0]}


def processing_stage(grid: Grid, rate_per_s: float, service: Law) -> Delays:
    """Compute what events meet at a subscriber's own queue, arrivals taken as Poisson."""
    arrival = _Arrival(rate_per_s=rate_per_s, scv=1.0, law=None)
    return _waits(grid, [arrival], service)[0].series(from_law(grid, service))
