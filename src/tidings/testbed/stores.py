"""Brokers that store what they take over: a stream on disk each, which survives a crash."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError
from nats.js import JetStreamContext
from nats.js.api import ConsumerConfig, PubAck, StorageType, StreamConfig

from tidings.testbed.relays import EVENT

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
        """Whether waiting made it too late: it is dropped where that is seen."""
        return self.has_waited and now_s > self.expires_s

    @classmethod
    def of(cls, message: Msg) -> StoredEvent:
        """The event that a stream has handed out."""
        headers = message.headers or {}
        return cls(
            name=headers[_HEADER],
            subject=message.subject.split(".", 2)[2],
            content=message.data,
            expires_s=float(headers[_EXPIRES]),
            has_waited=_WAITED in headers,
        )


@dataclass(slots=True, kw_only=True)
class Part:
    """A broker or link that may be down; by ``failures`` one sees whether it was, meanwhile."""

    works: asyncio.Event = field(default_factory=asyncio.Event)
    failures: int = 0

    def fail(self) -> None:
        """It is down from now on."""
        self.works.clear()
        self.failures += 1


@dataclass(slots=True, kw_only=True)
class Store(Part):
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
        """Have everything of these subjects handed out, again until it is acknowledged."""
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
        """Whether the server is there with its stream."""
        try:
            await self.streams.stream_info(_STREAM)
        except (NatsError, TimeoutError):
            return False
        return True
