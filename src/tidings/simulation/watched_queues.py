"""The queue whose backlog is watched: a consumer group, a broker, or a subscriber's own queue."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidings.errors import InvalidInputError, UnsupportedError
from tidings.kernels.memory import World
from tidings.simulation import kernel_layout as layout
from tidings.simulation.groups import Group
from tidings.simulation.network import CompiledSystem


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedQueue:
    """A queue, what it is offered and what it can handle."""

    what: str
    name: str
    rate_per_s: float
    capacity_per_s: float
    group: int = -1  # its position among consumer groups; −1: it is none
    stations: range  # where events wait, those of a group's members
    servers: int = 1  # events that are handled at a time
    buffer: int | None = None
    shares: tuple[tuple[float, float], ...]  # of the events, of each part; what it handles a second
    is_steady: bool  # nothing but arrivals and services changes its backlog

    def __str__(self) -> str:
        return f"{self.what} '{self.name}'"

    @property
    def is_overloaded(self) -> bool:
        """Whether it is offered all that it can handle, or more."""
        return self.rate_per_s >= self.capacity_per_s

    def fluid_s(self, events: float) -> float | None:
        r"""Compute the time to work off so many events, in seconds, if all were a steady flow.

        .. math:: t = \max_i \frac{n_i}{c_i - \lambda_i}

        over the parts of the queue that are worked off apart: one, or one for each member that has
        partitions. None where something else changes the backlog too.
        """
        if not self.is_steady:
            return None
        spare = [each - share * self.rate_per_s for share, each in self.shares]
        parts = zip(self.shares, spare, strict=True)
        return max(share * events / left if left > 0.0 else np.inf for (share, _), left in parts)

    def watch(self, world: World) -> None:
        """Let a world count what waits here as its backlog."""
        world.tables["stations"]["urgency"][self.stations.start : self.stations.stop] = 1
        if self.group >= 0:
            world.tables["groups"]["urgency"][self.group] = 1
        record = world.record[0]
        record.watched_group = self.group
        record.first_watched, record.last_watched = self.stations.start, self.stations.stop


def find_queue(compiled: CompiledSystem, name: str) -> WatchedQueue:
    """Find the queue of a consumer group, of a broker or of a subscriber by its name."""
    for number, group in enumerate(compiled.groups):
        if group.subscriber.name == name:
            return _of_group(compiled, number, group)
    if name in compiled.system.broker_index:
        return _of_broker(compiled, name)
    for number, queue in enumerate(compiled.peer_queues):
        if queue.peer == f"subscriber {name}" and queue.kind == layout.AT_SUBSCRIBER:
            station = len(compiled.stations.all) + number
            capacity = 1.0 / queue.demand_s if queue.demand_s > 0.0 else np.inf
            return WatchedQueue(
                what="subscriber",
                name=name,
                rate_per_s=float(compiled.peer_arrivals[number]),
                capacity_per_s=capacity,
                stations=range(station, station + 1),
                shares=((1.0, capacity),),
                is_steady=_has_steady_arrivals(compiled),
            )
    known = [each.subscriber.name for each in compiled.groups]
    known += [each.name for each in compiled.system.brokers if each.stations]
    raise InvalidInputError(
        f"'{name}' has no queue; wants a consumer group, a broker with a service time or a "
        f"subscriber with a processing time, such as {', '.join(known[:5]) or 'none here'}"
    )


def _has_steady_arrivals(compiled: CompiledSystem) -> bool:
    """Test whether events come at one rate all the time, and none leaves before it is handled."""
    changing = compiled.faults.matter or compiled.day_s or compiled.record_s
    apart = any(queue.periods is not None for queue in compiled.peer_queues)
    return not (changing or apart or compiled.drops_events)


def _of_group(compiled: CompiledSystem, number: int, group: Group) -> WatchedQueue:
    tables, consumers = compiled.tables, group.consumers
    members = np.flatnonzero(tables["members"]["group"] == number)
    places = tables["places"][tables["members"]["place"][members]]
    stations = range(int(places["first_station"].min()), int(places["last_station"].max()))
    parts: tuple[tuple[float, float], ...] = ((1.0, group.able_per_s),)
    if consumers.partitions is not None:
        each = zip(group.offered_shares.tolist(), group.each_per_s.tolist(), strict=True)
        parts = tuple((share, able) for share, able in each if share > 0.0)
    crashing = any(each.failure for each in group.members)
    return WatchedQueue(
        what="consumer group",
        name=group.subscriber.name,
        rate_per_s=float(compiled.group_arrivals[number]),
        capacity_per_s=group.capacity_per_s,
        group=number,
        stations=stations,
        servers=len(group.members),
        buffer=consumers.buffer,
        shares=parts,
        is_steady=_has_steady_arrivals(compiled) and not (crashing or consumers.acknowledges),
    )


def _of_broker(compiled: CompiledSystem, name: str) -> WatchedQueue:
    index = compiled.system.broker_index[name]
    stations = np.flatnonzero(compiled.stations.owner == index)
    if not stations.size:
        raise InvalidInputError(f"broker '{name}' has no service time, so nothing waits there")
    lines = compiled.tables["lines"]
    if len(lines) and np.any(lines["kind"][stations] != layout.PLAIN):
        raise UnsupportedError(
            f"broker '{name}' serves events other than first come, first served, which 'catchup' "
            "cannot stop; give it the discipline fcfs and one service time"
        )
    rate = float(compiled.carried.arrivals[index])
    load = float(compiled.carried.loads[stations].max())
    capacity = rate / load if load > 0.0 else np.inf
    buffers = [each.buffer for each in compiled.system.brokers[index].stations]
    return WatchedQueue(
        what="broker",
        name=name,
        rate_per_s=rate,
        capacity_per_s=capacity,
        stations=range(int(stations[0]), int(stations[-1]) + 1),
        servers=int(compiled.tables["stations"]["servers"][stations].sum()),
        buffer=min((each for each in buffers if each is not None), default=None),
        shares=((1.0, capacity),),
        is_steady=_has_steady_arrivals(compiled),
    )
