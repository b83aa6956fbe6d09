"""Leads one run from the first connection to the last delivery."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable

from tidings.errors import EngineError
from tidings.model import topology
from tidings.model.routes import Routes
from tidings.model.system import System
from tidings.testbed import tracing
from tidings.testbed.breaking import follow_outages
from tidings.testbed.layout import lane_name
from tidings.testbed.ports import HOST
from tidings.testbed.relays import EVENT
from tidings.testbed.runs import Delivery, Run
from tidings.testbed.servers import Servers
from tidings.testbed.subjects import Subjects

try:
    import nats
    from nats.aio.client import Client
    from nats.aio.msg import Msg
    from nats.errors import OutboundBufferLimitError
except ModuleNotFoundError as problem:
    raise EngineError(
        "the testbed needs the client library of NATS: pip install 'tidings[testbed]' brings it"
    ) from problem

Progress = Callable[[str], None]

_HEADER = EVENT.decode()
_SETTLE_S = 10.0  # until interest must have reached every broker
_DRAIN_S = 30.0  # after the last publication, until everything must have arrived
_LOOK_S = 0.05
_AGAIN_S = 0.05  # between two tries of a client to connect again


class Conductor:
    """Leads one run from the first connection to the last delivery."""

    def __init__(
        self, run: Run, names: Subjects, routes: Routes, running: Servers, tell: Progress
    ) -> None:
        self._run, self._names = run, names
        run.layout.journal.wanted = _interest(run.system, routes, names)
        self._servers, self._tell = running, tell
        self._clients: list[Client] = []
        self._problem: str | None = None

    async def conduct(self) -> None:
        """The whole run."""
        loop = asyncio.get_running_loop()
        self._run.epoch_ns = time.time_ns() - round(loop.time() * 1e9)
        try:
            await self._set_up()
            self._tell("running")
            await self._publish_among_outages()
            self._tell("waiting for the last events")
            await self._drain()
        except EngineError as problem:
            if not self._run.start_s:
                raise
            self._run.incomplete = str(problem)
        finally:
            for client in self._clients:
                await client.close()
            for relay in self._run.layout.relays:
                await relay.close()

    async def _set_up(self) -> None:
        for relay in self._run.layout.relays:
            await relay.open()
        self._tell("joining brokers")
        await self._until(lambda: not self._servers.unlinked(), "joined", self._unlinked)
        for plan in self._run.layout.servers.values():
            collector = await self._connect(plan.client_port, f"collector at {plan.name}")
            await collector.subscribe(tracing.DESTINATION, queue=tracing.QUEUE, cb=self._collect)
        self._run.subscribed_s = asyncio.get_running_loop().time()
        for index, subscriber in enumerate(self._run.system.subscribers):
            port = self._run.layout.subscriber_ports[index]
            client = await self._connect(port, subscriber.name)
            for subject in self._names.of_subscriber[index]:
                await client.subscribe(subject, cb=self._receiver(index))
        self._tell("spreading subscriptions")
        journal = self._run.layout.journal
        await self._until(lambda: not journal.unready(), "spread", self._unspread_told)

    async def _publish_among_outages(self) -> None:
        run = self._run
        ports, system = run.layout.publisher_ports, run.system
        clients = [
            await self._connect(port, publisher.name)
            for port, publisher in zip(ports, system.publishers, strict=True)
        ]
        run.start_s = asyncio.get_running_loop().time() + 2.0 * _LOOK_S
        breaking = asyncio.create_task(follow_outages(run, self._servers))
        try:
            await self._publish(clients)
        finally:
            breaking.cancel()
            ended = await asyncio.gather(breaking, return_exceptions=True)
        for problem in ended:
            if isinstance(problem, Exception):
                raise EngineError(f"an outage could not be brought about: {problem}") from problem

    async def _publish(self, clients: list[Client]) -> None:
        run, loop = self._run, asyncio.get_running_loop()
        looked_s = run.start_s
        for each in run.publications:
            due_s = run.start_s + each.at_s
            if (left_s := due_s - loop.time()) > 0.0:
                await asyncio.sleep(left_s)
            run.published_late_s.append(loop.time() - due_s)
            with contextlib.suppress(OutboundBufferLimitError):  # its broker is down: lost
                await clients[each.publisher].publish(
                    self._names.of_content[each.content.text],
                    each.content.text.encode(),
                    headers={_HEADER: each.event, "Nats-Trace-Dest": tracing.DESTINATION},
                )
            if loop.time() - looked_s > 1.0:
                looked_s = loop.time()
                self._check()
                self._tell(f"running, {each.at_s / run.publications[-1].at_s:.0%}")

    async def _drain(self) -> None:
        journal = self._run.layout.journal
        quiet = 0
        deadline_s = asyncio.get_running_loop().time() + _DRAIN_S
        while quiet < 4:
            before = len(self._run.documents) + len(self._run.deliveries)
            await asyncio.sleep(2.0 * _LOOK_S)
            self._check()
            after = len(self._run.documents) + len(self._run.deliveries)
            quiet = quiet + 1 if journal.under_way == 0 and before == after else 0
            if asyncio.get_running_loop().time() > deadline_s:
                raise EngineError(
                    f"{journal.under_way} events had not arrived {_DRAIN_S:g} s after the last one "
                    "was published; is a broker overloaded?"
                )

    async def _connect(self, port: int, name: str) -> Client:
        try:
            client = await nats.connect(
                f"nats://{HOST}:{port}",
                name=name,
                error_cb=self._fail,
                max_reconnect_attempts=-1,
                reconnect_time_wait=_AGAIN_S,
                pending_size=0,  # what is published while the broker is down is lost, not kept
            )
        except Exception as problem:
            raise EngineError(f"'{name}' cannot connect to its broker: {problem}") from problem
        self._clients.append(client)
        return client

    async def _fail(self, problem: Exception) -> None:
        if self._run.outages:
            return  # connections are meant to break; the servers are looked at all the same
        self._problem = self._problem or f"a client lost its connection: {problem!r}"

    def _check(self) -> None:
        self._servers.require_alive()
        if problem := self._run.layout.journal.problem or self._problem:
            raise EngineError(problem)

    async def _collect(self, message: Msg) -> None:
        self._run.documents.append(message.data)

    def _receiver(self, subscriber: int) -> Callable[[Msg], Awaitable[None]]:
        deliveries, now = self._run.deliveries, asyncio.get_running_loop().time

        async def receive(message: Msg) -> None:
            event = (message.headers or {}).get(_HEADER, "")
            deliveries.append(Delivery(event=event, subscriber=subscriber, received_s=now()))

        return receive

    async def _until(
        self, ready: Callable[[], bool], what: str, otherwise: Callable[[], str]
    ) -> None:
        deadline_s = asyncio.get_running_loop().time() + _SETTLE_S
        while not await asyncio.to_thread(ready):
            self._check()
            if asyncio.get_running_loop().time() > deadline_s:
                raise EngineError(f"not {what} after {_SETTLE_S:g} s: {otherwise()}")
            await asyncio.sleep(_LOOK_S)

    def _unlinked(self) -> str:
        return f"brokers {', '.join(self._servers.unlinked())} have not found all their neighbours"

    def _unspread_told(self) -> str:
        return f"subscriptions have not crossed {', '.join(self._run.layout.journal.unready()[:4])}"


def _interest(system: System, routes: Routes, names: Subjects) -> dict[str, set[str]]:
    """By lane: the subjects asked for over it once subscriptions have spread everywhere."""
    found: dict[str, set[str]] = {}
    brokers = [broker.name for broker in system.brokers]
    wanted: dict[int, set[str]] = {}
    for home, mine in zip(routes.home_of_subscriber.tolist(), names.of_subscriber, strict=True):
        wanted.setdefault(home, set()).update(mine)
    for home, asked in wanted.items():
        for _, into in topology.walk(routes.trees[0], routes.arcs, home):
            if into >= 0:
                arc = routes.arcs[into]
                lane = lane_name(brokers[arc.source], brokers[arc.target])
                found.setdefault(lane, set()).update(asked)
    for one, mine in zip(system.subscribers, names.of_subscriber, strict=True):
        found[lane_name(one.name, one.at)] = set(mine)
    return found
