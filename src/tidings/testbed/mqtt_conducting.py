"""Leads one run on Mosquitto servers: what bridges and clients of MQTT 5 do with events.

With quality of service 0 they pass events on at once, or lose them. With 1 whoever sends an event
keeps it until the next has acknowledged it, also over a cut or a crash, and brokers drop what has
expired; a subscriber counts the first of what it gets twice.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
from collections.abc import Callable

from tidings.errors import EngineError
from tidings.model import topology
from tidings.model.progress import Progress
from tidings.model.routes import Routes
from tidings.model.system import System
from tidings.testbed.breaking import follow_outages, plain_change
from tidings.testbed.carrying import Works
from tidings.testbed.clients import (
    AGAIN_S,
    LOOK_S,
    begin,
    drain,
    publish_on_schedule,
    until,
)
from tidings.testbed.consuming import takes_time
from tidings.testbed.ending import end_all
from tidings.testbed.frames import EVENT, PREFIX
from tidings.testbed.layout import lane_name
from tidings.testbed.mosquitto import Mosquitto
from tidings.testbed.mqtt_consuming import SharingMember, members_of, shared_topics
from tidings.testbed.mqtt_frames import topic_of
from tidings.testbed.runs import HOST, Delivery, Run
from tidings.testbed.servers import Servers
from tidings.testbed.workload import Publication, Subjects

try:
    import aiomqtt
    from paho.mqtt.packettypes import PacketTypes
    from paho.mqtt.properties import Properties
except ModuleNotFoundError as problem:
    raise EngineError(
        "the testbed needs the MQTT client library; run: pip install 'tidings[testbed]'"
    ) from problem

_FOREVER = 0xFFFFFFFF  # seconds: a session that does not expire
_MOST_S = _FOREVER - 1
_ANSWER_S = 0.3  # until a broker must have let a client in; one that is down says nothing
_TAKEN_S = 60.0  # until a broker must have taken an event
_QUIET = 16  # looks without anything new where events wait for repairs
_SILENT = logging.getLogger("tidings.testbed.mqtt")
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False


def with_homes(system: System, names: Subjects) -> Subjects:
    """Give subjects of NATS as topics of MQTT: those of a subscriber are by the home of what comes.

    Those of contents are by none; ``published_at`` gives where they are published.
    """
    of_content = {text: topic_of(each) for text, each in names.of_content.items()}
    homes: dict[str, set[int]] = {}  # of each subject
    for each in system.publishers:
        for row in each.content.rows():
            homes.setdefault(names.of_content[row.text], set()).add(system.broker_index[each.at])
    of_subscriber = tuple(
        tuple(
            published_at(home, topic_of(subject))
            for subject in mine
            for home in sorted(homes.get(subject, ()))
        )
        for mine in names.of_subscriber
    )
    return Subjects(of_content=of_content, of_subscriber=of_subscriber)


def published_at(home: int, topic: str) -> str:
    """Give the topic of what is published at a broker, by its number.

    >>> published_at(3, "ev/'a/1")
    "ev/b3/'a/1"
    """
    prefix, slash, rest = topic.partition("/")
    return f"{prefix}/b{home}{slash}{rest}"


def topics_by_arc(system: System, routes: Routes, names: Subjects) -> dict[int, set[str]]:
    """List by arc of the tree which topics go over it: those wanted behind it, from before it."""
    wanted: dict[int, set[str]] = {}  # by the home of who wants it
    for home, mine in zip(routes.home_of_subscriber.tolist(), names.of_subscriber, strict=True):
        wanted.setdefault(home, set()).update(mine)
    topics: dict[int, set[str]] = {}
    for origin in sorted({system.broker_index[each.at] for each in system.publishers}):
        into = dict(topology.walk(routes.trees[0], routes.arcs, origin))
        published = published_at(origin, PREFIX)
        for home, asked in wanted.items():
            passing = {each for each in asked if f"{each}/".startswith(f"{published}/")}
            while home != origin:
                topics.setdefault(into[home], set()).update(passing)
                home = routes.arcs[into[home]].source
    return topics


def crossing(run: Run) -> dict[str, set[str]]:
    """Give by lane the subscriptions that cross it: only clients ask, brokers are configured."""
    lanes = [lane.name for relay in run.layout.relays for lane in relay.lanes]
    asked: dict[str, set[str]] = {name: set() for name in lanes}
    for one, mine in zip(run.system.subscribers, run.subjects.of_subscriber, strict=True):
        if takes_time(one):  # its members dial their broker, not its relay
            del asked[lane_name(one.name, one.at)], asked[lane_name(one.at, one.name)]
        else:
            asked[lane_name(one.name, one.at)] = set(mine)
    return asked


class _Peer:
    """A client that comes back by itself, and keeps nothing while it is gone."""

    def __init__(self, name: str, port: int, qos: int) -> None:
        self._name, self._port, self._qos = name, port, qos
        self.client: aiomqtt.Client | None = None  # None: it is not connected now

    async def stay(
        self, wanted: tuple[str, ...], receive: Callable[[aiomqtt.Message], None]
    ) -> None:
        """Be connected and subscribed as far as there is a broker, for ever."""
        properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
        if self._qos:
            properties.SessionExpiryInterval = _FOREVER
        while True:
            try:
                async with aiomqtt.Client(
                    HOST,
                    self._port,
                    identifier=self._name,
                    protocol=aiomqtt.ProtocolVersion.V5,
                    clean_start=not self._qos,
                    properties=properties,
                    max_inflight_messages=0xFFFF,
                    max_concurrent_outgoing_calls=1_000_000,
                    logger=_SILENT,
                    timeout=_ANSWER_S,
                ) as client:
                    if wanted:
                        await client.subscribe([(each, self._qos) for each in wanted])
                    self.client = client
                    async for message in client.messages:
                        receive(message)
            except aiomqtt.MqttError:
                pass
            self.client = None
            await asyncio.sleep(AGAIN_S)


def _name(message: aiomqtt.Message) -> str:
    """Give the name of the event that a message carries; empty where there is none."""
    properties = dict(getattr(message.properties, "UserProperty", ()))
    return str(properties.get(EVENT.decode(), ""))


def _handing(member: SharingMember) -> Callable[[aiomqtt.Message], None]:
    """Give what hands a member the events of messages."""
    return lambda message: member.take(_name(message))


class MqttConductor:
    """Leads one run from the first connection to the last delivery."""

    def __init__(self, run: Run, running: Servers, tell: Progress) -> None:
        assert isinstance(run.layout.kind, Mosquitto)
        self._run, self._servers, self._tell = run, running, tell
        self._qos = run.layout.kind.qos
        self._works = Works(run)
        self._publishers: list[_Peer] = []
        self._members: list[_Peer] = []
        self._received: set[tuple[int, str]] = set()

    async def conduct(self) -> None:
        """Conduct the whole run: set up, publish among outages, drain the last events, clean up."""
        try:
            await self._set_up()
            self._tell("running")
            await self._publish_among_outages()
            self._tell("waiting for the last events")
            await drain(self._run, self._check, quiet=_QUIET if self._qos else 4)
        finally:
            await self._works.end()
            for relay in self._run.layout.relays:
                await relay.close()

    async def _set_up(self) -> None:
        run = self._run
        for relay in run.layout.relays:
            await relay.open()
        self._tell("joining brokers and spreading subscriptions")
        run.subscribed_s = asyncio.get_running_loop().time()
        ports = run.layout.subscriber_ports
        for index, wanted in enumerate(run.subjects.of_subscriber):
            if takes_time(run.system.subscribers[index]):
                self._open_group(index, wanted)
            else:
                peer = _Peer(f"s{index}", ports[index], self._qos)
                self._works.beside(peer.stay(wanted, self._receiver(index)))
        for index, port in enumerate(run.layout.publisher_ports):
            peer = _Peer(f"p{index}", port, self._qos)
            self._publishers.append(peer)
            self._works.beside(peer.stay((), lambda _: None))
        await until(lambda: not run.layout.journal.unready(), self._unready, self._check)
        peers = (*self._publishers, *self._members)
        await until(lambda: all(each.client for each in peers), self._unready, self._check)
        await asyncio.sleep(2.0 * LOOK_S)  # subscriptions have crossed; brokers now work them in

    def _open_group(self, index: int, wanted: tuple[str, ...]) -> None:
        """Open the members of a subscriber that takes its time; they share what it wants."""
        subscriber = self._run.system.subscribers[index]
        port = self._run.layout.servers[subscriber.at].client_port
        topics = shared_topics(subscriber, index, wanted)
        for number, member in enumerate(members_of(self._works, index)):
            peer = _Peer(f"s{index}m{number}", port, self._qos)
            self._members.append(peer)
            self._works.beside(peer.stay(topics, _handing(member)))

    async def _publish_among_outages(self) -> None:
        run = self._run
        begin(run)
        for start in run.beside:
            self._works.beside(start(run))
        breaking = asyncio.create_task(follow_outages(run, plain_change(run.layout, self._servers)))
        try:
            await publish_on_schedule(run, self._publish, self._check, self._tell)
            if self._qos:
                self._tell("waiting for repairs")
                await breaking
        finally:
            await end_all([breaking])
        if not breaking.cancelled() and (problem := breaking.exception()) is not None:
            raise EngineError(f"an outage could not be produced: {problem}") from problem

    async def _publish(self, each: Publication) -> None:
        client = self._publishers[each.publisher].client
        if client is not None:  # else its broker is down: lost
            self._works.beside(self._hand_in(client, each))

    async def _hand_in(self, client: aiomqtt.Client, each: Publication) -> None:
        properties = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]
        properties.UserProperty = [(EVENT.decode(), each.event)]
        if self._qos and each.lifetime_s is not None:  # in whole seconds: at least as long
            properties.MessageExpiryInterval = min(math.ceil(each.lifetime_s), _MOST_S)
        topic = self._run.subjects.of_content[each.content.text]
        home = self._run.system.broker_index[self._run.system.publishers[each.publisher].at]
        with contextlib.suppress(aiomqtt.MqttError):  # its broker went down meanwhile: lost
            await client.publish(
                published_at(home, topic),
                each.content.text.encode(),
                qos=self._qos,
                properties=properties,
                timeout=_TAKEN_S,
            )

    def _receiver(self, subscriber: int) -> Callable[[aiomqtt.Message], None]:
        deliveries, now = self._run.deliveries, asyncio.get_running_loop().time

        def receive(message: aiomqtt.Message) -> None:
            event = _name(message)
            if (subscriber, event) not in self._received:
                self._received.add((subscriber, event))
                deliveries.append(Delivery(event=event, subscriber=subscriber, received_s=now()))

        return receive

    def _check(self) -> None:
        self._servers.require_alive()
        if problem := self._run.layout.journal.problem:
            raise EngineError(problem)

    def _unready(self) -> str:
        lanes = self._run.layout.journal.unready()
        return f"brokers and clients were not joined over {', '.join(lanes[:4])}"
