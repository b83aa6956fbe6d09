"""Relays on loopback: they give links their delays and losses, and brokers their service times.

A relay stands between two ends of a connection and passes everything on. An event that goes
towards a broker meets the link's loss and delay, then the broker's station; what the real server
does afterwards takes microseconds. Interest (who wants what) meets the delay of the link too, in
order. Nothing else is held up. Every moment at which something is due follows from the moment it
came, the draws and the station; how late the timers of this machine were is written down.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from tidings.testbed.frames import Frame, FrameReader
from tidings.testbed.ports import HOST
from tidings.testbed.stations import Station
from tidings.testbed.subjects import PREFIX

EVENT = b"Tidings-Event"
_OURS = f"{PREFIX}.".encode()
_DIAL_S = 10.0
_AGAIN_S = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """An event at a broker's station; times of the loop's clock, in seconds."""

    event: str
    broker: str
    came_over: str  # the name of the lane
    arrived_s: float
    started_s: float
    left_s: float


@dataclass(slots=True, kw_only=True)
class Journal:
    """What the relays write down."""

    visits: list[Visit] = field(default_factory=list)
    lateness_s: list[float] = field(default_factory=list)
    interest: dict[str, set[str]] = field(default_factory=dict)  # by lane: subjects asked for
    lost: dict[str, int] = field(default_factory=dict)  # by lane
    under_way: int = 0  # events that a relay holds


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """One direction of a relay: how events fare on it, and at the broker it leads to."""

    name: str
    delay: Callable[[], float]
    is_lost: Callable[[], bool]
    broker: str | None = None  # None: it leads to a subscriber
    station: Station | None = None


class Relay:
    """A relay between whoever dials it and the port behind it."""

    def __init__(self, port: int, behind: int, lanes: tuple[Lane, Lane], journal: Journal) -> None:
        self.port, self._behind = port, behind
        self._in, self._out = lanes  # from the dialling end, and towards it
        self._journal = journal
        self._tasks: set[asyncio.Task[None]] = set()
        self._listener: asyncio.Server | None = None

    async def open(self) -> None:
        """Begin to listen."""
        self._listener = await asyncio.start_server(self._accept, HOST, self.port)

    async def close(self) -> None:
        """Stop listening, and end what is connected."""
        if self._listener is not None:
            self._listener.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            there, back = await self._dial()
            ways = [
                asyncio.create_task(_Way(self._in, back, self._journal).carry(reader)),
                asyncio.create_task(_Way(self._out, writer, self._journal).carry(there)),
            ]
            try:
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for way in ways:
                    way.cancel()
                await asyncio.gather(*ways, return_exceptions=True)
                for end in (back, writer):
                    end.close()
        except (OSError, asyncio.CancelledError):  # nobody behind, or the relay is being closed
            writer.close()
        finally:
            self._tasks.discard(task)

    async def _dial(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect to the server behind, which may be starting just now."""
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + _DIAL_S
        while True:
            try:
                return await asyncio.open_connection(HOST, self._behind)
            except OSError:
                if loop.time() > deadline_s:
                    raise
                await asyncio.sleep(_AGAIN_S)


class _Way:
    """One direction of one connection."""

    def __init__(self, lane: Lane, to: asyncio.StreamWriter, journal: Journal) -> None:
        self._lane, self._to, self._journal = lane, to, journal
        self._loop = asyncio.get_running_loop()
        self._interest_s = 0.0

    async def carry(self, reader: asyncio.StreamReader) -> None:
        """Pass everything on until the connection ends."""
        frames = FrameReader()
        while data := await reader.read(1 << 16):
            now_s = self._loop.time()
            for frame in frames.feed(data):
                self._pass(frame, now_s)

    def _pass(self, frame: Frame, now_s: float) -> None:
        ours = frame.subject.startswith(_OURS)
        if ours and frame.is_message:
            self._event(frame, now_s)
        elif ours and frame.is_interest:
            self._interest_s = max(self._interest_s, now_s + self._lane.delay())
            self._loop.call_at(self._interest_s, self._pass_interest, frame)
        else:
            self._write(frame.data)

    def _event(self, frame: Frame, now_s: float) -> None:
        if self._lane.is_lost():
            self._journal.lost[self._lane.name] = self._journal.lost.get(self._lane.name, 0) + 1
            return
        arrival_s = now_s + self._lane.delay()
        self._journal.under_way += 1
        if self._lane.station is None:
            self._loop.call_at(arrival_s, self._deliver, frame, arrival_s)
        else:
            # Whoever arrives first is served first, also where delays let one overtake another.
            self._loop.call_at(arrival_s, self._serve, frame, arrival_s)

    def _serve(self, frame: Frame, arrival_s: float) -> None:
        lane = self._lane
        assert lane.station is not None
        assert lane.broker is not None
        start_s, end_s = lane.station.serve(arrival_s)
        event = (frame.value_of(EVENT) or b"").decode()
        self._journal.visits.append(
            Visit(
                event=event,
                broker=lane.broker,
                came_over=lane.name,
                arrived_s=arrival_s,
                started_s=start_s,
                left_s=end_s,
            )
        )
        self._loop.call_at(end_s, self._deliver, frame, end_s)

    def _deliver(self, frame: Frame, due_s: float) -> None:
        self._journal.lateness_s.append(self._loop.time() - due_s)
        self._journal.under_way -= 1
        self._write(frame.data)

    def _pass_interest(self, frame: Frame) -> None:
        asked = self._journal.interest.setdefault(self._lane.name, set())
        if frame.verb == b"LS+":
            asked.add(frame.subject.decode())
        elif frame.verb == b"LS-":
            asked.discard(frame.subject.decode())
        self._write(frame.data)

    def _write(self, data: bytes) -> None:
        if not self._to.is_closing():
            self._to.write(data)
