"""What an event meets at a broker: the wait that its own stream finds there, and its service."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tidings.model.arrays import Bools, Ints
from tidings.model.laws import Exponential, Law
from tidings.model.loads import FULL_LOAD
from tidings.theory.delay.delays import Delays, all_lost, from_law, nothing, stack
from tidings.theory.delay.grids import Grid
from tidings.theory.delay.paths import BrokerStages
from tidings.theory.queues.dispersion import Dispersion, renewal_scv
from tidings.theory.queues.flows import Flows
from tidings.theory.queues.marked_queues import waits
from tidings.theory.queues.renewal_streams import (
    MOST_PHASES,
    ArrivalProcess,
    is_phased,
    poisson_stream,
    renewal_stream,
)

NEARLY_POISSON = 0.01  # |c² − 1| up to which a stream is taken as Poisson


@dataclass(frozen=True, slots=True, kw_only=True)
class _Arrival:
    """A stream at a station: its rate, c² of its intervals, and their law where known."""

    rate_per_s: float
    scv: float
    felt: float  # mean dispersion over the scales that the station feels
    law: Law | None = None
    scale_s: float | None = None  # of time, on which its intervals must come out right

    @property
    def poisson(self) -> bool:
        if self.law is not None:
            return isinstance(self.law, Exponential)
        return abs(self.scv - 1.0) <= NEARLY_POISSON

    def stream(self) -> ArrivalProcess:
        if self.poisson:
            return poisson_stream(self.rate_per_s)
        return renewal_stream(self.rate_per_s, self.scv, self.law, self.scale_s)


# Waits by streams of a station, for all stations that were solved: what recurs is looked up.
Solved = dict[tuple[tuple[_Arrival, ...], Law], list[Delays]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Queues:
    """The queues of all brokers, each solved when it is asked for."""

    grid: Grid
    rates: Flows
    curves: Dispersion
    emitted: Sequence[Law | None]
    poisson: Bools  # [source]: by theorem
    solved: Solved

    def sources(self, broker: int) -> Ints:
        """List what brings events to a broker."""
        rates = self.rates
        return np.flatnonzero((rates.into == broker) & (rates.source_rates > 0.0))

    def at(self, broker: int) -> BrokerStages:
        """Solve the queues of one broker; a row for each of its sources."""
        sources, laws = self.sources(broker), self.rates.services[broker]
        waiting = serving = [nothing(self.grid)] * sources.size
        own, others = np.ones(sources.size), np.ones(sources.size)
        exact = np.ones(sources.size, dtype=np.bool_)
        given = np.array([self._law(source) is not None for source in sources], dtype=np.bool_)
        busiest = max((law.mean_s for law in laws), default=0.0)
        for place, law in enumerate(laws):
            where = (broker, law, place)
            arrivals, scale_s = _arrivals(self.rates, self.curves, self.emitted, sources, where)
            key = (tuple(arrivals), law)
            if key not in self.solved:
                self.solved[key] = _waits(self.grid, arrivals, law, scale_s)
            # What leaves one station for the next is known only if it is Poisson by theorem.
            memoryless = all(isinstance(each, Exponential) for each in laws[:place])
            exact &= memoryless and _exactly(arrivals, self.poisson[sources] | given & (place == 0))
            served = from_law(self.grid, law)
            waiting = [a.series(b) for a, b in zip(waiting, self.solved[key], strict=True)]
            serving = [each.series(served) for each in serving]
            if law.mean_s == busiest:
                own, others[:] = np.array([each.scv for each in arrivals]), _mean_felt(arrivals)
        return BrokerStages(
            waiting=stack(waiting), serving=stack(serving), own=own, others=others, exact=exact
        )

    def _law(self, source: int) -> Law | None:
        return self.emitted[source] if source < len(self.emitted) else None


def broker_stages(queues: Queues) -> BrokerStages:
    """Solve the queues of all brokers, for every stream that crosses them."""
    rates, grid = queues.rates, queues.grid
    count = rates.into.size
    waiting, serving = nothing(grid, count), nothing(grid, count)
    own, others, exact = np.ones(count), np.ones(count), np.ones(count, dtype=np.bool_)
    for broker in range(len(rates.services)):
        sources = queues.sources(broker)
        if not sources.size:
            continue
        here = queues.at(broker)
        waiting = waiting.overwritten(sources, here.waiting)
        serving = serving.overwritten(sources, here.serving)
        own[sources], others[sources], exact[sources] = here.own, here.others, here.exact
    return BrokerStages(waiting=waiting, serving=serving, own=own, others=others, exact=exact)


def poisson_sources(rates: Flows, emitted: Sequence[Law | None]) -> Bools:
    """Test whether the stream of a source is Poisson by theorem, not by approximation, [source].

    Exponential intervals are; so is what leaves a broker of one exponential server, or none, at
    which only Poisson streams arrive (Burke), however it is thinned, copied or delayed. Brokers
    that feed each other are left out: their streams depend on each other.
    """
    poisson = np.zeros(rates.into.size, dtype=np.bool_)
    poisson[: len(emitted)] = [isinstance(law, Exponential) for law in emitted]
    silent = rates.source_rates <= 0.0
    lasting = ~np.any(rates.open_to % 1.0, axis=1)  # [arc]: subscriptions stay
    keeps = np.array(
        [all(isinstance(law, Exponential) for law in laws) for laws in rates.services],
        dtype=np.bool_,
    ) & (rates.loads < FULL_LOAD)
    out_of = np.array([arc.source for arc in rates.routes.arcs], dtype=np.int64)
    while True:
        fed = keeps.copy()
        fed[rates.into[~(poisson | silent)]] = False
        following = poisson.copy()
        following[len(emitted) :] = lasting & fed[out_of]
        if np.array_equal(following, poisson):
            return poisson
        poisson = following


def _arrivals(
    rates: Flows,
    curves: Dispersion,
    emitted: Sequence[Law | None],
    sources: Ints,
    where: tuple[int, Law, int],
) -> tuple[list[_Arrival], float]:
    """List the streams at one station, and give the scale of time that it feels, in seconds."""
    broker, service, place = where
    felt, scale_s = curves.felt(broker, service)
    arrivals = []
    for source, own in zip(sources, felt, strict=True):
        rate = float(rates.source_rates[source])
        law = emitted[source] if place == 0 and source < len(emitted) else None
        if law is not None and abs(rate * law.mean_s - 1.0) < 1e-9:  # fresh and lossless
            near_s = service.mean_s + scale_s
            arrivals.append(
                _Arrival(rate_per_s=rate, scv=law.scv, felt=float(own), law=law, scale_s=near_s)
            )
        else:
            scv = renewal_scv(float(own), rate * scale_s)
            arrivals.append(_Arrival(rate_per_s=rate, scv=scv, felt=float(own)))
    return arrivals, scale_s


def _exactly(arrivals: Sequence[_Arrival], known: Bools) -> bool:
    """Test whether the queue of these streams, known or not, is solved without approximation."""
    uneven = [each for each in arrivals if not each.poisson]
    if not np.all(known) or any(each.law is None or not is_phased(each.law) for each in uneven):
        return False
    return math.prod(each.stream().size for each in uneven) <= MOST_PHASES


def _mean_felt(arrivals: Sequence[_Arrival]) -> float:
    total = sum(each.rate_per_s for each in arrivals)
    return sum(each.rate_per_s * each.felt for each in arrivals) / total


def _waits(grid: Grid, arrivals: Sequence[_Arrival], service: Law, scale_s: float) -> list[Delays]:
    """Compute what the events of each stream wait at one station, in seconds."""
    load = sum(each.rate_per_s for each in arrivals) * service.mean_s
    if load >= FULL_LOAD:
        return [all_lost(grid, "overload")] * len(arrivals)
    if load <= 0.0:
        return [nothing(grid)] * len(arrivals)
    solved: dict[_Arrival, Delays] = {}
    for each in arrivals:
        if each not in solved:
            solved |= _solved(grid, each, arrivals, (service, scale_s))
    return [solved[each] for each in arrivals]


def _solved(
    grid: Grid, own: _Arrival, arrivals: Sequence[_Arrival], station: tuple[Law, float]
) -> dict[_Arrival, Delays]:
    """Solve one queue: for all its streams if they are few, else for one, the rest as one."""
    service, scale_s = station
    uneven = [each for each in arrivals if not each.poisson]
    poisson = [each for each in arrivals if each.poisson]
    rest_rate = sum(each.rate_per_s for each in poisson)
    streams = [each.stream() for each in uneven]
    if math.prod(stream.size for stream in streams) <= MOST_PHASES:
        apart = [*streams, *([poisson_stream(rest_rate)] if poisson else [])]
        delays = waits(grid, apart, service)
        answers = dict(zip(uneven, delays, strict=False))
        return answers | dict.fromkeys(poisson, delays[-1])
    others = list(arrivals)
    others.remove(own)
    rest_rate, felt = sum(each.rate_per_s for each in others), _mean_felt(others)
    mine = own.stream()
    least = 1.0 / max(MOST_PHASES // mine.size, 2)
    scv = max(renewal_scv(felt, rest_rate * scale_s), least)
    rest = _Arrival(rate_per_s=rest_rate, scv=scv, felt=felt).stream()
    return {own: waits(grid, [mine, rest], service)[0]}


def processing_stage(grid: Grid, rate_per_s: float, service: Law) -> Delays:
    """Compute what events meet at a subscriber's own queue, arrivals taken as Poisson."""
    arrival = _Arrival(rate_per_s=rate_per_s, scv=1.0, felt=1.0)
    return _waits(grid, [arrival], service, 1.0)[0].series(from_law(grid, service))
