"""Queues of peers that come and go, or take their time to take events in, for the kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from tidings.kernels.records import make_records, more_records
from tidings.model.connectivity_traces import Periods, periods_of
from tidings.model.laws import Deterministic, Law, residual
from tidings.model.system import Subscriber, System
from tidings.simulation import kernel_layout as layout

SETTLING = 5.0  # cycles of ON and OFF before the state of a peer's queue is as in the long run
_AT_ONCE = Deterministic(value_s=0.0)
_KINDS = {
    "places": layout.PLACE,
    "stations": layout.STATION,
    "servers": layout.SERVER,
    "switches": layout.SWITCH,
}
_OWNERS = {
    layout.FROM_PUBLISHER: ("publishers", "waits_at"),
    layout.TO_SUBSCRIBER: ("receivers", "waits_at"),
    layout.AT_SUBSCRIBER: ("receivers", "taken_in_at"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerQueue:
    """One queue of a peer; with ``periods`` it is served only while the peer is connected."""

    peer: str  # what it is, and its name
    kind: int  # of place
    owner: int  # the publisher's position, or the receiver's
    service: Law
    periods: Periods | None = None
    buffer: int | None = None

    @property
    def demand_s(self) -> float:
        """Mean time that one event keeps the peer busy, its absences included, in seconds."""
        return self.service.mean_s / (self.periods.connected if self.periods else 1.0)

    @property
    def cycle_s(self) -> float:
        """Mean time from one connection to the next, in seconds."""
        if self.periods is None:
            return 0.0
        return self.periods.on.mean_s + self.periods.off.mean_s


def find_peer_queues(system: System, followed: Sequence[Subscriber]) -> tuple[PeerQueue, ...]:
    """Find all queues of peers; ``followed`` are the subscribers that the receivers stand for."""
    queues = [
        _gated("publisher", publisher, layout.FROM_PUBLISHER, owner)
        for owner, publisher in enumerate(system.publishers)
        if publisher.connectivity is not None
    ]
    for owner, subscriber in enumerate(followed):
        if subscriber.connectivity is not None:
            queues.append(_gated("subscriber", subscriber, layout.TO_SUBSCRIBER, owner))
        if subscriber.processing is not None and subscriber.consumers is None:
            queue = PeerQueue(
                peer=f"subscriber {subscriber.name}",
                kind=layout.AT_SUBSCRIBER,
                owner=owner,
                service=subscriber.processing,
            )
            queues.append(queue)
    return tuple(queues)


def _gated(what: str, peer: Any, kind: int, owner: int) -> PeerQueue:
    return PeerQueue(
        peer=f"{what} {peer.name}",
        kind=kind,
        owner=owner,
        service=peer.connectivity.service or _AT_ONCE,
        periods=periods_of(peer.connectivity, peer.name),
        buffer=peer.connectivity.buffer,
    )


def peer_tables(
    queues: Sequence[PeerQueue],
    before: Mapping[str, Any],
    laws: Callable[..., int],
    streams: Callable[..., int],
) -> dict[str, Any]:
    """Make the tables of places, stations, servers and switches, and of their owners.

    Rows of peers come behind those that there are.
    """
    first = {name: len(before[name]) for name in ("places", "stations", "servers")}
    rows: dict[str, list[tuple[Any, ...]]] = {name: [] for name in _KINDS}
    owners = {name: before[name].copy() for name in ("publishers", "receivers")}
    rest: Any = cache(residual)  # many peers share their laws, and some take long to work out
    periods: list[float] = []
    for number, queue in enumerate(queues):
        place, station, server = (first[name] + number for name in first)
        table, field = _OWNERS[queue.kind]
        owners[table][field][queue.owner] = place
        purpose = "processing" if queue.periods is None else "handing over"
        limit = layout.NO_LIMIT if queue.buffer is None else queue.buffer
        law, stream = laws(queue.service), streams(queue.peer, purpose)
        rows["places"].append((station, station + 1, queue.kind, queue.owner))
        rows["stations"].append((place, law, stream, server, 1, limit, 1, server, -1, -1, 0))
        rows["servers"].append((station, -1, -1, 0.0))
        if queue.periods is not None:
            ends = len(periods), len(periods) + len(queue.periods.loop_s)
            periods += queue.periods.loop_s
            stream = streams(queue.peer, "connectivity")
            chosen = queue.periods.on, queue.periods.off
            all_four = (*map(laws, chosen), *(laws(rest(law)) for law in chosen))
            switch = (queue.periods.connected, *all_four, stream, 0, 0, station, *ends)
            rows["switches"].append(switch)
    joined = {name: more_records(before[name], kind, rows[name]) for name, kind in _KINDS.items()}
    return joined | owners | {"periods": np.array(periods, dtype=np.float64)}


def met_queues(tables: Mapping[str, Any]) -> tuple[bool, int]:
    """Test whether receivers have queues; count those with one that an event can meet at a broker.

    The count is the largest possible one.
    """
    receivers = tables["receivers"]
    queueing = np.maximum(receivers["waits_at"], receivers["taken_in_at"]) >= 0
    so_far = np.concatenate([[0], np.cumsum(queueing[tables["receivers_of"]])])
    return bool(queueing.any()), int(np.diff(so_far[tables["receivers_first"]]).max(initial=0))


def day_tables(system: System) -> dict[str, Any]:
    """Make the days of rates, a row for each publisher that has one, and all their rates.

    The rates come one day after another. Publishers without one are told apart by their own record.
    """
    days: list[tuple[float, ...]] = []
    per_s: list[float] = []
    for publisher in system.publishers:
        rates = publisher.rates
        if rates is not None:
            ends = len(per_s), len(per_s) + len(rates.per_s)
            days.append((rates.slot_s, rates.slot_s * sum(rates.per_s), *ends, int(rates.repeat)))
            per_s += rates.per_s
    return {
        "days": make_records(layout.DAY, days),
        "day_rates": np.array(per_s, dtype=np.float64),
    }
