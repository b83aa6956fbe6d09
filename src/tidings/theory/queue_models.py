"""The queue models by name: what each predicts for every station of every broker.

- ``law`` (the default): the whole law of the wait. Where arrivals are Poisson it is exact (M/M/1,
  M/G/1); elsewhere two moments of it come from dispersion curves (``dispersion``, ``workload``)
  and the law is fitted to them.
- ``gg1``: the published improved model, the service law shifted by the mean wait that QNA gives.
- ``mm1``: the published plain model, the service law shifted by the mean wait of an M/M/1 queue.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

from tidings.model.laws import Exponential, Law
from tidings.theory.burstiness import mean_wait_gg1_s
from tidings.theory.flows import Flows
from tidings.theory.lone_streams import KnownWait
from tidings.theory.queues import (
    FULL_LOAD,
    fitted_law,
    mean_shift,
    mean_wait_mm1_s,
    offered_load,
    whole_law,
)
from tidings.theory.stages import NOTHING, Stage, in_series, law_stage
from tidings.theory.stated_errors import Stated
from tidings.theory.traffic import Traffic


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Queue:
    """One station: the stage of wait and service, the mean wait in seconds, what that assumes."""

    stage: Stage
    wait_s: float
    assumes: tuple[str, ...] = ()


Queues = tuple[tuple[Queue, ...], ...]  # of each broker's stations, in order

IDLE = Queue(stage=NOTHING, wait_s=0.0)
OVERLOADED = Queue(stage=Stage(survives=0.0, lost={"overload": 1.0}), wait_s=math.inf)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueModel:
    """How queues are predicted, and what that assumes wherever it is used."""

    queues: Callable[[Traffic], Queues]
    assumes: str


_SHIFTED_MM1 = (
    Stated("the wait at each broker taken as constant, the mean of an M/M/1 queue", None),
    "publishers and services count by their mean rate only",
)
_SHIFTED_GG1 = (
    Stated(
        "the wait at each broker taken as constant, its mean by QNA from one number a stream", None
    ),
)
_POISSON = "the whole law of the wait at each broker, arrivals taken as Poisson"
_KHINCHINE = "services of other laws than exponential by Pollaczek and Khinchine"
FITTED = (
    "where arrivals are not Poisson, two moments of each wait from dispersion curves (two moments "
    "of counts), and a law with them that is 0 with some probability, else exponential"
)
_IN_LINE = Stated(
    "brokers or stations in a line, all that leaves one going on to the next: waits of one event "
    "there taken as independent, which they are not unless publishers are as uneven as services; "
    "behind four brokers at ρ = .75 shares were off by up to .11",
    0.11,
)
_UNSETTLED = Stated(
    "dispersion curves and waits did not settle; the last of their values were taken", None
)


def broker_stages(queues: Queues) -> tuple[Stage, ...]:
    """The stage of each broker: its stations in series."""
    return tuple(
        reduce(in_series, (queue.stage for queue in stations), NOTHING) for stations in queues
    )


def _each_station(flows: Flows, queue: Callable[[int, int, float, Law], Queue]) -> Queues:
    """A queue for every station; none where service takes no time, all lost where overloaded."""

    def choose(broker: int, station: int, rate_per_s: float, service: Law) -> Queue:
        if service.mean_s == 0:
            return IDLE
        if offered_load(rate_per_s, service) >= FULL_LOAD:
            return OVERLOADED
        return queue(broker, station, rate_per_s, service)

    return tuple(
        tuple(
            choose(broker, station, float(rate), service)
            for station, service in enumerate(services)
        )
        for broker, (rate, services) in enumerate(zip(flows.arrivals, flows.services, strict=True))
    )


def _plain(traffic: Traffic) -> Queues:
    def queue(_broker: int, _station: int, rate_per_s: float, service: Law) -> Queue:
        wait_s = mean_wait_mm1_s(rate_per_s, service)
        return Queue(stage=mean_shift(service, wait_s), wait_s=wait_s, assumes=_SHIFTED_MM1)

    return _each_station(traffic.flows, queue)


def _improved(traffic: Traffic) -> Queues:
    scvs = traffic.scvs

    def queue(broker: int, station: int, rate_per_s: float, service: Law) -> Queue:
        wait_s = mean_wait_gg1_s(rate_per_s, service, scvs[broker][station])
        return Queue(stage=mean_shift(service, wait_s), wait_s=wait_s, assumes=_SHIFTED_GG1)

    return _each_station(traffic.flows, queue)


def _alone(known: KnownWait, service: Law) -> Stage:
    """Wait and service where the law of the wait is known by itself."""
    if known.stay is not None:
        return law_stage(known.stay, cdf_error=known.law_error)
    assert known.law is not None
    return in_series(law_stage(known.law, cdf_error=known.law_error), law_stage(service))


def _whole(traffic: Traffic) -> Queues:
    found = traffic.waits

    def assumed(broker: int) -> tuple[str, ...]:
        line = (_IN_LINE,) if found.in_line[broker] else ()
        return (FITTED, *line) if found.settled else (FITTED, *line, _UNSETTLED)

    def queue(broker: int, station: int, rate_per_s: float, service: Law) -> Queue:
        wait_s = found.means_s[broker][station]
        known_by = found.known_by[broker][station]
        if known_by == "alone" and (known_law := found.alone[broker][station]).law is not None:
            return Queue(stage=_alone(known_law, service), wait_s=wait_s)
        if known_by != "poisson":
            stage = fitted_law(service, wait_s, found.squares_s2[broker][station])
            said = () if known_by == "alone" else assumed(broker)
            return Queue(stage=stage, wait_s=wait_s, assumes=said)
        known = (_POISSON,) if isinstance(service, Exponential) else (_POISSON, _KHINCHINE)
        return Queue(stage=whole_law(rate_per_s, service), wait_s=wait_s, assumes=known)

    return _each_station(traffic.flows, queue)


QUEUE_MODELS: dict[str, QueueModel] = {
    "law": QueueModel(
        queues=_whole,
        assumes="the whole law of the wait at each broker: exact for Poisson arrivals, else "
        "fitted to two moments from dispersion curves",
    ),
    "gg1": QueueModel(queues=_improved, assumes=_SHIFTED_GG1[0]),
    "mm1": QueueModel(queues=_plain, assumes=_SHIFTED_MM1[0]),
}
