"""A system as its workload: who publishes what, which way it goes, what it asks of which resource.

This is what operational analysis and queueing Petri nets work on. It can be made from a system
(:mod:`tidings.model.system_workload`), measured in traces, or written down by hand. Everything is a
position in the tuples of :class:`Workload`. An event that has visited a node is sent over each
connection that leaves it with a probability of its own: a fork, so that these need not sum to 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from tidings.errors import InvalidInputError, Problem
from tidings.model.laws import Deterministic, Law

NO_TIME = Deterministic(value_s=0.0)
SHARES_ROUND_BY = 1e-9  # sums of shares may be off


@dataclass(frozen=True, slots=True, kw_only=True)
class Centre:
    """A queue that events pass: a CPU, a disk, a network."""

    name: str
    servers: int = 1
    discipline: str = "fcfs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A broker: the centres that an event passes there, in order."""

    name: str
    centres: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """One path from a node to another: perhaps through a queue, perhaps with a delay."""

    source: int
    target: int
    centre: int | None = None  # where it waits for the wire; None: the wire is never busy
    delay: Law = NO_TIME
    reliability: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A publisher: where, how often, and which share of its events gets to its home node."""

    name: str
    home: int
    every: Law
    delay: Law = NO_TIME
    reliability: float = 1.0


# Sets of connections at a node that are told apart; where there are more, each connection is used
# or not by chance, as a net would need a mode for every set.
MOST_SETS = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class JointForwarding:
    """To which sets of connections a node sends the events of a flow, and how often."""

    node: int
    sets: tuple[tuple[tuple[int, ...], float], ...]  # connections, share; the empty set too


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """The events of one type of one publisher: a workload class."""

    source: int
    event_type: str
    share: float = 1.0  # of the publisher's events; those of no flow leave no trace
    forwarding: tuple[tuple[int, float], ...] = ()  # connection, probability of being sent over it
    # Centre of a node, time it works on such an event; of NO_TIME: it passes without stopping.
    services: tuple[tuple[int, Law], ...] = ()
    priorities: tuple[tuple[int, int], ...] = ()  # centre of a node, where it is not 0
    transfers: tuple[tuple[int, Law], ...] = ()  # connection, time its centre works on one
    joint: tuple[JointForwarding, ...] = ()  # where it is known how forwarding hangs together


@dataclass(frozen=True, kw_only=True)
class Workload:
    """Nodes, the connections between them, the queues on both, and the flows through all of it."""

    nodes: tuple[Node, ...]
    centres: tuple[Centre, ...] = ()
    connections: tuple[Connection, ...] = ()
    sources: tuple[Source, ...]
    flows: tuple[Flow, ...]

    def __post_init__(self) -> None:
        problems = [*_structure_problems(self), *_flow_problems(self), *_share_problems(self)]
        if problems:
            raise InvalidInputError("invalid workload:", problems)

    def rate_per_s(self, flow: Flow) -> float:
        """Compute the rate of a flow, in events published per second."""
        return flow.share / self.sources[flow.source].every.mean_s

    def name_of(self, flow: Flow) -> str:
        """Name a flow by its type and who publishes it."""
        publisher = self.sources[flow.source].name
        return f"{flow.event_type} of {publisher}" if flow.event_type else publisher

    def connection_name(self, connection: int) -> str:
        """Name a connection by its ends: ``hub--east`` leads from hub to east."""
        ends = self.connections[connection]
        return f"{self.nodes[ends.source].name}--{self.nodes[ends.target].name}"


def _structure_problems(workload: Workload) -> Iterator[Problem]:
    nodes, centres = len(workload.nodes), len(workload.centres)
    for node in workload.nodes:
        for centre in node.centres:
            yield from _position(f"node {node.name}", centre, centres, "centre")
    for index, each in enumerate(workload.connections):
        at = f"connections[{index + 1}]"
        for end in (each.source, each.target):
            yield from _position(at, end, nodes, "node")
        if each.centre is not None:
            yield from _position(at, each.centre, centres, "centre")
        yield from _share(f"{at}.reliability", each.reliability)
    for source in workload.sources:
        yield from _position(f"source {source.name}", source.home, nodes, "node")
        yield from _share(f"source {source.name}.reliability", source.reliability)


def _share_problems(workload: Workload) -> Iterator[Problem]:
    """Yield problems of publishers whose flows sum to more than all that they publish.

    Flows are parts of what a publisher publishes; the rest belongs to none.
    """
    shares: dict[int, list[float]] = {}
    for flow in workload.flows:
        shares.setdefault(flow.source, []).append(flow.share)
    for index, source in enumerate(workload.sources):
        total = math.fsum(shares.get(index, ()))
        if total > 1.0 + SHARES_ROUND_BY:
            want = "shares that sum to 1 at most"
            at = f"flows of {source.name}"
            yield Problem(at=at, saw=f"shares with a sum of {total:.12g}", want=want)


def _flow_problems(workload: Workload) -> Iterator[Problem]:
    connections = len(workload.connections)
    for index, flow in enumerate(workload.flows):
        at = f"flows[{index + 1}]"
        yield from _position(at, flow.source, len(workload.sources), "source")
        yield from _share(f"{at}.share", flow.share)
        for connection, probability in flow.forwarding:
            yield from _position(f"{at}.forwarding", connection, connections, "connection")
            yield from _share(f"{at}.forwarding", probability)
        for centre, _ in flow.services + flow.priorities:
            yield from _position(f"{at}.services", centre, len(workload.centres), "centre")
        for connection, _ in flow.transfers:
            yield from _position(f"{at}.transfers", connection, connections, "connection")
        for joint in flow.joint:
            total = math.fsum(share for _, share in joint.sets)
            if abs(total - 1.0) > SHARES_ROUND_BY:
                want = "shares that sum to 1, that of the empty set included"
                yield Problem(at=f"{at}.joint", saw=f"a sum of {total:.12g}", want=want)


def _position(at: str, value: int, count: int, what: str) -> Iterator[Problem]:
    if not 0 <= value < count:
        yield Problem(at=at, saw=f"{what} {value}", want=f"the position of one of {count}")


def _share(at: str, value: float) -> Iterator[Problem]:
    if not 0.0 <= value <= 1.0:
        yield Problem(at=at, saw=f"{value}", want="a probability from 0 to 1")
