"""Subscribers that take their time, and consumer groups: core NATS queue groups, pull consumers.

A group whose members are handed events unasked is a queue group of core NATS. Any other is a stream
at its home broker, which a stand-in of the broker fills, with a pull consumer that members share;
where events are split into partitions each member has a consumer of its own for those that it has.

A member asks for events as the clients of NATS do that consume continuously: for as many as it may
hold, and for what is missing whenever fewer than a threshold are left of those asked for and not
yet handled. What the server does with requests was tried: each event goes to the request that waits
longest, which then waits behind all others for the rest that it asks for.
"""

from __future__ import annotations

import asyncio
import json
from bisect import bisect_right
from collections.abc import Callable
from itertools import accumulate

import numpy as np
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError
from nats.js import JetStreamContext
from nats.js.api import ConsumerConfig, DiscardPolicy, RetentionPolicy, StorageType, StreamConfig
from nats.js.errors import APIError

from tidings.errors import UnsupportedError
from tidings.model.behaviour import Channel
from tidings.model.consumers import LONGEST_WAITING, WHEN_FULL, Consumers, Member
from tidings.model.system import Subscriber, System
from tidings.testbed.carrying import Works
from tidings.testbed.clients import Clients
from tidings.testbed.frames import EVENT
from tidings.testbed.runs import Delivery, Handling
from tidings.testbed.stations import draws

_HEADER = EVENT.decode()
_NEXT = "$JS.API.CONSUMER.MSG.NEXT"
_NEVER_S = 3600.0  # longer than any run: a request does not end, an acknowledgement is not missed
_AGAIN_S, _LOOK_S = 0.02, 0.2
PROCESSING, _PARTITION = 31, 32  # of random numbers


def takes_time(subscriber: Subscriber) -> bool:
    """Test whether a subscriber handles events one after the other, alone or as a group."""
    return subscriber.processing is not None or subscriber.consumers is not None


def is_pushed(subscriber: Subscriber) -> bool:
    """Test whether members are handed events unasked, so that no stream is needed."""
    return subscriber.consumers is None or subscriber.consumers.prefetch == 0


def check_consumers(system: System, refusal: Callable[[Subscriber, Consumers], str]) -> None:
    """Refuse groups that servers do not have, by the ``refusal`` of their kind."""
    for each in system.subscribers:
        if not takes_time(each):
            continue
        consumers = each.consumers or Consumers()
        reason = _refusal_of_any(each, consumers) or refusal(each, consumers)
        if reason:
            raise UnsupportedError(f"the testbed does not handle subscribers.{each.name}: {reason}")


def _refusal_of_any(subscriber: Subscriber, consumers: Consumers) -> str:
    """Say why a group is impossible on any server; empty if it is possible."""
    if consumers.qos != 1:
        return "'qos'; leave it out"
    if subscriber.link != Channel():
        return "'link' of a subscriber with a processing time; leave it out"
    if subscriber.connectivity is not None or subscriber.stays is not None:
        return "a processing time of a subscriber that comes and goes"
    if any(member.failure for member in consumers.each()):
        return "members that fail"
    if consumers.fetch is not None:
        return "'fetch'; give a 'prefetch' instead"
    limited = consumers.acknowledges or consumers.buffer is not None or consumers.in_flight
    if is_pushed(subscriber) and limited:
        return "'prefetch: 0' with acknowledgements or limits; give a 'prefetch' above 0"
    return ""


def nats_refusal(subscriber: Subscriber, consumers: Consumers) -> str:
    """Say why a group is impossible on NATS; empty if it is possible."""
    if is_pushed(subscriber):
        if subscriber.consumers is not None and consumers.choose != "random":
            return "core NATS hands events to a random member; write 'choose: random'"
    elif consumers.prefetch > 1 and not consumers.asks and consumers.partitions is None:
        return (
            "a server of NATS gives the next event to the request that waits longest; write "
            f"'choose: {LONGEST_WAITING}', and 'refill' if members do not ask for each one"
        )
    return ""


class Worker:
    """One member: handles what it has, one after the other, in virtual time."""

    def __init__(self, works: Works, group: ConsumerGroup, member: Member, number: int) -> None:
        self._works, self._group, self._number = works, group, number
        law = member.processing or group.subscriber.processing
        assert law is not None
        seed = (works.run.options.seed, PROCESSING, group.index, number)
        self._processing: Callable[[], float] = draws(law, np.random.default_rng(seed))
        self._has: asyncio.Queue[tuple[Msg, float]] = asyncio.Queue()
        self._left = 0  # of the events asked for, those not handled yet
        self._free_s = 0.0
        self.client: Client | None = None
        self._inbox = ""
        self.consumer = ""  # that it asks; empty: it is handed events unasked

    @property
    def is_idle(self) -> bool:
        """Whether it has nothing to do."""
        return self._has.empty() and self._free_s <= asyncio.get_running_loop().time()

    async def take(self, message: Msg) -> None:
        """Take an event, to handle it in its turn."""
        if message.headers is None or _HEADER not in message.headers:
            return  # a word of the server
        self._has.put_nowait((message, asyncio.get_running_loop().time()))

    async def begin(self, client: Client) -> None:
        """Ask for the first events."""
        self.client, self._inbox = client, client.new_inbox()
        await client.subscribe(self._inbox, cb=self.take)
        await self._ask()

    async def work(self) -> None:
        """Handle events for ever."""
        run = self._works.run
        while True:
            message, taken_s = await self._has.get()
            begin_s = self._group.after_stops(max(taken_s, self._free_s))
            end_s = begin_s + self._processing()
            self._free_s = end_s
            await self._works.sleep_until(end_s)
            assert message.headers is not None
            event = message.headers[_HEADER]
            run.handlings.append(
                Handling(
                    event=event,
                    subscriber=self._group.index,
                    member=self._number,
                    begin_s=begin_s,
                    end_s=asyncio.get_running_loop().time(),
                    part=self._group.partition_of(message.subject),
                )
            )
            self._group.handled(event)
            if self.client is not None and self.consumer:
                await self.client.publish(message.reply, b"+ACK")
                self._left -= 1
                await self._ask()

    async def _ask(self) -> None:
        """Ask for what is missing, if few enough are left."""
        consumers = self._group.consumers
        missing = consumers.prefetch - self._left
        if self._left >= (consumers.refill or consumers.prefetch) or not self.consumer:
            return
        self._left = consumers.prefetch
        request = json.dumps({"batch": missing, "expires": round(_NEVER_S * 1e9)}).encode()
        assert self.client is not None
        subject = f"{_NEXT}.{self._group.stream}.{self.consumer}"
        await self.client.publish(subject, request, reply=self._inbox)


class ConsumerGroup:
    """A subscriber that handles events one after the other, by one member or several."""

    def __init__(self, works: Works, clients: Clients, index: int) -> None:
        run = works.run
        self._works, self._clients, self.index = works, clients, index
        self.subscriber = run.system.subscribers[index]
        self.consumers = self.subscriber.consumers or Consumers()
        self.stream = f"GROUP_{index}"
        self._home_port = run.layout.servers[self.subscriber.at].client_port
        self._members = [
            Worker(works, self, member, number)
            for number, member in enumerate(self.consumers.each())
        ]
        self._stops = [each for each in run.stops if each.subscriber == self.subscriber.name]
        self._seen: set[str] = set()
        self._stored = 0  # events that count as under way until the group has nothing to do
        self._streams: JetStreamContext | None = None
        partitions = self.consumers.partitions
        self._below = list(accumulate(partitions.used_shares))[:-1] if partitions else []
        self._random = np.random.default_rng((run.options.seed, _PARTITION, index))

    async def open(self, subjects: tuple[str, ...]) -> None:
        """Connect the members and let them handle events from now on."""
        name = self.subscriber.name
        for number, each in enumerate(self._members):
            client = await self._clients.connect(self._home_port, f"{name}, member {number + 1}")
            self._works.beside(each.work())
            if is_pushed(self.subscriber):
                for subject in subjects:
                    await client.subscribe(subject, queue=self.stream, cb=each.take)
            each.client = client
        stand_in = await self._clients.connect(self._home_port, f"stand-in of {name}")
        self._streams = stand_in.jetstream()
        if not is_pushed(self.subscriber):
            await self._create()
            for subject in subjects:
                await stand_in.subscribe(subject, cb=self._keep)
            for each in self._members:
                if each.consumer:
                    assert each.client is not None
                    await each.begin(each.client)
        self._works.beside(self._look())

    async def _create(self) -> None:
        """Create the stream and its consumers."""
        assert self._streams is not None
        await self._streams.add_stream(_stream(self.stream, self.consumers, self._topic("*")))
        for number, (member, partitions) in enumerate(self._shared_out()):
            durable = f"member-{number}" if self.consumers.partitions else "members"
            for each in member:
                self._members[each].consumer = durable
            filters = [self._topic(str(each)) for each in partitions]
            await self._streams.add_consumer(
                self.stream, _consumer(durable, self.consumers, filters)
            )

    def _shared_out(self) -> list[tuple[list[int], list[int]]]:
        """List the members that share each consumer, with the partitions that it hands out."""
        partitions = self.consumers.partitions
        if partitions is None:
            return [(list(range(len(self._members))), [0])]
        names = [each.name for each in self.consumers.each()]
        owners = partitions.owners or [names[at % len(names)] for at in range(partitions.count)]
        mine = [[at for at, owner in enumerate(owners) if owner == name] for name in names]
        return [([number], each) for number, each in enumerate(mine) if each]

    def partition_of(self, topic: str) -> str | None:
        """Name the partition whose events come under this topic; None where there are none."""
        return topic.rpartition(".")[2] if self.consumers.partitions else None

    def _topic(self, partition: str) -> str:
        return f"group.{self.index}.{partition}"

    async def _keep(self, message: Msg) -> None:
        """Put an event into the stream, which may refuse it."""
        assert self._streams is not None
        event = (message.headers or {}).get(_HEADER, "")
        partition = bisect_right(self._below, self._random.random()) if self._below else 0
        journal = self._works.run.layout.journal
        journal.under_way += 1
        self._stored += 1
        try:
            await self._streams.publish(
                self._topic(str(partition)), message.data, headers={_HEADER: event}
            )
        except APIError:  # it is full
            name = self.subscriber.name
            journal.overflowed[name] = journal.overflowed.get(name, 0) + 1

    def handled(self, event: str) -> None:
        """Write down that an event was handled; it is received the first time."""
        if event not in self._seen:
            self._seen.add(event)
            now_s = asyncio.get_running_loop().time()
            self._works.run.deliveries.append(
                Delivery(event=event, subscriber=self.index, received_s=now_s)
            )

    def after_stops(self, at_s: float) -> float:
        """Compute when a member begins, after any stop, that would begin at ``at_s``.

        Both are moments of the loop's clock, in seconds.
        """
        start_s = self._works.run.start_s
        for each in self._stops:
            if each.begin_s <= at_s - start_s < each.end_s:
                return start_s + each.end_s
        return at_s

    async def _look(self) -> None:
        """Look now and then whether the group has nothing left to do."""
        journal = self._works.run.layout.journal
        while True:
            await asyncio.sleep(_LOOK_S)
            before = self._stored
            if not all(each.is_idle for each in self._members) or await self._is_waiting():
                if self._stored == 0:
                    self._stored, journal.under_way = 1, journal.under_way + 1
            elif before == self._stored:
                journal.under_way -= self._stored
                self._stored = 0

    async def _is_waiting(self) -> bool:
        """Test whether events wait in the stream, or for an acknowledgement."""
        assert self._streams is not None
        for consumer in {each.consumer for each in self._members if each.consumer}:
            try:
                info = await self._streams.consumer_info(self.stream, consumer)
            except (NatsError, TimeoutError):
                return True
            if info.num_pending or info.num_ack_pending:
                return True
        return False


def _stream(name: str, consumers: Consumers, subject: str) -> StreamConfig:
    """Configure a stream that keeps events until they are acknowledged.

    Its limit counts what members hold too. When a stream that drops old events is full it first
    drops those that members hold already, which does not hurt; so its limit is that of what waits.
    """
    drops_old = consumers.when_full == WHEN_FULL[1]
    held = consumers.in_flight or len(list(consumers.each())) * consumers.prefetch
    most = -1 if consumers.buffer is None else consumers.buffer + (0 if drops_old else held)
    return StreamConfig(
        name=name,
        subjects=[subject],
        storage=StorageType.MEMORY,
        retention=RetentionPolicy.WORK_QUEUE,
        max_msgs=most,
        discard=DiscardPolicy.OLD if drops_old else DiscardPolicy.NEW,
    )


def _consumer(name: str, consumers: Consumers, filters: list[str]) -> ConsumerConfig:
    """Configure a pull consumer with the group's settings."""
    # Times of nanoseconds: what a float makes of seconds would be refused for its digits.
    backoff = [round(each, 6) for each in consumers.backoff_s]
    deliveries = consumers.deliveries or -1
    return ConsumerConfig(
        durable_name=name,
        filter_subjects=filters,
        ack_wait=consumers.ack_wait_s or (None if backoff else _NEVER_S),
        backoff=backoff or None,
        max_deliver=deliveries,
        max_ack_pending=consumers.in_flight or -1,
    )
