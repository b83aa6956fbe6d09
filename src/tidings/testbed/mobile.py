"""Clients that connect and disconnect by their laws, and what is kept for them meanwhile.

A subscriber that comes and goes has a durable consumer on a stream of its own at its home broker; a
stand-in of the broker puts into it whatever is wanted. Where its buffer is bounded, so is the
stream, which refuses what is too much. It holds an event until it has been handed over and
acknowledged. A publisher that comes and goes keeps its events itself.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError
from nats.js import JetStreamContext
from nats.js.api import ConsumerConfig, DiscardPolicy, RetentionPolicy, StorageType, StreamConfig
from nats.js.errors import APIError

from tidings.testbed.carrying import ONCE, Works
from tidings.testbed.clients import Clients
from tidings.testbed.frames import EVENT
from tidings.testbed.relays import Lane
from tidings.testbed.runs import Delivery, SessionChange
from tidings.testbed.stations import PeerGate, gate

_HEADER, _ARRIVED = EVENT.decode(), "Tidings-Arrived"
_AGAIN_S = 0.02
_ACK_WAIT_S = 0.5  # then a consumer hands out again what was lost when its client went
_SUBSCRIBER, _PUBLISHER = 21, 22  # of random numbers


class Presence:
    """A client that is connected while its gate is open; it really goes, and comes back."""

    def __init__(self, works: Works, clients: Clients, name: str, port: int, own: PeerGate) -> None:
        self._works, self._clients, self._name, self._port = works, clients, name, port
        self.gate = own
        self.client: Client | None = None
        self.connected = asyncio.Event()

    async def come_and_go(self) -> None:
        """Connect and disconnect at the moments of the gate, for ever."""
        run, loop, number = self._works.run, asyncio.get_running_loop(), 0
        while True:
            begin_s, end_s = (run.start_s + each for each in self.gate.period(number))
            await self._works.sleep_until(begin_s)
            self.client = await self._clients.connect(self._port, self._name)
            run.connecting_s.append(loop.time() - begin_s)
            self._note(is_connected=True)
            await self.arrive(self.client)
            self.connected.set()
            await self._works.sleep_until(end_s)
            self.connected.clear()
            await self._clients.leave(self.client)
            self._note(is_connected=False)
            number += 1

    async def arrive(self, client: Client) -> None:
        """Do what a client does first when it has come back: here, nothing."""

    def _note(self, *, is_connected: bool) -> None:
        now_s = asyncio.get_running_loop().time()
        change = SessionChange(peer=self._name, is_connected=is_connected, at_s=now_s)
        self._works.run.sessions.append(change)


class MobilePublisher(Presence):
    """A publisher that keeps its events while it is away, and hands over one after the other."""

    def __init__(self, works: Works, clients: Clients, index: int) -> None:
        run = works.run
        one = run.system.publishers[index]
        assert one.connectivity is not None
        own = gate(one.connectivity, (run.options.seed, _PUBLISHER, index))
        super().__init__(works, clients, one.name, run.layout.publisher_ports[index], own)
        self._buffer = one.connectivity.buffer
        self._ends_s: deque[float] = deque()  # of events that are not handed over yet

    def accept(self, at_s: float) -> float | None:
        """Compute when an event published now is handed over, in seconds; None: full buffer."""
        while self._ends_s and self._ends_s[0] <= at_s:
            self._ends_s.popleft()
        if self._buffer is not None and len(self._ends_s) > self._buffer:
            return None
        self._ends_s.append(self.gate.serve(at_s))
        return self._ends_s[-1]

    async def publish(
        self, due_s: float, subject: str, content: bytes, headers: dict[str, str]
    ) -> None:
        """Publish when it is due, or as soon afterwards as the client is really there."""
        await self._works.sleep_until(self._works.run.start_s + due_s)
        while True:
            await self.connected.wait()
            assert self.client is not None
            with contextlib.suppress(NatsError):
                await self.client.publish(subject, content, headers=headers)
                return
            await asyncio.sleep(_AGAIN_S)  # it is just leaving, or has lost its broker


class MobileSubscriber(Presence):
    """A subscriber with a durable consumer at its home broker."""

    def __init__(self, works: Works, clients: Clients, index: int, lane: Lane) -> None:
        run = works.run
        one = run.system.subscribers[index]
        assert one.connectivity is not None
        own = gate(one.connectivity, (run.options.seed, _SUBSCRIBER, index))
        self._home_port = run.layout.servers[one.at].client_port
        super().__init__(works, clients, one.name, self._home_port, own)
        self._index, self._lane, self._buffer = index, lane, one.connectivity.buffer
        self._inbox = f"inbox.{index}"
        self._begun: set[str] = set()
        self._finished: set[str] = set()
        self._streams: JetStreamContext | None = None

    async def open(self, subjects: tuple[str, ...]) -> None:
        """Create the stream and its consumer, and have the broker's stand-in fill it."""
        stand_in = await self._clients.connect(self._home_port, f"stand-in of {self._name}")
        self._streams = stand_in.jetstream()
        await self._streams.add_stream(
            StreamConfig(
                name=f"INBOX_{self._index}",
                subjects=[self._inbox],
                storage=StorageType.FILE,
                retention=RetentionPolicy.WORK_QUEUE,
                # One is being handed over; the others wait.
                max_msgs=-1 if self._buffer is None else self._buffer + 1,
                discard=DiscardPolicy.NEW,
            )
        )
        await self._streams.add_consumer(
            f"INBOX_{self._index}",
            ConsumerConfig(
                durable_name="peer",
                deliver_subject=f"out.{self._index}",
                ack_wait=_ACK_WAIT_S,
                max_ack_pending=1,
            ),
        )
        for subject in subjects:
            await stand_in.subscribe(subject, cb=self._keep)

    async def arrive(self, client: Client) -> None:
        """Ask for what was kept."""
        await client.subscribe(f"out.{self._index}", cb=self._take)

    async def _keep(self, message: Msg) -> None:
        """Put an event into the stream, which may refuse it; under way until it is out of it.

        A server that is too busy to answer is asked again, and knows what it has stored already.
        """
        now_s = asyncio.get_running_loop().time()
        assert self._streams is not None
        event = (message.headers or {}).get(_HEADER, "")
        headers = {_HEADER: event, _ARRIVED: repr(now_s), ONCE: event}
        journal = self._works.run.layout.journal
        journal.under_way += 1
        while True:
            try:
                await self._streams.publish(self._inbox, message.data, headers=headers)
                return
            except APIError:  # its buffer is full
                journal.under_way -= 1
                journal.overflowed[self._name] = journal.overflowed.get(self._name, 0) + 1
                return
            except NatsError:
                await asyncio.sleep(_AGAIN_S)

    async def _take(self, message: Msg) -> None:
        """Take what the consumer hands over, perhaps again: it goes on until it is acknowledged."""
        headers = message.headers or {}
        event, start_s = headers[_HEADER], self._works.run.start_s
        if event in self._finished:
            await self._acknowledge(message)
        elif event not in self._begun:
            self._begun.add(event)
            end_s = start_s + self.gate.serve(float(headers[_ARRIVED]) - start_s)
            self._works.start(self._hand_over(event, message, end_s))

    async def _hand_over(self, event: str, message: Msg, end_s: float) -> None:
        run, loop = self._works.run, asyncio.get_running_loop()
        await self._works.sleep_until(end_s)
        self._finished.add(event)
        await self._acknowledge(message)
        run.layout.journal.under_way -= 1  # out of the stream, on the link
        if not self._lane.is_lost():
            await self._works.sleep_until(max(end_s, loop.time()) + self._lane.delay())
            run.deliveries.append(
                Delivery(event=event, subscriber=self._index, received_s=loop.time())
            )

    async def _acknowledge(self, message: Msg) -> None:
        await self.connected.wait()
        assert self.client is not None
        with contextlib.suppress(NatsError):  # gone again: it will be handed over again
            await self.client.publish(message.reply, b"+ACK")
