r"""Peers that are connected and away by turns: what their events wait for, and how long.

Events are kept while the peer is away; the one being handed over is gone on with after the next
connection. The peer's times ON and OFF run on whether events wait or not. With times ON exponential
(mean 1/f), OFF and service with transforms o and h, and Poisson arrivals at the rate λ, a service
takes with its interruptions a time C of transform c(z) = h(z + f(1 − o(z))), and a response is

    wait of an M/G/1 queue with services C  +  the rest of an OFF time, if there is one now  +  C,

three independent times (Fuhrmann and Cooper's decomposition). Exact under these conditions; other
times ON and other arrivals are taken as if they were so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from tidings.errors import UnsupportedError
from tidings.model.arrays import Complexes
from tidings.model.behaviour import Connectivity
from tidings.model.connectivity_traces import periods_of
from tidings.model.laws import Deterministic, Law
from tidings.model.loads import FULL_LOAD
from tidings.model.record_tables import column
from tidings.model.system import Publisher, Subscriber, System
from tidings.theory.delay.delays import (
    Delays,
    all_lost,
    from_law,
    from_transform,
    starting_at_0,
)
from tidings.theory.delay.grids import Grid

Peer = TypeVar("Peer", Publisher, Subscriber)


def peer_load(connectivity: Connectivity, rate_per_s: float) -> float:
    """Compute the load of a peer: hand-over time per second, absences counted in."""
    on, off = periods(connectivity)
    handover_s = 0.0 if connectivity.service is None else connectivity.service.mean_s
    return rate_per_s * handover_s * (1.0 + off.mean_s / on.mean_s)


def peer_delay(grid: Grid, connectivity: Connectivity, rate_per_s: float) -> Delays:
    """Compute what events wait for a peer and its hand-over, in seconds."""
    load = peer_load(connectivity, rate_per_s)
    if load >= FULL_LOAD:
        return all_lost(grid, "overload")
    on, off = periods(connectivity)
    absence = _absence(grid, on, off)
    service = connectivity.service
    if service is None or service.mean_s == 0.0:
        return absence
    z = grid.z
    base, fixed_s = starting_at_0(service)
    absences = (1.0 - off.transform(z)) / on.mean_s
    random = base.transform(z + absences) * np.exp(-fixed_s * absences)
    completion = random * np.exp(-fixed_s * z)
    wait: Complexes = z * (1.0 - load) / (z - rate_per_s * (1.0 - completion))
    slowdown = 1.0 + off.mean_s / on.mean_s
    demand_s = service.mean_s * slowdown
    square_s2 = slowdown**2 * _square_s2(service) + service.mean_s * _square_s2(off) / on.mean_s
    wait_s = rate_per_s * square_s2 / (2.0 * (1.0 - load))
    uninterrupted = float(base.cdf(0.0)) * math.exp(-fixed_s / on.mean_s)
    served = from_transform(grid, random, mean_s=demand_s - fixed_s, atom=uninterrupted)
    served = replace(served, shift_s=np.array([fixed_s]))
    return from_transform(grid, wait, mean_s=wait_s, atom=1.0 - load).series(absence).series(served)


def _absence(grid: Grid, on: Law, off: Law) -> Delays:
    """Compute the time until a peer is back, from any moment on."""
    away = off.mean_s / (on.mean_s + off.mean_s)
    rest = (1.0 - off.transform(grid.z)) / (grid.z * off.mean_s)
    mean_s = away * 0.5 * off.mean_s * (1.0 + off.scv)
    return from_transform(grid, 1.0 - away + away * rest, mean_s=mean_s, atom=1.0 - away)


def _square_s2(law: Law) -> float:
    return law.mean_s**2 * (1.0 + law.scv)


def periods(connectivity: Connectivity) -> tuple[Law, Law]:
    """Give the laws of the times ON and OFF; traces must have become laws before."""
    zero = Deterministic(value_s=0.0)
    return connectivity.on or zero, connectivity.off or zero


def with_periods_as_laws(system: System) -> System:
    """Replace every trace of connections by the laws of its whole periods.

    Periods are then drawn independently, as ``replay: resample`` does.
    """
    publishers, subscribers = _as_laws(system.publishers), _as_laws(system.subscribers)
    if publishers is system.publishers and subscribers is system.subscribers:
        return system
    return replace(system, publishers=tuple(publishers), subscribers=subscribers)


def _as_laws(peers: Sequence[Peer]) -> Sequence[Peer]:
    if column(peers, "connectivity").where(_traced).size == 0:
        return peers
    return tuple(_with_laws(peer) if _traced(peer.connectivity) else peer for peer in peers)


def _traced(connectivity: Connectivity | None) -> bool:
    return connectivity is not None and connectivity.trace is not None


def _with_laws(peer: Peer) -> Peer:
    connectivity = peer.connectivity
    assert connectivity is not None
    if connectivity.replay == "loop":
        raise UnsupportedError(
            "theory does not handle replay: loop of the connectivity trace of "
            f"'{peer.name}'; use replay: resample, or simulate"
        )
    recorded = periods_of(connectivity, peer.name)
    return replace(
        peer, connectivity=replace(connectivity, trace=None, on=recorded.on, off=recorded.off)
    )


def on_scv_deviation(connectivity: Connectivity) -> float:
    """Tell how far times ON are from exponential: |log(c² + .1) − log 1.1|."""
    on, _ = periods(connectivity)
    return float(abs(np.log(on.scv + 0.1) - np.log(1.1)))


def entry_delay(grid: Grid, publisher: Publisher) -> Delays:
    """Compute what events take from a publisher to its home broker, its own wait included."""
    delay = from_law(grid, publisher.link.delay, publisher.link.reliability)
    if publisher.connectivity is None:
        return delay
    return peer_delay(grid, publisher.connectivity, publisher.rate_per_s).series(delay)
