"""Which servers and relays a system becomes: ports, who dials whom, and what each lane does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from tidings.model import topology
from tidings.model.behaviour import Channel
from tidings.model.routes import Routes
from tidings.model.system import System
from tidings.model.topology import Arc
from tidings.testbed.journal import Journal
from tidings.testbed.relays import Lane, Relay
from tidings.testbed.servers import Nats, ServerKind, ServerPlan, free_ports
from tidings.testbed.stations import BrokerStation, draws


@dataclass(frozen=True, slots=True, kw_only=True)
class TestbedLayout:
    """The parts of a testbed, not yet started; lanes between brokers are named ``a→b``."""

    servers: dict[str, ServerPlan]
    relays: tuple[Relay, ...]
    publisher_ports: tuple[int, ...]  # of the relays they dial
    subscriber_ports: tuple[int, ...]
    carried: bool  # whether agents carry events from stream to stream, not servers
    links: dict[str, tuple[Relay, ...]]  # by the names of links
    stations: dict[str, BrokerStation]  # by broker
    journal: Journal
    kind: ServerKind


def layout(
    system: System,
    routes: Routes,
    seed: int,
    *,
    carried: bool = False,
    kind: ServerKind | None = None,
) -> TestbedLayout:
    """Lay a system out over the free ports of this machine, on NATS unless another kind is given.

    Where events are ``carried`` from stream to stream, servers are not joined.
    """
    kind = kind or Nats()
    dialled = dialled_arcs(routes, both=kind.both_dial)
    clients = len(system.publishers) + len(system.subscribers)
    ports = iter(free_ports(3 * len(system.brokers) + len(dialled) + clients))
    relay_port = {arc: next(ports) for arc in dialled}
    homes = {
        each.at
        for each in system.subscribers
        if each.connectivity is not None or each.consumers is not None
    }
    degree = [len(outgoing) for outgoing in routes.trees[0].outgoing]
    plans = {
        broker.name: ServerPlan(
            name=broker.name,
            label=f"b{index}",
            client_port=next(ports),
            broker_port=next(ports),
            monitor_port=next(ports),
            dials={
                arc: port
                for arc, port in relay_port.items()
                if routes.arcs[arc].source == index and not carried
            },
            links=0 if carried else degree[index],
            stores=carried or broker.name in homes,
        )
        for index, broker in enumerate(system.brokers)
    }
    maker = _Maker(
        system=system,
        seed=seed,
        journal=Journal(),
        stations=_stations(system, seed),
        kind=kind,
    )
    relays = [maker.between_brokers(port, arc, routes, plans) for arc, port in relay_port.items()]
    upward = [
        maker.of_publisher(next(ports), each, plans) for each in range(len(system.publishers))
    ]
    downward = [
        maker.of_subscriber(next(ports), each, plans) for each in range(len(system.subscribers))
    ]
    return TestbedLayout(
        servers=plans,
        relays=(*relays, *upward, *downward),
        publisher_ports=tuple(relay.port for relay in upward),
        subscriber_ports=tuple(relay.port for relay in downward),
        carried=carried,
        links=_by_link(system, relays),
        stations=dict(zip(plans, maker.stations, strict=True)),
        journal=maker.journal,
        kind=kind,
    )


def lane_name(source: str, target: str) -> str:
    """Name one direction of a link."""
    return f"{source}→{target}"


def _by_link(system: System, relays: list[Relay]) -> dict[str, tuple[Relay, ...]]:
    by_lane = {lane.name: relay for relay in relays for lane in relay.lanes}
    by_link = {}
    for link in system.links:
        ends = (lane_name(*link.between), lane_name(*link.between[::-1]))
        if ends[0] in by_lane:
            by_link[link.name] = tuple(dict.fromkeys(by_lane[each] for each in ends))
    return by_link


def dialled_arcs(routes: Routes, *, both: bool) -> list[int]:
    """List the arcs from every broker but the first to its parent; with ``both``, also back."""
    walk = topology.walk(routes.trees[0], routes.arcs, 0)
    upward = [into ^ 1 for _, into in walk if into >= 0]
    return [*upward, *(arc ^ 1 for arc in upward)] if both else upward


def _stations(system: System, seed: int) -> list[BrokerStation]:
    stored = system.stored_subscriptions
    stations = []
    for index, broker in enumerate(system.brokers):
        if broker.service is None:
            stations.append(BrokerStation(service=lambda: 0.0))
            continue
        generator = np.random.default_rng([seed, index, 1])
        stations.append(BrokerStation(service=draws(broker.service.with_stored(stored), generator)))
    return stations


@dataclass(frozen=True, slots=True, kw_only=True)
class _Maker:
    system: System
    seed: int
    journal: Journal
    stations: list[BrokerStation]
    kind: ServerKind

    def _relay(self, port: int, behind: int, lanes: tuple[Lane, Lane]) -> Relay:
        return Relay(port, behind, lanes, self.journal, self.kind.frames)

    def between_brokers(
        self, port: int, arc: int, routes: Routes, plans: dict[str, ServerPlan]
    ) -> Relay:
        """Make the relay of a link, dialled by the broker at the beginning of the arc."""
        there, back = (self._of_arc(each, routes.arcs[each]) for each in (arc, arc ^ 1))
        if self.kind.both_dial:  # only answers come back
            answers = _at_once((back.source, there.source))
            back = replace(answers, name=f"{answers.name}, answers")
        return self._relay(port, plans[there.broker or ""].broker_port, (there, back))

    def _of_arc(self, number: int, arc: Arc) -> Lane:
        ends = (self.system.brokers[arc.source].name, self.system.brokers[arc.target].name)
        channel = replace(arc.channel, reliability=1.0) if self.kind.repeats else arc.channel
        return self._lane(ends, channel, (2, number), to=arc.target)

    def of_publisher(self, port: int, index: int, plans: dict[str, ServerPlan]) -> Relay:
        """Make the relay of a publisher's link."""
        one = self.system.publishers[index]
        home = self.system.broker_index[one.at]
        up = self._lane((one.name, one.at), one.link, (3, index), to=home)
        up = replace(up, outlasts_sender=True)
        down = _at_once((one.at, one.name))
        return self._relay(port, plans[one.at].client_port, (up, down))

    def of_subscriber(self, port: int, index: int, plans: dict[str, ServerPlan]) -> Relay:
        """Make the relay of a subscriber's link."""
        one = self.system.subscribers[index]
        # The subscription takes as long to its broker as an event takes back.
        up = self._lane((one.name, one.at), one.link, (4, index), to=None)
        down = self._lane((one.at, one.name), one.link, (5, index), to=None)
        return self._relay(port, plans[one.at].client_port, (up, down))

    def _lane(
        self, ends: tuple[str, str], channel: Channel, purpose: tuple[int, int], *, to: int | None
    ) -> Lane:
        generator = np.random.default_rng([self.seed, *purpose])
        return Lane(
            name=lane_name(*ends),
            source=ends[0],
            delay=draws(channel.delay, generator),
            is_lost=_losses(channel.reliability, np.random.default_rng([self.seed, *purpose, 6])),
            broker=None if to is None else self.system.brokers[to].name,
            station=None if to is None else self.stations[to],
        )


def _losses(reliability: float, generator: np.random.Generator) -> Callable[[], bool]:
    if reliability == 1.0:
        return lambda: False
    return lambda: bool(generator.random() >= reliability)


def _at_once(ends: tuple[str, str]) -> Lane:
    return Lane(name=lane_name(*ends), source=ends[0], delay=lambda: 0.0, is_lost=lambda: False)
