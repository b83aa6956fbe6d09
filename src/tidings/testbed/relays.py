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
from dataclasses import dataclass

from tidings.errors import EngineError
from tidings.testbed.ending import end_all
from tidings.testbed.frames import Frame, Frames, NatsFrames, NewFrames
from tidings.testbed.journal import Journal, StationVisit
from tidings.testbed.runs import HOST
from tidings.testbed.stations import BrokerStation

_LOOK_S = 0.005
_APART_S = 1e-9  # what comes at once keeps its order: timers of the same moment have none

Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """One direction of a relay: how events fare on it, and at the broker it leads to."""

    name: str
    source: str  # the broker or client it comes from
    delay: Callable[[], float]
    is_lost: Callable[[], bool]
    broker: str | None = None  # None: it leads to a subscriber
    station: BrokerStation | None = None
    outlasts_sender: bool = False  # what a client has handed over arrives though it leaves


class Relay:
    """A relay between whoever dials it and the port behind it."""

    def __init__(
        self,
        port: int,
        behind: int,
        lanes: tuple[Lane, Lane],
        journal: Journal,
        frames: NewFrames = NatsFrames,
    ) -> None:
        self.port, self._behind, self._frames = port, behind, frames
        self.lanes = lanes  # from the dialling end, and towards it
        self._journal = journal
        self._tasks: set[asyncio.Task[None]] = set()
        self._listener: asyncio.Server | None = None
        self._is_cut = False

    async def open(self) -> None:
        """Begin to listen."""
        try:
            self._listener = await asyncio.start_server(self._accept, HOST, self.port)
        except OSError as problem:
            raise EngineError(
                f"the relay {self.lanes[0].name} cannot listen at port {self.port}: {problem}; "
                "another program has taken it, so run the command again"
            ) from problem

    async def close(self) -> None:
        """Stop listening, and end what is connected."""
        if self._listener is not None:
            self._listener.close()
        await self.cut()

    async def cut(self) -> None:
        """End what is connected and let nobody through; what is under way is lost."""
        self._is_cut = True
        await end_all(self._tasks)

    def mend(self) -> None:
        """Let connections through again; whoever dials must try again."""
        self._is_cut = False

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            if not self._is_cut:
                there, back = await asyncio.open_connection(HOST, self._behind)
                await self._join((reader, writer), (there, back))
        except (OSError, asyncio.CancelledError):  # nobody behind, or the relay is being cut
            pass
        except Exception as problem:  # of ours: the run must not go on as if nothing had been
            self._journal.problem = f"the relay {self.lanes[0].name} died: {problem!r}"
        finally:
            writer.close()
            self._tasks.discard(task)

    async def _join(self, dialling: Ends, behind: Ends) -> None:
        loop = asyncio.get_running_loop()
        inward, outward = self.lanes
        upward = _Direction(inward, behind[1], self._journal)
        downward = _Direction(outward, dialling[1], self._journal)
        directions = [
            asyncio.create_task(upward.carry(dialling[0], self._frames())),
            asyncio.create_task(downward.carry(behind[0], self._frames())),
        ]
        for lane in self.lanes:
            self._journal.joined(lane.name, loop.time())
        try:
            done, _ = await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
            for direction in done:
                direction.result()  # a relay that died says so
            if inward.outlasts_sender and directions[0] in done:
                await upward.empty()
        finally:
            for direction in directions:
                direction.cancel()
            for end in (behind[1], dialling[1]):
                end.close()
            for lane in self.lanes:
                self._journal.parted(lane.name, loop.time())
            await asyncio.gather(*directions, return_exceptions=True)


class _Direction:
    """One direction of one connection."""

    def __init__(self, lane: Lane, to: asyncio.StreamWriter, journal: Journal) -> None:
        self._lane, self._to, self._journal = lane, to, journal
        self._loop = asyncio.get_running_loop()
        self._interest_s = 0.0
        self._held = 0  # events

    async def carry(self, reader: asyncio.StreamReader, frames: Frames) -> None:
        """Pass everything on until the connection ends."""
        while data := await reader.read(1 << 16):
            now_s = self._loop.time()
            for number, frame in enumerate(frames.feed(data)):
                self._pass(frame, now_s + number * _APART_S)

    async def empty(self) -> None:
        """Wait until everything that was taken over has been passed on."""
        while self._held and not self._to.is_closing():
            await asyncio.sleep(_LOOK_S)

    def _hold(self, more: int) -> None:
        self._held += more
        self._journal.under_way += more

    def _pass(self, frame: Frame, now_s: float) -> None:
        if frame.event is not None:
            self._event(frame, now_s)
        elif frame.is_interest:
            self._interest_s = max(self._interest_s, now_s + self._lane.delay())
            self._loop.call_at(self._interest_s, self._pass_interest, frame, self._interest_s)
        else:
            self._write(frame.data)

    def _event(self, frame: Frame, now_s: float) -> None:
        if self._lane.broker is not None:
            self._journal.sends(frame.event or "", self._lane.source, self._lane.broker)
        if self._lane.is_lost():
            self._journal.lost[self._lane.name] = self._journal.lost.get(self._lane.name, 0) + 1
            return
        arrival_s = now_s + self._lane.delay()
        self._hold(+1)
        if self._lane.station is None:
            self._loop.call_at(arrival_s, self._deliver, frame, arrival_s, None)
        else:
            # Whoever arrives first is served first, also where delays let one overtake another.
            self._loop.call_at(arrival_s, self._serve, frame, arrival_s)

    def _serve(self, frame: Frame, arrival_s: float) -> None:
        lane = self._lane
        assert lane.station is not None
        assert lane.broker is not None
        if self._to.is_closing():  # the broker is down, or the link was cut meanwhile
            self._hold(-1)
            return
        start_s, end_s = lane.station.serve(arrival_s)
        visit = StationVisit(
            event=frame.event or "",
            broker=lane.broker,
            came_from=lane.source,
            arrived_s=arrival_s,
            started_s=start_s,
            left_s=end_s,
        )
        self._loop.call_at(end_s, self._deliver, frame, end_s, visit)

    def _deliver(self, frame: Frame, due_s: float, visit: StationVisit | None) -> None:
        self._hold(-1)
        if self._to.is_closing():
            return
        self._journal.late(self._loop.time() - due_s)
        if visit is not None:
            self._journal.visits.append(visit)
        self._to.write(frame.data)

    def _pass_interest(self, frame: Frame, due_s: float) -> None:
        if self._to.is_closing():
            return
        self._journal.late(self._loop.time() - due_s)
        for subjects, wanted in ((frame.asks, True), (frame.withdraws, False)):
            for subject in subjects:
                self._journal.crossed(self._lane.name, subject, self._loop.time(), wanted=wanted)
        self._to.write(frame.data)

    def _write(self, data: bytes) -> None:
        if not self._to.is_closing():
            self._to.write(data)
