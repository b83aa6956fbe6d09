"""The workload of a system: its flows by event type (or content), and how they are forwarded.

On a tree the events of one publisher reach a broker by one path only, so the share of those at a
broker that go on over an arc is all that forwarding is about. What is lost on a link has used it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tidings.errors import InvalidInputError, Problem, UnsupportedError
from tidings.model import topology
from tidings.model.arrays import Bools, Floats
from tidings.model.behaviour import Channel, Station
from tidings.model.features import require_only
from tidings.model.flow_kinds import FLOWS
from tidings.model.laws import Deterministic, Law, from_values
from tidings.model.routes import Routes, route, type_of
from tidings.model.system import Broker, System
from tidings.model.workload import (
    MOST_SETS,
    Centre,
    Connection,
    Flow,
    JointForwarding,
    Node,
    Source,
    Workload,
)

HANDLED = frozenset(
    {
        "bandwidth",
        "several servers",
        "other disciplines than fcfs",
        "demands by event type",
        "several stations in a broker",
        "random lifetimes",
        "lifetimes of subscribers",
        "subscribers with a count",
        "one tree per topic",
    }
)


def workload_of(
    system: System, *, by: str = "type", routes: Routes | None = None, joint: bool = True
) -> Workload:
    """Describe a system as a workload, with a flow for each publisher and event type.

    With ``by="content"`` every content class is a flow of its own, and nothing about its forwarding
    is left to chance. ``joint`` also notes how forwarding to several brokers hangs together.
    """
    if by not in FLOWS:
        raise InvalidInputError(f"flows by '{by}'; wants one of {', '.join(FLOWS)}")
    require_only(system, HANDLED, "the workload of a system")
    _refuse_client_bandwidth(system)
    known_routes = routes or route(system)
    centres = _Centres(system)
    nodes = tuple(
        Node(name=broker.name, centres=centres.of_broker[index])
        for index, broker in enumerate(system.brokers)
    )
    connections = tuple(
        Connection(
            source=arc.source,
            target=arc.target,
            centre=centres.of_arc[index],
            delay=arc.channel.delay,
            reliability=arc.channel.reliability,
        )
        for index, arc in enumerate(known_routes.arcs)
    )
    flows, problems = [], []
    for parts in _parts(system, known_routes, by):
        flow = _Forwarding(system, known_routes, parts).flow(joint=joint)
        services, missing = centres.services(parts.event_type)
        problems += missing
        transfers = centres.transfers(flow)
        flows.append(
            Flow(
                source=parts.publisher,
                event_type=parts.label,
                share=parts.share,
                forwarding=flow.shares,
                services=services,
                priorities=centres.priorities(parts.event_type),
                transfers=transfers,
                joint=flow.joint,
            )
        )
    if problems:
        raise InvalidInputError("some event types have no service time:", problems)
    return Workload(
        nodes=nodes,
        centres=tuple(centres.centres),
        connections=connections,
        sources=tuple(_sources(system)),
        flows=tuple(flows),
    )


def wanting_filters(system: System, routes: Routes, *, by: str = "type") -> Bools:
    """Find the filters that match some event of each flow of the workload: [flow, filter]."""
    flows = [
        routes.wants[[routes.rows[row].content_class for row in parts.rows]].any(axis=0)
        for parts in _parts(system, routes, by)
    ]
    return np.array(flows, dtype=bool).reshape(len(flows), routes.wants.shape[1])


def _refuse_client_bandwidth(system: System) -> None:
    for kind, peers in (("publishers", system.publishers), ("subscribers", system.subscribers)):
        for peer in peers:
            link = peer.link
            if link.bandwidth_bytes_per_s is not None or link.network is not None:
                raise UnsupportedError(
                    f"{kind}.{peer.name}.link has a bandwidth or network; only links "
                    "between brokers are queues of a workload. Remove the field to go on "
                    "without it."
                )


def _sources(system: System) -> Iterator[Source]:
    index = system.broker_index
    for publisher in system.publishers:
        assert publisher.every is not None  # rates by time of day are refused
        yield Source(
            name=publisher.name,
            home=index[publisher.at],
            every=publisher.every,
            delay=publisher.link.delay,
            reliability=publisher.link.reliability,
        )


# ---- which events are one flow -----------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    """The rows of traffic that make up one flow."""

    publisher: int
    event_type: str
    label: str
    rows: tuple[int, ...]
    share: float


def _parts(system: System, routes: Routes, by: str) -> Iterator[_Parts]:
    """Yield the flows of all publishers, in the order of their rows."""
    groups: dict[tuple[int, str, int], list[int]] = {}
    for index, row in enumerate(routes.rows):
        kind = type_of(system, routes.events[row.event])
        key = (row.publisher, kind, row.content_class if by == "content" else -1)
        groups.setdefault(key, []).append(index)
    for (publisher, kind, content_class), indices in groups.items():
        rows = [routes.rows[index] for index in indices]
        share = sum(row.probability for row in rows)
        if share <= 0.0:
            continue
        label = kind if content_class < 0 else f"{kind} class {content_class}".strip()
        yield _Parts(
            publisher=publisher,
            event_type=kind,
            label=label,
            rows=tuple(indices),
            share=min(share, 1.0),
        )


# ---- which way they go -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Forwarded:
    """Probabilities of being sent over connections, each alone and together."""

    shares: tuple[tuple[int, float], ...]
    sizes: dict[int, dict[float | None, float]]  # of what is sent over each: bytes, share
    joint: tuple[JointForwarding, ...]


class _Forwarding:
    """Follows the rows of one flow from the publisher's home outwards."""

    def __init__(self, system: System, routes: Routes, parts: _Parts) -> None:
        self.routes = routes
        rows = [routes.rows[index] for index in parts.rows]
        self.share = np.array([row.probability for row in rows]) / parts.share
        self.classes = np.array([row.content_class for row in rows], dtype=np.int64)
        self.home = int(routes.home_of_publisher[parts.publisher])
        self.at_node = np.zeros((len(system.brokers), len(rows)))  # share of the flow that comes by
        self.sizes = [row.size_bytes for row in rows]
        self.sent: dict[int, Floats] = {}

    def flow(self, *, joint: bool) -> _Forwarded:
        """Compute how the flow is forwarded at every node it visits."""
        for index, tree in enumerate(self.routes.trees):
            self._follow(tree, self.routes.tree_of_class[self.classes] == index)
        visits = self.at_node.sum(axis=1)
        shares = []
        for arc, sent in self.sent.items():
            source = self.routes.arcs[arc].source
            # Rounding must not make a probability of more than 1.
            shares.append((arc, min(float(sent.sum() / visits[source]), 1.0)))
        together = tuple(self._joint(visits)) if joint else ()
        sizes = {arc: self._sizes(sent) for arc, sent in self.sent.items()}
        return _Forwarded(shares=tuple(sorted(shares)), sizes=sizes, joint=together)

    def _sizes(self, sent: Floats) -> dict[float | None, float]:
        weights: dict[float | None, float] = {}
        for size, weight in zip(self.sizes, (sent / sent.sum()).tolist(), strict=True):
            if weight > 0.0:
                weights[size] = weights.get(size, 0.0) + weight
        return weights

    def _follow(self, tree: topology.Tree, mine: Bools) -> None:
        arcs = self.routes.arcs
        for broker, into in topology.walk(tree, arcs, self.home):
            if into < 0:
                self.at_node[broker] += np.where(mine, self.share, 0.0)
                continue
            arc = arcs[into]
            wanted = self.routes.interest[into, self.classes] > 0
            sent = np.where(mine & wanted, self.at_node[arc.source], 0.0)
            if sent.any():
                self.sent[into] = self.sent.get(into, np.zeros_like(sent)) + sent
                self.at_node[broker] += np.where(mine, arc.channel.reliability * sent, 0.0)

    def _joint(self, visits: Floats) -> Iterator[JointForwarding]:
        """Yield the sets of connections that events leave a node by, if it has several."""
        leaving: dict[int, list[int]] = {}
        for arc in sorted(self.sent):
            leaving.setdefault(self.routes.arcs[arc].source, []).append(arc)
        for node, arcs in leaving.items():
            if len(arcs) < 2:
                continue
            patterns = np.stack([self.sent[arc] > 0.0 for arc in arcs], axis=1)
            different, member = np.unique(patterns, axis=0, return_inverse=True)
            if len(different) > MOST_SETS:
                continue
            mass = np.bincount(member.ravel(), weights=self.at_node[node], minlength=len(different))
            yield JointForwarding(
                node=node,
                sets=tuple(
                    (
                        tuple(arc for arc, used in zip(arcs, pattern, strict=True) if used),
                        float(weight / visits[node]),
                    )
                    for pattern, weight in zip(different, mass, strict=True)
                    if weight > 0.0
                ),
            )


# ---- what they ask of whom ---------------------------------------------------------------------


class _Centres:
    """The queues of a system: the stations of its brokers, then its networks."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.centres: list[Centre] = []
        self._stations: list[tuple[int, str, Station]] = []  # centre, where it stands, station
        self.of_broker = [self._add_broker(broker) for broker in system.brokers]
        self._networks: dict[tuple[str, str], int] = {}
        self._channels = [arc.channel for arc in topology.arcs(system)]
        self.of_arc = [self._network(arc) for arc in range(len(self._channels))]

    def _add(self, centre: Centre) -> int:
        self.centres.append(centre)
        return len(self.centres) - 1

    def _add_broker(self, broker: Broker) -> tuple[int, ...]:
        positions = []
        stations = dict(zip(_station_names(broker), broker.stations, strict=True))
        for name, station in stations.items():
            label = broker.name if len(stations) == 1 else f"{broker.name} {name}"
            at = self._add(
                Centre(name=label, servers=station.servers, discipline=station.discipline)
            )
            place = "" if name == "service" else f".{name}"
            self._stations.append((at, f"brokers.{broker.name}{place}", station))
            positions.append(at)
        return tuple(positions)

    def _network(self, arc: int) -> int | None:
        """Find the queue before an arc: its own wire, or a network shared with others.

        None: there is none. A link's two directions do not disturb each other, nor do the two of a
        full-duplex network; in a half-duplex one everything is sent one after the other.
        """
        channel, link = self._channels[arc], self.system.links[arc // 2]
        direction = "there" if arc % 2 == 0 else "back"
        if channel.network is not None:
            network = next(n for n in self.system.networks if n.name == channel.network)
            key = (network.name, direction if network.duplex == "full" else "")
        elif channel.bandwidth_bytes_per_s is not None:
            ends = link.between if direction == "there" else link.between[::-1]
            key = ("--".join(ends), "")
        else:
            return None
        if key not in self._networks:
            self._networks[key] = self._add(Centre(name=" ".join(filter(None, key))))
        return self._networks[key]

    def services(self, event_type: str) -> tuple[tuple[tuple[int, Law], ...], list[Problem]]:
        """Give the service-time distribution of an event type at every centre of a broker.

        The second list has a problem for each centre without one.
        """
        stored = self.system.stored_subscriptions
        laws: list[tuple[int, Law]] = []
        problems = []
        for centre, at, station in self._stations:
            law = station.law_of(event_type, stored)
            if law is None:
                problems.append(station.no_demand(at, event_type))
            else:
                laws.append((centre, law))
        return tuple(laws), problems

    def priorities(self, event_type: str) -> tuple[tuple[int, int], ...]:
        """Give the priority of an event type at the centres of brokers where it has one."""
        given = ((at, dict(each.priorities).get(event_type, 0)) for at, _, each in self._stations)
        return tuple((at, priority) for at, priority in given if priority)

    def transfers(self, flow: _Forwarded) -> tuple[tuple[int, Law], ...]:
        """Make the distribution of a message's time on the wire, for each connection of a flow.

        It is the time, in seconds, for which the wire is busy with the message. Messages of several
        sizes take several times: a law with an atom for each.
        """
        laws: list[tuple[int, Law]] = []
        for arc, _ in flow.shares:
            if self.of_arc[arc] is None:
                continue
            sizes = {size: share for size, share in flow.sizes[arc].items() if size is not None}
            if len(sizes) < len(flow.sizes[arc]):
                where = self.system.links[arc // 2].name
                raise InvalidInputError(
                    f"links.{where} has a bandwidth, but messages have no size; give 'size' at the "
                    "top of the file, to a publisher, or to its contents"
                )
            speed = self._bytes_per_s(self._channels[arc])
            laws.append((arc, transfer_law(sizes, speed)))
        return tuple(laws)

    def _bytes_per_s(self, channel: Channel) -> float:
        if channel.bandwidth_bytes_per_s is not None:
            return channel.bandwidth_bytes_per_s
        network = next(n for n in self.system.networks if n.name == channel.network)
        return network.bandwidth_bytes_per_s


def transfer_law(sizes: Mapping[float, float], bytes_per_s: float) -> Law:
    """Make the distribution of the time, in seconds, that a message keeps a wire busy.

    ``sizes`` are in bytes, each with its share of the messages.

    >>> transfer_law({500.0: 1.0}, 1e6)
    Deterministic(value_s=0.0005)
    """
    times_s: dict[float, float] = {}
    for size, share in sizes.items():
        times_s[size / bytes_per_s] = times_s.get(size / bytes_per_s, 0.0) + share
    if len(times_s) == 1:
        return Deterministic(value_s=next(iter(times_s)))
    return from_values(times_s)


def _station_names(broker: Broker) -> Sequence[str]:
    first = ("service",) if broker.service is not None else ()
    rest = tuple(name for name in ("cpu", "disk", "out") if getattr(broker, name) is not None)
    return first + rest
