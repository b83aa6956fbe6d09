"""Leads one run on plain servers: they pass events on at once, or lose them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import OutboundBufferLimitError

from tidings.errors import EngineError
from tidings.model.progress import Progress
from tidings.model.system import Publisher
from tidings.testbed.breaking import follow_outages, plain_change
from tidings.testbed.carrying import Works
from tidings.testbed.churning import Visitor
from tidings.testbed.clients import (
    DESTINATION,
    QUEUE,
    Clients,
    begin,
    drain,
    publish_on_schedule,
    until,
)
from tidings.testbed.consuming import ConsumerGroup, takes_time
from tidings.testbed.ending import end_all
from tidings.testbed.frames import EVENT
from tidings.testbed.layout import lane_name
from tidings.testbed.mobile import MobilePublisher, MobileSubscriber, Presence
from tidings.testbed.runs import Delivery, Run
from tidings.testbed.servers import Servers
from tidings.testbed.workload import Publication

_HEADER = EVENT.decode()


class Conductor:
    """Leads one run from the first connection to the last delivery."""

    def __init__(self, run: Run, running: Servers, tell: Progress) -> None:
        self._run, self._names = run, run.subjects
        self._servers, self._tell = running, tell
        self._clients, self._works = Clients(run, running), Works(run)
        self._coming: list[Presence | Visitor] = []
        self._publishers: list[Client | MobilePublisher] = []

    async def conduct(self) -> None:
        """Conduct the whole run: set up, publish among outages, drain the last events, clean up."""
        try:
            await self._set_up()
            self._tell("running")
            await self._publish_among_outages()
            self._tell("waiting for the last events")
            await drain(self._run, self._clients.check)
        finally:
            await self._works.end()
            await self._clients.close()
            for relay in self._run.layout.relays:
                await relay.close()

    async def _set_up(self) -> None:
        for relay in self._run.layout.relays:
            await relay.open()
        self._tell("joining brokers")
        await until(lambda: not self._servers.unlinked(), self._unlinked, self._clients.check)
        for plan in self._run.layout.servers.values():
            collector = await self._clients.connect(plan.client_port, f"collector at {plan.name}")
            await collector.subscribe(DESTINATION, queue=QUEUE, cb=self._collect)
        self._run.subscribed_s = asyncio.get_running_loop().time()
        for index in range(len(self._run.system.subscribers)):
            await self._subscribe(index)
        self._tell("spreading subscriptions")
        journal = self._run.layout.journal
        await until(lambda: not journal.unready(), self._unspread, self._clients.check)

        for index, publisher in enumerate(self._run.system.publishers):
            await self._add_publisher(index, publisher)

    async def _subscribe(self, index: int) -> None:
        subscriber, wanted = self._run.system.subscribers[index], self._names.of_subscriber[index]
        if takes_time(subscriber):
            await ConsumerGroup(self._works, self._clients, index).open(wanted)
        elif subscriber.connectivity is None:
            port = self._run.layout.subscriber_ports[index]
            client = await self._clients.connect(port, subscriber.name)
            if subscriber.stays is None:
                for subject in wanted:
                    await client.subscribe(subject, cb=self._receiver(index))
            else:
                receive = self._receiver(index)
                self._coming.append(Visitor(self._works, index, client, wanted, receive))
        else:
            lane = next(
                lane
                for relay in self._run.layout.relays
                for lane in relay.lanes
                if lane.name == lane_name(subscriber.at, subscriber.name)
            )
            mobile = MobileSubscriber(self._works, self._clients, index, lane)
            await mobile.open(wanted)
            self._coming.append(mobile)

    async def _add_publisher(self, index: int, publisher: Publisher) -> None:
        if publisher.connectivity is None:
            port = self._run.layout.publisher_ports[index]
            self._publishers.append(await self._clients.connect(port, publisher.name))
        else:
            mobile = MobilePublisher(self._works, self._clients, index)
            self._publishers.append(mobile)
            self._coming.append(mobile)

    async def _publish(self, each: Publication) -> None:
        publisher = self._publishers[each.publisher]
        subject = self._names.of_content[each.content.text]
        headers = {_HEADER: each.event, "Nats-Trace-Dest": DESTINATION}
        content = each.content.text.encode()
        if not isinstance(publisher, MobilePublisher):
            with contextlib.suppress(OutboundBufferLimitError):  # its broker is down: lost
                await publisher.publish(subject, content, headers=headers)
        elif (due_s := publisher.accept(each.at_s)) is not None:
            self._works.start(publisher.publish(due_s, subject, content, headers))

    async def _publish_among_outages(self) -> None:
        run = self._run
        begin(run)
        for each in self._coming:
            self._works.beside(each.come_and_go())
        for start in run.beside:
            self._works.beside(start(run))
        breaking = asyncio.create_task(follow_outages(run, plain_change(run.layout, self._servers)))
        try:
            await publish_on_schedule(run, self._publish, self._clients.check, self._tell)
        finally:
            await end_all([breaking])
        if not breaking.cancelled() and (problem := breaking.exception()) is not None:
            raise EngineError(f"an outage could not be produced: {problem}") from problem

    async def _collect(self, message: Msg) -> None:
        self._run.documents.append(message.data)

    def _receiver(self, subscriber: int) -> Callable[[Msg], Awaitable[None]]:
        deliveries, now = self._run.deliveries, asyncio.get_running_loop().time

        async def receive(message: Msg) -> None:
            event = (message.headers or {}).get(_HEADER, "")
            deliveries.append(Delivery(event=event, subscriber=subscriber, received_s=now()))

        return receive

    def _unlinked(self) -> str:
        return (
            f"brokers {', '.join(self._servers.unlinked())} did not connect to all their neighbours"
        )

    def _unspread(self) -> str:
        lanes = self._run.layout.journal.unready()
        return f"subscriptions did not arrive over {', '.join(lanes[:4])}"
