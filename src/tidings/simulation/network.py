"""A system compiled for the kernel: names become positions, laws become rows of one table."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidings.kernels.bins import bin_tables
from tidings.kernels.records import Numbering, encode, make_records
from tidings.model import delay_grid
from tidings.model.arrays import Floats, Ints
from tidings.model.behaviour import Channel
from tidings.model.laws import Deterministic, Law, residual
from tidings.model.one_by_one import one_by_one
from tidings.model.publishing import Burst
from tidings.model.routes import Routes, route
from tidings.model.system import EXPIRY, Publisher, System
from tidings.simulation import kernel_layout as layout
from tidings.simulation.audience import (
    find_curves,
    find_receivers,
    is_instant,
    meet,
    receiver_lists,
)
from tidings.simulation.cells import Carried, RouteCells, carried, find_cells
from tidings.simulation.churn import SystemChurners, churn_numbers, churn_tables, find_churn
from tidings.simulation.delay_days import delay_day_tables
from tidings.simulation.failures import Faults, fault_numbers, fault_tables, find_faults
from tidings.simulation.groups import MESSAGE_COPIES, Group, find_groups, group_tables
from tidings.simulation.peers import (
    SETTLING,
    PeerQueue,
    day_tables,
    find_peer_queues,
    met_queues,
    peer_tables,
)
from tidings.simulation.schedules import Replay, find_replays
from tidings.simulation.senders import Senders, find_senders
from tidings.simulation.settling import SlowQueue, find_slow_queues
from tidings.simulation.stations import Stations, find_stations, line_tables
from tidings.simulation.wires import Wires, find_wires, landing_tables


@dataclass(frozen=True, kw_only=True)
class CompiledSystem:
    """A system, its routes, and everything the kernel needs to begin with."""

    system: System  # as it is simulated
    asked: System  # as it was given: some of its subscribers may be several of ``system``
    whose: Ints  # which of these each subscriber of ``system`` is
    routes: Routes
    cells: RouteCells
    faults: Faults
    stations: Stations  # of brokers
    wires: Wires
    peer_queues: tuple[PeerQueue, ...]  # in the order of their places, after those of brokers
    groups: tuple[Group, ...]  # of consumers, in the order of their receivers
    senders: Senders
    churn: SystemChurners
    numbers: Mapping[str, float]  # of the world, as they are in the beginning
    tables: Mapping[str, Any]  # of the world likewise; never changed, always copied
    stream_keys: tuple[tuple[str, str], ...]
    receiver_of: Ints  # of each subscriber; −1: it is plain
    curves: int  # histograms of plain deliveries

    @property
    def has_queues(self) -> bool:
        """Whether anything ever waits."""
        return len(self.tables["stations"]) > 0 or len(self.wires.keys) > 0

    @property
    def drops_events(self) -> bool:
        """Whether events may end on their way: full buffers, expired, crashes, nobody there."""
        bounded = any(station.buffer is not None for station in self.stations.all)
        bounded = bounded or any(queue.buffer is not None for queue in self.peer_queues)
        bounded = bounded or any(group.drops_events for group in self.groups)
        crashing = self.faults.matter and not self.faults.buffering
        return bounded or crashing or self.churn.matters or self.system.expired != EXPIRY[0]

    @property
    def marks_per_event(self) -> int:
        """Brokers at which it must be known whether an event has come before: all, or none."""
        twice = self.faults.buffering and self.faults.bypassing
        return len(self.system.brokers) if twice else 0

    @property
    def passages_per_event(self) -> int:
        """Brokers at which it must be known when an event was there: all, or none."""
        return len(self.system.brokers) if self.churn.matters else 0

    @property
    def curve_table(self) -> Ints:
        """The histogram of plain deliveries of each [broker, class]; −1 where there is none."""
        table: Ints = self.tables["curve_of"].reshape(-1, self.routes.class_count)
        return table

    @cached_property
    def publisher_rates(self) -> NDArray[np.float64]:
        """Events published per second, by publisher."""
        return np.array([publisher.rate_per_s for publisher in self.system.publishers])

    @property
    def settling_s(self) -> float:
        """How long a run should go on at least before what is measured, in seconds."""
        longest_s = max((queue.cycle_s for queue in self.peer_queues), default=0.0)
        longest_s = max(longest_s, *(each.cycle_s for each in self.bursts), 0.0)
        longest_s = max(longest_s, *(each.cycle_s for each in self.groups), 0.0)
        return max(self.faults.settling_s, self.churn.settling_s, SETTLING * longest_s)

    @property
    def day_s(self) -> float:
        """How long the longest day of rates, delays or a record is, in seconds; 0: none has one."""
        days = (each.rates for each in self.system.publishers if each.rates is not None)
        of_records = (each.cycle_s for each in self.records)
        of_rates = (rates.length_s for rates in days)
        return max((*of_rates, *of_records, self.delay_day_s), default=0.0)

    @property
    def delay_day_s(self) -> float:
        """How long the longest day of delays is, in seconds; 0: none has one."""
        days = self.tables["delay_days"]
        return float((days["slot"] * (days["last"] - days["first"])).max(initial=0.0))

    @cached_property
    def records(self) -> tuple[Replay, ...]:
        """Records that publishers replay, each once, in the time of the simulation."""
        return find_replays(self.system)

    @property
    def record_s(self) -> float:
        """How long the longest record is that is replayed, in seconds; 0: none is."""
        return max((each.length_s for each in self.records), default=0.0)

    @property
    def bursts(self) -> Iterator[Burst]:
        """All sources that are on and off by turns."""
        given = (each.publishes for each in self.system.publishers if each.publishes is not None)
        return (burst for each in given for burst in each.bursts)

    @cached_property
    def group_arrivals(self) -> NDArray[np.float64]:
        """Events per second that come to each consumer group, if nothing is dropped before."""
        subscriber_of = {int(r): i for i, r in enumerate(self.receiver_of) if r >= 0}
        rates_per_s = [self._wanted_per_s(subscriber_of[each.receiver]) for each in self.groups]
        return np.array(rates_per_s, dtype=np.float64)

    def _wanted_per_s(self, index: int) -> float:
        """Compute events per second that come to a subscriber's home broker and that it wants."""
        return float(self.cells.flow_per_s[self.wanted_cells(index)].sum())

    def wanted_cells(self, index: int) -> Ints:
        """Find the cells at a subscriber's home broker that have events which it wants."""
        classes = np.array([row.content_class for row in self.routes.rows])[self.cells.row]
        here = self.cells.broker == self.routes.home_of_subscriber[index]
        cells: Ints = np.flatnonzero(here & self.routes.wanted_by(index)[classes])
        return cells

    @cached_property
    def publisher_of_cell(self) -> Ints:
        """The publisher of each cell's events."""
        owners: Ints = np.array([row.publisher for row in self.routes.rows])[self.cells.row]
        return owners

    @cached_property
    def slow_queues(self) -> list[SlowQueue]:
        """In what time each queue forgets that it started empty."""
        return find_slow_queues(self)

    @cached_property
    def peer_arrivals(self) -> NDArray[np.float64]:
        """Events per second that come to each queue of a peer, if nothing is dropped before."""
        rates_per_s = []
        subscriber_of = {int(r): i for i, r in enumerate(self.receiver_of) if r >= 0}
        for queue in self.peer_queues:
            if queue.kind == layout.FROM_PUBLISHER:
                rates_per_s.append(self.publisher_rates[queue.owner])
                continue
            index = subscriber_of[queue.owner]
            rate = self._wanted_per_s(index)
            crossed = queue.kind == layout.AT_SUBSCRIBER
            rate *= self.system.subscribers[index].link.reliability if crossed else 1.0
            rates_per_s.append(rate)
        return np.array(rates_per_s, dtype=np.float64)

    @cached_property
    def wire_loads(self) -> tuple[Floats, Floats]:
        """How busy each wire is kept, and by how many events per second, if nothing is dropped."""
        first = {int(r): i for i, r in reversed(list(enumerate(self.receiver_of))) if r >= 0}
        receivers = [first[number] for number in range(len(first))]
        return self.wires.loads(self.routes, self.cells, self.publisher_rates.tolist(), receivers)

    @cached_property
    def carried(self) -> Carried:
        """What is carried in the long run, if no broker drops anything; of brokers' stations."""
        return carried(self.cells, len(self.system.brokers), self.stations)


def compile_system(system: System) -> CompiledSystem:
    """Turn a system into arrays. The caller has made sure that the simulator handles it."""
    asked = system
    system, whose = one_by_one(asked, meet)
    routes = route(system)
    laws, streams = Numbering(), Numbering()
    rows, first_rows = _rows(system, routes, laws)
    publishers = _publishers(system, routes, first_rows, laws, streams)
    representatives, receiver_of = find_receivers(system, routes)
    days = Numbering()
    days(None)  # number 0: alike at all times
    channels = _channels(system, routes, representatives, (laws, streams, days))
    receivers = _receiver_records(system, representatives, len(channels), laws, streams)
    stations = find_stations(system, routes)
    curve_of, curves = find_curves(routes, receiver_of, len(system.brokers))
    out_first, out_arcs = _outgoing(routes, len(system.brokers))
    receivers_first, receivers_of = receiver_lists(routes, representatives, len(system.brokers))
    cells = find_cells(routes, [publisher.rate_per_s for publisher in system.publishers], system)
    tables = {
        "publishers": publishers,
        "rows": rows,
        "channels": channels,
        "receivers": receivers,
        "out_first": out_first,
        "out_arcs": out_arcs,
        "cell_of": cells.table(len(routes.rows), len(system.brokers)).ravel(),
        "curve_of": curve_of.ravel(),
        "receivers_first": receivers_first,
        "receivers_of": receivers_of,
        **stations.tables(laws, streams),
        **delay_day_tables(days.known),
    }
    wires = find_wires(system, routes, representatives)
    tables |= wires.tables(channels)
    faults = find_faults(system, representatives)
    tables |= fault_tables(faults, system, routes, laws, streams)
    queues = find_peer_queues(system, [system.subscribers[index] for index in representatives])
    tables |= day_tables(system) | peer_tables(queues, tables, laws, streams)
    groups = find_groups([system.subscribers[index] for index in representatives])
    tables |= group_tables(groups, tables, laws, streams)
    reached = cells.table(len(routes.rows), len(system.brokers))
    senders = find_senders(system, routes, reached, groups, representatives)
    tables |= senders.tables(tables, groups)
    tables |= landing_tables(_with_own_arrivals(wires, faults, len(receivers)), tables)
    churn = find_churn(system, routes, representatives)
    tables |= churn_tables(churn, tables, cells, laws, streams)
    first_line = len(publishers) + len(tables["servers"])
    tables |= line_tables(tables)
    return CompiledSystem(
        system=system,
        asked=asked,
        whose=whose,
        routes=routes,
        cells=cells,
        faults=faults,
        stations=stations,
        wires=wires,
        peer_queues=queues,
        groups=groups,
        senders=senders,
        churn=churn,
        numbers={
            **_numbers(system, routes, faults, tables, groups),
            **churn_numbers(churn, tables),
            "first_line": first_line,
        },
        tables=tables | _law_tables(laws),
        stream_keys=tuple(streams.known),
        receiver_of=receiver_of,
        curves=curves,
    )


def _with_own_arrivals(wires: Wires, faults: Faults, receivers: int) -> list[int]:
    """List the receivers whose events are followed on their own links, be they measured or not."""
    matters = wires.of_channel >= 0
    matters[list(faults.client_channels)] = True
    return list(np.flatnonzero(matters[matters.size - receivers :]).tolist())


def _law_tables(laws: Numbering) -> dict[str, Any]:
    table = encode(laws.known)
    guess, edges = bin_tables()
    records = make_records(layout.LAW, list(zip(table.kinds, table.offsets, strict=True)))
    return {
        "laws": records,
        "law_params": table.params,
        "bin_guess": guess,
        "bin_edges": edges,
    }


def _numbers(
    system: System,
    routes: Routes,
    faults: Faults,
    tables: dict[str, Any],
    groups: tuple[Group, ...],
) -> dict[str, float]:
    first_switch = len(tables["publishers"]) + len(tables["servers"])
    queueing, most_queueing = met_queues(tables)
    # One copy more may be kept for the subscribers of a broker, and go round a failure to any.
    round_failures = 1 + len(system.brokers) if faults.matter else 0
    at_once = max((each.at_once for each in groups), default=0)
    if groups:
        most_queueing = MESSAGE_COPIES * (at_once + most_queueing)
    fan_out = 1 + int(np.diff(tables["out_first"]).max()) + round_failures + most_queueing
    expiry, receivers = EXPIRY.index(system.expired), len(tables["receivers"])
    peers = len(tables["places"]) - len(system.brokers)
    return {
        "expiry": expiry,
        "publisher_count": len(system.publishers),
        "broker_count": len(system.brokers),
        "class_count": routes.class_count,
        "bin_count": delay_grid.BINS,
        "receiver_count": receivers,
        "queueing": queueing,
        "arc_count": len(routes.arcs),
        "sorting": expiry == 2 or len(tables["lines"]) > 0,
        "bare": not (peers or faults.matter or expiry),
        "fan_out": fan_out,
        "deliveries_at_once": 1 + receivers + at_once,
        "turns_at_once": len(tables["switches"]) + len(tables["components"]),
        "passing_head": -1,
        "passing_tail": -1,
        "blocked_head": -1,
        "blocked_tail": -1,
        **fault_numbers(faults, tables, first_switch),
    }


def _rows(system: System, routes: Routes, laws: Callable[..., int]) -> tuple[Any, list[int]]:
    """Make the rows in the order of their publishers, as the routes have them."""
    records, firsts, below, publisher = [], [0] * (len(system.publishers) + 1), 0.0, -1
    for index, row in enumerate(routes.rows):
        if row.publisher != publisher:
            publisher, below = row.publisher, 0.0
            firsts[publisher] = index
        below += row.probability
        lifetime = -1 if row.lifetime is None else laws(row.lifetime)
        tree = routes.tree_of_class[row.content_class]
        records.append((below, publisher, row.content_class, tree, lifetime))
    firsts[-1] = len(records)
    return make_records(layout.ROW, records), firsts


def _publishers(
    system: System,
    routes: Routes,
    first_rows: list[int],
    laws: Callable[..., int],
    streams: Callable[..., int],
) -> Any:
    records = []
    days, schedules = itertools.count(), itertools.count(-2, -1)
    for index, publisher in enumerate(system.publishers):
        # With rates by time of day or a schedule no law is drawn from; the first will do.
        every = publisher.every or Deterministic(value_s=0.0)
        name = f"publisher {publisher.name}"
        records.append(
            (
                routes.home_of_publisher[index],
                first_rows[index],
                first_rows[index + 1],
                laws(every),
                laws(residual(every)),
                _by_clock(publisher, days, schedules),
                -1,  # always connected
                len(routes.arcs) + index,
                streams(name, "phase"),
                streams(name, "interval"),
                streams(name, "content"),
                streams(name, "lifetime"),
            )
        )
    return make_records(layout.PUBLISHER, records)


def _by_clock(publisher: Publisher, days: Iterator[int], schedules: Iterator[int]) -> int:
    """Give the number of a publisher's day of rates, or of its schedule; −1: neither."""
    if publisher.publishes is not None:
        return next(schedules)
    return -1 if publisher.rates is None else next(days)


def _channels(
    system: System,
    routes: Routes,
    representatives: list[int],
    numbers: tuple[Callable[..., int], Callable[..., int], Callable[..., int]],
) -> Any:
    """Make the channels of arcs, then of publishers, then of receivers.

    ``numbers`` are those of laws, of streams, and of days of delays.
    """
    laws, streams, days = numbers
    names = [broker.name for broker in system.brokers]
    ends: list[tuple[str, Channel, int]] = [
        (f"link {names[arc.source]}--{names[arc.target]}", arc.channel, arc.target)
        for arc in routes.arcs
    ]
    homes = routes.home_of_publisher
    ends += [(f"publisher {p.name}", p.link, homes[i]) for i, p in enumerate(system.publishers)]
    chosen = [system.subscribers[index] for index in representatives]
    ends += [(f"subscriber {each.name}", each.link, -1) for each in chosen]
    return make_records(
        layout.CHANNEL,
        [
            (
                channel.reliability,
                is_instant(channel),
                laws(channel.delay),
                streams(name, "link loss"),
                streams(name, "link delay"),
                target,
                channel.decided_anew,
                -1,  # nothing was sent yet
                days(channel.delay_by_time),
            )
            for name, channel, target in ends
        ],
    )


def _receiver_records(
    system: System,
    representatives: list[int],
    channels: int,
    laws: Callable[..., int],
    streams: Callable[..., int],
) -> Any:
    records = []
    first = channels - len(representatives)
    for position, index in enumerate(representatives):
        subscriber = system.subscribers[index]
        own: Law | None = subscriber.lifetime
        stream = streams(f"subscriber {subscriber.name}", "lifetime")
        records.append((first + position, -1 if own is None else laws(own), stream, -1, -1, -1, -1))
    return make_records(layout.RECEIVER, records)


def _outgoing(routes: Routes, brokers: int) -> tuple[Ints, Ints]:
    """List the arcs that leave each broker in each tree, one list after the other."""
    lists = [tree.outgoing[broker] for tree in routes.trees for broker in range(brokers)]
    first = np.concatenate([[0], np.cumsum([len(each) for each in lists])])
    arcs = [arc for each in lists for arc in each]
    return first.astype(np.int64), np.array(arcs, dtype=np.int64)
