"""The queues of brokers for the kernel, and what each event type is to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tidings.errors import InvalidInputError
from tidings.kernels.records import make_records
from tidings.model.arrays import Bools, Floats, Ints
from tidings.model.behaviour import Station
from tidings.model.laws import Law
from tidings.model.routes import Routes, type_of
from tidings.model.system import System
from tidings.simulation import kernel_layout as layout

_KINDS = {
    "fcfs": layout.IN_TURN,
    "priority": layout.IN_TURN,
    "processor-sharing": layout.SHARING,
    "infinite-server": layout.UNLIMITED,
}


@dataclass(frozen=True, kw_only=True)
class Stations:
    """All stations of all brokers, broker after broker, in the order in which events pass them."""

    system: System
    types: tuple[str, ...]  # of events; a single one where no station tells types apart
    type_of_row: Ints  # by row of the routes

    @cached_property
    def all(self) -> tuple[Station, ...]:
        """The stations themselves."""
        return tuple(station for broker in self.system.brokers for station in broker.stations)

    @cached_property
    def owner(self) -> Ints:
        """The broker of each station."""
        counts = [len(broker.stations) for broker in self.system.brokers]
        return np.repeat(np.arange(len(counts)), counts).astype(np.int64)

    @cached_property
    def unlimited(self) -> Bools:
        """Of which stations there are servers for all events, however many come."""
        return np.array([each.discipline == "infinite-server" for each in self.all], dtype=np.bool_)

    @cached_property
    def laws(self) -> tuple[tuple[Law, ...], ...]:
        """The service times of each station, by event type."""
        stored = self.system.stored_subscriptions
        laws, problems = [], []
        places = [at for broker in self.system.brokers for at in broker.station_places]
        for station, at in zip(self.all, places, strict=True):
            own = [station.law_of(each, stored) for each in self.types]
            problems += [
                station.no_demand(at, each)
                for each, law in zip(self.types, own, strict=True)
                if law is None
            ]
            laws.append(tuple(law for law in own if law is not None))
        if problems:
            raise InvalidInputError("some event types have no service time:", problems)
        return tuple(laws)

    @cached_property
    def work_s(self) -> Floats:
        """Mean seconds for an event, over the servers, [station, type]; 0 with servers for all."""
        means_s = np.array([[law.mean_s for law in own] for own in self.laws])
        servers = np.array([float(each.servers) for each in self.all])
        servers[self.unlimited] = np.inf
        work_s: Floats = means_s.reshape(-1, len(self.types)) / servers[:, None]
        return work_s

    def tables(self, laws: Callable[..., int], streams: Callable[..., int]) -> dict[str, Any]:
        """Make places, stations and servers of brokers; also lines, if any station is one."""
        places: list[tuple[int, ...]] = []
        stations: list[tuple[int, ...]] = []
        servers: list[tuple[float, ...]] = []
        lines: list[tuple[int, ...]] = []
        demands: list[tuple[int, ...]] = []
        for index, broker in enumerate(self.system.brokers):
            first = len(stations)
            for place, station in enumerate(broker.stations):
                number, at = len(stations), len(servers)
                own = [laws(law) for law in self.laws[number]]
                kind = _kind(station)
                stream = streams(f"broker {broker.name}", f"service {place}")
                limit = layout.NO_LIMIT if station.buffer is None else station.buffer
                idle = at if kind == layout.PLAIN else -1  # those of a line are known to it alone
                stations.append(
                    (index, own[0], stream, at, station.servers, limit, 1, idle, -1, -1, 0)
                )
                lines.append((int(kind), len(demands), -1, -1))
                given = dict(station.priorities)
                ranks = [given.get(each, 0) for each in self.types]
                demands += list(zip(own, ranks, strict=True)) if kind != layout.PLAIN else []
                if kind == layout.PLAIN:
                    servers += _idle_servers(number, at, station.servers)
            places.append((first, len(stations), layout.AT_BROKER, index))
        all_plain = not demands
        return {
            "places": make_records(layout.PLACE, places),
            "stations": make_records(layout.STATION, stations),
            "servers": make_records(layout.SERVER, servers),
            "lines": make_records(layout.LINE, [] if all_plain else lines),
            "demands": make_records(layout.DEMAND, demands),
            "kinds_of_rows": self.type_of_row[:0] if all_plain else self.type_of_row,
        }


def line_tables(before: Mapping[str, Any]) -> dict[str, Any]:
    """Give the lines their servers, behind those of all other stations, of peers too."""
    servers = list(before["servers"].tolist())
    stations, lines = before["stations"].copy(), before["lines"].copy()
    for number in np.flatnonzero(lines["kind"] != layout.PLAIN).tolist():
        at = len(servers)
        stations["first_server"][number] = lines["idle"][number] = at
        # All that are served at once have one moment in common, when the first is done.
        in_turn = lines["kind"][number] == layout.IN_TURN
        count = int(stations["servers"][number]) if in_turn else 1
        servers += _idle_servers(number, at, count)
    return {
        "servers": make_records(layout.SERVER, servers),
        "stations": stations,
        "lines": lines,
    }


def _idle_servers(station: int, first: int, count: int) -> list[tuple[float, ...]]:
    """Make so many idle servers of a station, each pointing to the next, the last to none."""
    return [
        (station, -1, first + each + 1 if each < count - 1 else -1, 0.0) for each in range(count)
    ]


def _kind(station: Station) -> Any:
    """Give the kind of line that a station is, if any."""
    plain = station.discipline == "fcfs" and not station.demands
    return layout.PLAIN if plain else _KINDS[station.discipline]


def find_stations(system: System, routes: Routes) -> Stations:
    """Find all stations of brokers, and which types of events they tell apart."""
    every = (station for broker in system.brokers for station in broker.stations)
    types = [""] * len(routes.rows)
    if any(station.demands or station.priorities for station in every):
        types = [type_of(system, routes.events[row.event]) for row in routes.rows]
    known = {each: number for number, each in enumerate(dict.fromkeys(types))}
    return Stations(
        system=system,
        types=tuple(known),
        type_of_row=np.array([known[each] for each in types], dtype=np.int64),
    )
