"""Agents that carry events from stream to stream, and from streams to subscribers.

Brokers that store what they take over have a stream on disk each, which survives a crash.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field, replace
from typing import Any

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError
from nats.js import JetStreamContext
from nats.js.api import ConsumerConfig, PubAck, StorageType, StreamConfig

from tidings.testbed.ending import end_all
from tidings.testbed.frames import EVENT
from tidings.testbed.journal import StationVisit
from tidings.testbed.relays import Lane
from tidings.testbed.runs import Delivery, Run

_STREAM = "LOG"
_HEADER, _EXPIRES, _WAITED = EVENT.decode(), "Tidings-Expires", "Tidings-Waited"
ONCE = "Nats-Msg-Id"
_ACK_WAIT_S = 1.0  # then a server hands out again what nobody acknowledged
_ANSWER_S = 0.5  # until a server must have stored an event
_REMEMBERED_S = 120.0  # how long a server knows that it has stored an event already


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredEvent:
    """An event as streams hold it; it expires at a moment of the loop's clock, perhaps never."""

    name: str
    subject: str
    content: bytes
    expires_s: float
    has_waited: bool = False  # in a buffer, for something that was down

    def is_dropped(self, now_s: float) -> bool:
        """Test whether an event expired while it waited; it is dropped where that is seen."""
        return self.has_waited and now_s > self.expires_s

    @classmethod
    def of(cls, message: Msg) -> StoredEvent:
        """Make the event from a message that a stream has handed out."""
        headers = message.headers or {}
        return cls(
            name=headers[_HEADER],
            subject=message.subject.split(".", 2)[2],
            content=message.data,
            expires_s=float(headers[_EXPIRES]),
            has_waited=_WAITED in headers,
        )


@dataclass(slots=True, kw_only=True)
class FailingPart:
    """A broker or link that may be down; by ``failures`` one sees whether it was, meanwhile."""

    works: asyncio.Event = field(default_factory=asyncio.Event)
    failures: int = 0

    def fail(self) -> None:
        """Mark it as down from now on."""
        self.works.clear()
        self.failures += 1


@dataclass(slots=True, kw_only=True)
class Store(FailingPart):
    """A broker's stream, and how to speak to its server.

    Subjects are ``q``, where the event came from, and its own subject; so consumers can leave out
    what came from the very neighbour they lead to.
    """

    client: Client
    streams: JetStreamContext

    async def open(self) -> None:
        """Create the stream."""
        await self.streams.add_stream(
            StreamConfig(
                name=_STREAM,
                subjects=["q.>"],
                storage=StorageType.FILE,
                duplicate_window=_REMEMBERED_S,
            )
        )
        self.works.set()

    async def keep(self, source: str, event: StoredEvent) -> PubAck | None:
        """Store an event, once however often it is asked to; None where the server did not."""
        headers = {_HEADER: event.name, ONCE: event.name, _EXPIRES: repr(event.expires_s)}
        if event.has_waited:
            headers[_WAITED] = "yes"
        subject = f"q.{source}.{event.subject}"
        try:
            return await self.streams.publish(
                subject, event.content, timeout=_ANSWER_S, headers=headers
            )
        except (NatsError, TimeoutError):
            return None

    async def hand_out(
        self, name: str, filters: list[str], take: Callable[[Msg], Awaitable[None]]
    ) -> None:
        """Subscribe to everything of these subjects, handed out again until it is acknowledged."""
        await self.client.subscribe(f"out.{name}", cb=take)
        await self.streams.add_consumer(
            _STREAM,
            ConsumerConfig(
                durable_name=name,
                deliver_subject=f"out.{name}",
                filter_subjects=filters,
                ack_wait=_ACK_WAIT_S,
                max_ack_pending=100_000,
            ),
        )

    async def acknowledge(self, message: Msg) -> None:
        """Say that an event need not be handed out again; a broker that is down hears it later."""
        with contextlib.suppress(NatsError):
            await self.client.publish(message.reply, b"+ACK")

    async def answers(self) -> bool:
        """Test whether the server is there with its stream."""
        try:
            await self.streams.stream_info(_STREAM)
        except (NatsError, TimeoutError):
            return False
        return True


_AGAIN_S = 0.01


class Works:
    """What is being done for events, each beside all others."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[Any, Any, object]) -> None:
        """Begin to work on an event; it counts as under way until that is done."""

        async def whole() -> None:
            self.run.layout.journal.under_way += 1
            try:
                await work
            finally:
                self.run.layout.journal.under_way -= 1

        self.beside(whole())

    def beside(self, work: Coroutine[Any, Any, None]) -> None:
        """Begin something that goes on beside all events until the end."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    async def end(self) -> None:
        """Stop whatever is not done."""
        await end_all(self._tasks)

    async def sleep_until(self, at_s: float) -> None:
        """Sleep until a moment, and write down how late it was."""
        loop = asyncio.get_running_loop()
        if (left_s := at_s - loop.time()) > 0.0:
            await asyncio.sleep(left_s)
        self.run.layout.journal.late(loop.time() - at_s)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (problem := task.exception()) is not None:
            self.run.layout.journal.problem = f"a relay died: {problem!r}"


async def pass_over(
    works: Works, lane: Lane, parts: tuple[Store, *tuple[FailingPart, ...]], event: StoredEvent,
    source: str, sent_s: float,
) -> bool:  # fmt: skip
    """Try once to bring an event over a lane into the next broker's stream; True if it is there.

    ``parts`` are the broker it leads to and the link, if that can fail: what they lose is told.
    """
    assert lane.broker is not None
    assert lane.station is not None
    store = parts[0]
    before = [part.failures for part in parts]
    arrived_s = sent_s + lane.delay()
    await works.sleep_until(arrived_s)
    if before != [part.failures for part in parts]:
        return False  # lost under way
    started_s, left_s = lane.station.serve(arrived_s)
    await works.sleep_until(left_s)
    if before[0] != store.failures or (stored := await store.keep(source, event)) is None:
        return False  # lost in the queue
    if stored.duplicate:
        return True
    visit = StationVisit(
        event=event.name,
        broker=lane.broker,
        came_from=lane.source,
        arrived_s=arrived_s,
        started_s=started_s,
        left_s=left_s,
    )
    works.run.layout.journal.visits.append(visit)
    return True


class Carrier:
    """Carries events over one direction of a link, each until the next broker has it."""

    def __init__(
        self, works: Works, lane: Lane, ends: tuple[Store, Store], link: FailingPart, source: str
    ) -> None:
        self._works, self._lane, self._link, self._source = works, lane, link, source
        self._here, self._there = ends
        self._held: dict[str, Msg] = {}  # by event: what it was last handed out as
        self._done: set[str] = set()

    async def take(self, message: Msg) -> None:
        """Take over what the stream hands out; perhaps again, where nobody acknowledged it yet."""
        event = StoredEvent.of(message)
        if event.name in self._done:
            await self._here.acknowledge(message)
            return
        known = event.name in self._held
        self._held[event.name] = message
        if not known:
            self._works.start(self._carry(event))

    async def _carry(self, event: StoredEvent) -> None:
        loop = asyncio.get_running_loop()
        while not event.is_dropped(loop.time()) and not await self._attempt(event):
            await asyncio.sleep(_AGAIN_S)
            event = replace(event, has_waited=True)
        self._done.add(event.name)
        await self._here.acknowledge(self._held.pop(event.name))

    async def _attempt(self, event: StoredEvent) -> bool:
        parts = (self._there, self._link)
        for part in (self._here, *parts):
            if not part.works.is_set():
                return False
        while self._lane.is_lost():  # not acknowledged, so repeated at once
            pass
        now_s = asyncio.get_running_loop().time()
        return await pass_over(self._works, self._lane, parts, event, self._source, now_s)


class Receiver:
    """A subscriber: takes each event once, over its own link."""

    def __init__(self, works: Works, lane: Lane, home: Store, subscriber: int) -> None:
        self._works, self._lane, self._home, self._subscriber = works, lane, home, subscriber
        self._known: set[str] = set()

    async def take(self, message: Msg) -> None:
        """Take an event, and acknowledge it."""
        event = StoredEvent.of(message)
        if event.name not in self._known:
            self._known.add(event.name)
            if not self._lane.is_lost():
                self._works.start(self._deliver(event))
        await self._home.acknowledge(message)

    async def _deliver(self, event: StoredEvent) -> None:
        loop = asyncio.get_running_loop()
        await self._works.sleep_until(loop.time() + self._lane.delay())
        if not event.is_dropped(loop.time()):
            self._works.run.deliveries.append(
                Delivery(event=event.name, subscriber=self._subscriber, received_s=loop.time())
            )
