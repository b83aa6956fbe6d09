"""Leads one run on plain servers: they pass events on at once, or lose them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from nats.aio.msg import Msg
from nats.errors import OutboundBufferLimitError

from tidings.errors import EngineError
from tidings.testbed import tracing
from tidings.testbed.breaking import follow_outages, plain_change
from tidings.testbed.clients import Clients
from tidings.testbed.pacing import LOOK_S, Progress, drain, publish_on_schedule, until
from tidings.testbed.relays import EVENT
from tidings.testbed.runs import Delivery, Run
from tidings.testbed.servers import Servers
from tidings.testbed.subjects import Subjects
from tidings.testbed.workload import Publication

_HEADER = EVENT.decode()


class Conductor:
    """Leads one run from the first connection to the last delivery."""

    def __init__(self, run: Run, names: Subjects, running: Servers, tell: Progress) -> None:
        self._run, self._names = run, names
        self._servers, self._tell = running, tell
        self._clients = Clients(run, running)

    async def conduct(self) -> None:
        """The whole run."""
        try:
            await self._set_up()
            self._tell("running")
            await self._publish_among_outages()
            self._tell("waiting for the last events")
            await drain(self._run, self._clients.check)
        finally:
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
            await collector.subscribe(tracing.DESTINATION, queue=tracing.QUEUE, cb=self._collect)
        self._run.subscribed_s = asyncio.get_running_loop().time()
        for index, subscriber in enumerate(self._run.system.subscribers):
            port = self._run.layout.subscriber_ports[index]
            client = await self._clients.connect(port, subscriber.name)
            for subject in self._names.of_subscriber[index]:
                await client.subscribe(subject, cb=self._receiver(index))
        self._tell("spreading subscriptions")
        journal = self._run.layout.journal
        await until(lambda: not journal.unready(), self._unspread, self._clients.check)

    async def _publish_among_outages(self) -> None:
        run = self._run
        ports, system = run.layout.publisher_ports, run.system
        publishers = [
            await self._clients.connect(port, publisher.name)
            for port, publisher in zip(ports, system.publishers, strict=True)
        ]

        async def publish(each: Publication) -> None:
            with contextlib.suppress(OutboundBufferLimitError):  # its broker is down: lost
                await publishers[each.publisher].publish(
                    self._names.of_content[each.content.text],
                    each.content.text.encode(),
                    headers={_HEADER: each.event, "Nats-Trace-Dest": tracing.DESTINATION},
                )

        run.start_s = asyncio.get_running_loop().time() + 2.0 * LOOK_S
        breaking = asyncio.create_task(follow_outages(run, plain_change(run.layout, self._servers)))
        try:
            await publish_on_schedule(run, publish, self._clients.check, self._tell)
        finally:
            breaking.cancel()
            ended = await asyncio.gather(breaking, return_exceptions=True)
        for problem in ended:
            if isinstance(problem, Exception):
                raise EngineError(f"an outage could not be brought about: {problem}") from problem

    async def _collect(self, message: Msg) -> None:
        self._run.documents.append(message.data)

    def _receiver(self, subscriber: int) -> Callable[[Msg], Awaitable[None]]:
        deliveries, now = self._run.deliveries, asyncio.get_running_loop().time

        async def receive(message: Msg) -> None:
            event = (message.headers or {}).get(_HEADER, "")
            deliveries.append(Delivery(event=event, subscriber=subscriber, received_s=now()))

        return receive

    def _unlinked(self) -> str:
        return f"brokers {', '.join(self._servers.unlinked())} have not found all their neighbours"

    def _unspread(self) -> str:
        lanes = self._run.layout.journal.unready()
        return f"subscriptions have not crossed {', '.join(lanes[:4])}"
