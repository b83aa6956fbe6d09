"""Wires: what sends one event after the other, a link's own or a network that links share.

What is sent over a channel with a bandwidth waits for the wire, keeps it busy for its size over the
bandwidth, and then takes the channel's delay. A link has a wire for each direction. A network has
one for each direction of all its links together, or, half duplex, one for both. Towards brokers,
publishers send the way that links name first; subscribers are sent to the other way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tidings.errors import InvalidInputError
from tidings.kernels.records import make_records, more_records
from tidings.model.arrays import Floats, Ints
from tidings.model.behaviour import Channel
from tidings.model.routes import Routes
from tidings.model.system import System
from tidings.simulation import kernel_layout as layout

if TYPE_CHECKING:
    from tidings.simulation.cells import RouteCells

Key = tuple[str, str, str]  # what it is, its name, and the direction if there are two


@dataclass(frozen=True, slots=True, kw_only=True)
class Wires:
    """All wires, which channel sends over which, and how large the events of each row are."""

    keys: tuple[Key, ...]
    of_channel: Ints  # −1: there is none
    seconds_per_byte: Floats  # by channel
    sizes_bytes: Floats  # by row of the routes; empty where there are no wires

    def tables(self, channels: Any) -> dict[str, Any]:
        """Make the kernel's tables of wires and sizes, and of the channels with their wires."""
        wired = channels.copy()
        wired["wire"] = self.of_channel
        wired["seconds_per_byte"] = self.seconds_per_byte
        shared = [(0.0, int(what == "network")) for what, _, _ in self.keys]
        return {
            "channels": wired,
            "wires": make_records(layout.WIRE, shared),
            "sizes": self.sizes_bytes,
        }

    def loads(
        self,
        routes: Routes,
        cells: RouteCells,
        published: Sequence[float],
        receivers: Sequence[int],
    ) -> tuple[Floats, Floats]:
        """Compute how busy each wire is kept, and by how many events per second.

        ``published`` are the rates of publishers, ``receivers`` the subscribers with channels.
        """
        loads, rates = np.zeros(len(self.keys)), np.zeros(len(self.keys))
        if not self.keys:
            return loads, rates

        def send(channel: Any, rows: Ints, per_s: Floats) -> None:
            used = np.broadcast_to(self.of_channel[channel], per_s.shape)
            sent = used >= 0
            busy = self.sizes_bytes[rows] * self.seconds_per_byte[channel] * per_s
            np.add.at(loads, used[sent], busy[sent])
            np.add.at(rates, used[sent], per_s[sent])

        arc_of = {(arc.source, arc.target): at for at, arc in enumerate(routes.arcs)}
        passed = np.flatnonzero(cells.parent >= 0)
        before = cells.parent[passed]
        ends = zip(cells.broker[before].tolist(), cells.broker[passed].tolist(), strict=True)
        arcs = np.array([arc_of[pair] for pair in ends], dtype=np.int64)
        send(arcs, cells.row[passed], cells.flow_per_s[before])
        owner = np.array([row.publisher for row in routes.rows], dtype=np.int64)
        share = np.array([row.probability for row in routes.rows])
        rows = np.arange(owner.size)
        send(len(routes.arcs) + owner, rows, np.asarray(published)[owner] * share)
        classes = np.array([row.content_class for row in routes.rows])[cells.row]
        first = self.of_channel.size - len(receivers)
        for position, index in enumerate(receivers):
            if self.of_channel[first + position] >= 0:
                here = cells.broker == routes.home_of_subscriber[index]
                mine = np.flatnonzero(here & routes.wanted_by(index)[classes])
                send(first + position, cells.row[mine], cells.flow_per_s[mine])
        return loads, rates


def find_wires(system: System, routes: Routes, receivers: Sequence[int]) -> Wires:
    """Find the wires of all channels: of arcs, publishers and receivers, in this order."""
    networks = {network.name: network for network in system.networks}
    names = [broker.name for broker in system.brokers]
    ends: list[tuple[Channel, Key]] = []
    for at, arc in enumerate(routes.arcs):
        name = f"{names[arc.source]}--{names[arc.target]}"
        ends.append((arc.channel, ("link", name, "there" if at % 2 == 0 else "back")))
    ends += [(each.link, ("link of publisher", each.name, "there")) for each in system.publishers]
    followed = [system.subscribers[index] for index in receivers]
    ends += [(each.link, ("link of subscriber", each.name, "back")) for each in followed]
    keys: dict[Key, int] = {}
    wires, slowness = [], []
    for channel, (what, name, direction) in ends:
        network = None if channel.network is None else networks[channel.network]
        speed = channel.bandwidth_bytes_per_s
        if network is not None:
            what, name, direction = (
                "network",
                network.name,
                direction if network.duplex == "full" else "",
            )
            speed = speed or network.bandwidth_bytes_per_s
        wires.append(-1 if speed is None else keys.setdefault((what, name, direction), len(keys)))
        slowness.append(0.0 if speed is None else 1.0 / speed)
    return Wires(
        keys=tuple(keys),
        of_channel=np.array(wires, dtype=np.int64),
        seconds_per_byte=np.array(slowness),
        sizes_bytes=_sizes(system, routes) if keys else np.zeros(0),
    )


def _sizes(system: System, routes: Routes) -> Floats:
    for row in routes.rows:
        if row.size_bytes is None:
            raise InvalidInputError(
                f"links have a bandwidth, but messages of publishers."
                f"{system.publishers[row.publisher].name} have no size; give 'size' at the top "
                "of the file, to the publisher, or to its contents"
            )
    return np.array([row.size_bytes for row in routes.rows], dtype=np.float64)


def landing_tables(receivers: Sequence[int], before: Mapping[str, Any]) -> dict[str, Any]:
    """Make places where events reach receivers over their own links, all, also unmeasured."""
    table = before["receivers"].copy()
    places: list[tuple[Any, ...]] = []
    station = len(before["stations"])
    for receiver in receivers:
        if table["taken_in_at"][receiver] < 0:
            table["taken_in_at"][receiver] = len(before["places"]) + len(places)
            places.append((station, station, layout.AT_SUBSCRIBER, receiver))
    joined = more_records(before["places"], layout.PLACE, places)
    return {"receivers": table, "places": joined}
