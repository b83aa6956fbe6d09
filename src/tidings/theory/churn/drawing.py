"""How far along its way an event is drawn by others, who may themselves come and go.

An event comes to a broker of its way if somebody there or behind is subscribed, the one it is for
left out. Somebody who stays and is away in turn is there with p = E[stay]/(E[stay] + E[away]), so
that nobody of several is with Π(1 − p). What draws an event further draws it as far as here, too:
only the furthest broker that it is drawn to counts, and its subscription need only be known there.
Exact where stays and times away are long beside delays.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tidings.model.laws import Law
from tidings.model.record_tables import column
from tidings.model.routes import Routes
from tidings.model.system import System

Floats = NDArray[np.float64]

_NEVER_ABSENT = -1e3  # log P[absent] of those who are back at once


@dataclass(frozen=True, slots=True, kw_only=True)
class Guests:
    """Those at one broker who come and go and want the same."""

    broker: int
    log_absent: float  # of the probability that none of them is subscribed


def present_share(stays: Law | None, away: Law | None) -> float:
    """The share of time in which a subscriber that comes and goes is subscribed."""
    if stays is None or away is None:
        return 1.0
    return stays.mean_s / (stays.mean_s + away.mean_s)


def log_absent(present: float) -> float:
    """Log P[somebody is away], of a share of time there."""
    return math.log1p(-present) if present < 1.0 else _NEVER_ABSENT


def guests_of_classes(system: System, routes: Routes) -> list[tuple[Guests, ...]]:
    """For every class of contents: who comes and goes, where, and wants it."""
    stays, away, count = (column(system.subscribers, name) for name in ("stays", "away", "count"))
    comes = stays.where(lambda law: law is not None)
    logs = [
        count.values[count.codes[index]]
        * log_absent(
            present_share(stays.values[stays.codes[index]], away.values[away.codes[index]])
        )
        for index in comes
    ]
    table = sparse.coo_array(
        (np.array(logs), (routes.home_of_subscriber[comes], routes.filter_of_subscriber[comes])),
        shape=(len(system.brokers), routes.wants.shape[1]),
    ).tocsr()
    found = (table @ sparse.csc_array(routes.wants.T, dtype=np.float64)).tocsc()
    return [
        tuple(
            Guests(broker=int(broker), log_absent=float(log))
            for broker, log in zip(
                found.indices[first:last], found.data[first:last].round(12), strict=True
            )
        )
        for first, last in zip(found.indptr[:-1], found.indptr[1:], strict=True)
    ]


def drawn_to(
    onwards: Mapping[int, tuple[int, int]], brokers: Sequence[int], homes: Iterable[int]
) -> int:
    """The last broker of a way, by its place, that events come to in any case: somebody lasting
    wants them there or beyond; else the first.

    ``onwards`` says which broker is next on the way to the end of it.
    """
    place = {broker: index for index, broker in enumerate(brokers)}
    last = max((place.get(broker, 0) for broker in homes), default=0)
    for broker in homes if last < len(brokers) - 1 else ():
        last = max(last, _joins(onwards, place, broker))
    return last


def draws(
    onwards: Mapping[int, tuple[int, int]],
    brokers: Sequence[int],
    least: int,
    guests: Iterable[Guests],
) -> tuple[tuple[int, float], ...]:
    """How likely it is that a broker of a way, by its place, is the furthest that others draw to.

    ``least`` is the place that events come to in any case.

    >>> line = {0: (1, 0), 1: (2, 1)}  # 0, 1, 2
    >>> draws(line, [0, 1, 2], 0, [Guests(broker=1, log_absent=math.log(0.5))])
    ((0, 0.5), (1, 0.5))
    """
    place = {broker: index for index, broker in enumerate(brokers)}
    nobody = [0.0] * len(brokers)  # log P[nobody joins the way just there]
    for each in guests:
        nobody[_joins(onwards, place, each.broker)] += each.log_absent
    found, beyond = [], 0.0
    for at in range(len(brokers) - 1, least, -1):  # nobody beyond, somebody here
        found.append((at, math.exp(beyond) * -math.expm1(nobody[at])))
        beyond += nobody[at]
    found.append((least, math.exp(beyond)))
    return tuple((at, chance) for at, chance in reversed(found) if chance > 0.0)


def others(guests: Iterable[Guests], broker: int, present: float) -> list[Guests]:
    """The guests without one of them, who is there for a share of the time."""
    return [
        Guests(broker=each.broker, log_absent=min(each.log_absent - log_absent(present), 0.0))
        if each.broker == broker
        else each
        for each in guests
    ]


def _joins(onwards: Mapping[int, tuple[int, int]], place: Mapping[int, int], broker: int) -> int:
    """Where the way of a broker's events leaves another way, by the place on that."""
    while broker not in place:
        broker = onwards[broker][0]
    return place[broker]
