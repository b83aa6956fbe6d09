"""What an event meets at a broker: the wait that its own stream finds there, and its service."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tidings.model.arrays import Bools, Ints
from tidings.model.laws import Exponential, Law
from tidings.model.loads import FULL_LOAD
from tidings.prediction.delays import Delays, all_lost, from_law, nothing, stack
from tidings.prediction.dispersion import Dispersion, renewal_scv
from tidings.prediction.flows import Flows
from tidings.prediction.grids import Grid
from tidings.prediction.marked_queues import waits
from tidings.prediction.paths import BrokerStages
from tidings.prediction.renewal_streams import (
    MOST_PHASES,
    Stream,
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

    def stream(self) -> Stream:
        if self.poisson:
            return poisson_stream(self.rate_per_s)
        return renewal_stream(self.rate_per_s, self.scv, self.law, self.scale_s)


# Waits by streams of a station, for all stations that were solved: what recurs is looked up.
Solved = dict[tuple[tuple[_Arrival, ...], Law], list[Delays]]


def broker_stages(
    grid: Grid,
    rates: Flows,
    curves: Dispersion,
    emitted: Sequence[Law | None],
    solved: Solved,
) -> BrokerStages:
    """Solve the queues of all brokers, for every stream that crosses them."""
    count = rates.into.size
    quiet = nothing(grid)
    waiting: list[Delays] = [quiet] * count
    serving: list[Delays] = [quiet] * count
    own, others, exact = np.ones(count), np.ones(count), np.ones(count, dtype=bool)
    poisson = poisson_sources(rates, emitted)
    given = np.arange(count) < len(emitted)
    given[: len(emitted)] = [law is not None for law in emitted]
    for broker, laws in enumerate(rates.services):
        sources = np.flatnonzero((rates.into == broker) & (rates.source_rates > 0.0))
        if not sources.size:
            continue
        busiest = max((law.mean_s for law in laws), default=0.0)
        for place, law in enumerate(laws):
            arrivals, scale_s = _arrivals(rates, curves, emitted, sources, (broker, law, place))
            key = (tuple(arrivals), law)
            if key not in solved:
                solved[key] = _waits(grid, arrivals, law, scale_s)
            # What leaves one station for the next is known only if it is Poisson by theorem.
            memoryless = all(isinstance(each, Exponential) for each in laws[:place])
            fresh = given[sources] & (place == 0)
            known = memoryless and _exactly(arrivals, poisson[sources] | fresh)
            served = from_law(grid, law)
            for source, wait, arrival in zip(sources, solved[key], arrivals, strict=True):
                waiting[source] = waiting[source].series(wait)
                serving[source] = serving[source].series(served)
                exact[source] &= known
                if law.mean_s == busiest:
                    own[source] = arrival.scv
                    others[source] = _mean_felt(arrivals)
    return BrokerStages(
        waiting=stack(waiting), serving=stack(serving), own=own, others=others, exact=exact
    )


def poisson_sources(rates: Flows, emitted: Sequence[Law | None]) -> Bools:
    """[source]: whether its stream is Poisson by theorem, not by approximation.

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
    """The streams at one station, and the scale of time that it feels, in seconds."""
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
    """Whether the queue of these streams, known or not, is solved without approximation."""
    uneven = [each for each in arrivals if not each.poisson]
    if not np.all(known) or any(each.law is None or not is_phased(each.law) for each in uneven):
        return False
    return math.prod(each.stream().size for each in uneven) <= MOST_PHASES


def _mean_felt(arrivals: Sequence[_Arrival]) -> float:
    total = sum(each.rate_per_s for each in arrivals)
    return sum(each.rate_per_s * each.felt for each in arrivals) / total


def _waits(grid: Grid, arrivals: Sequence[_Arrival], service: Law, scale_s: float) -> list[Delays]:
    """What the events of each stream wait at one station, in seconds."""
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
        found = waits(grid, apart, service)
        answers = dict(zip(uneven, found, strict=False))
        return answers | dict.fromkeys(poisson, found[-1])
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
