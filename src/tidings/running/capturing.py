"""Per-hop traces of traffic that other people's clients send, without touching it.

A listener hears what is published. For each message, or a sample of them, a *trace-only* message
goes out on the same subject, at the same server and under the name of the client that published:
servers report how they would pass it on and to whom, and deliver and store nothing. Who publishes
on which subject is found first, from counters (``attributing``).

A copy that followed its message at once would wait behind it: links keep the order, so it would
have the longer of two delays. So it goes out after a pause of its own, and all that is reported of
it is moved back by that pause, to when its message was published.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import re
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tidings.errors import EngineError
from tidings.model import json_text
from tidings.model.naming import few
from tidings.model.progress import Progress
from tidings.running.asking import Pages
from tidings.running.attributing import Attribution
from tidings.running.heard import (
    LISTENER,
    Heard,
    Homes,
    Reading,
    attribute_heard,
    find_listener,
    read_counters,
)
from tidings.running.heartbeats import SUBJECT, Heartbeats, poll_consumers
from tidings.running.nats_counts import INNER
from tidings.running.nats_pages import PORT, connect, read_varz, user_of

_TRACES = "tidings.trace."
_READ_S = 0.5  # between two readings of the counters
_READINGS = 16  # tell senders apart, mostly
_LEAST_LEARNING_S = 8.0
_MOST_LEARNING_S = 25.0  # where it is still unsure who publishes what
_LONGEST_PAUSE_S = 2.0  # of a copy after its message: many times what most links take
_LAST_S = 1.0  # until the last reports must be here, after the last pause
_MOMENT = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d+))?(Z|[+-]\d\d:\d\d)")
_ANYWHERE = ("", "0.0.0.0", "::")
_HANDED_OUT = "$JS.ACK."  # where consumers of a stream say that they have handled a message
_BUNCHED = 3.0  # times the variance of independent messages
_LARGE_BYTES = 2000.0  # take more than one packet
_EXPLAINED = 0.8  # of what a sender sent; with less, others may have published it


@dataclass(frozen=True, slots=True, kw_only=True)
class CapturePlan:
    """What to capture: from where, for how long, which subjects, how many at most a second."""

    url: str
    pages: tuple[str, ...]
    seconds: float
    subject: str = ">"
    most_per_s: float = 100.0
    lifetime_s: float | None = None
    credentials: str | None = None
    seed: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Captured:
    """What came of a capture; ``sampled`` is the share of messages that were traced."""

    reports: int
    heard: int
    traced: int
    sampled: float
    seconds: float
    probes: int = 0  # heartbeats over links
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class _Server:
    """A server: its pages, and where clients connect to it."""

    pages: Pages
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Copy:
    """The size of the message that is traced, and how long after it the copy goes out."""

    size: int
    pause_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureFiles:
    """Where a capture writes: reports of servers, heartbeats over links, polls of consumers."""

    reports: Path
    probes: Path
    polls: Path


def capture(plan: CapturePlan, folder: Path, progress: Progress = lambda stage: None) -> Captured:
    """Trace running traffic for so many seconds; what is learnt goes to files of a folder."""
    return asyncio.run(_Capture(plan, progress).run(places_in(folder)))


def places_in(folder: Path) -> CaptureFiles:
    """Name the files that a capture writes in a folder."""
    return CaptureFiles(
        reports=folder / "reports.jsonl", probes=folder / "probes.csv", polls=folder / "polls"
    )


class _Capture:
    def __init__(self, plan: CapturePlan, progress: Progress) -> None:
        self._plan, self._progress = plan, progress
        self._chance = random.Random(plan.seed)
        self._destination = _TRACES + "".join(random.choices("abcdefghijklmnop", k=12))
        self._clients: list[Any] = []
        self._heard: Heard | None = None  # while it is learnt who publishes what
        self._on_message: Callable[[str, int], Any] | None = None
        self._copies: dict[str, _Copy] = {}  # by id
        self._unknown: Counter[str] = Counter()
        self._traced = 0
        self._beats = Heartbeats(self._destination)
        self._polls = Path()
        self._unpolled: list[str] = []
        self._beatless: list[str] = []

    async def run(self, places: CaptureFiles) -> Captured:
        addresses = self._plan.pages or (f"http://{urlsplit(self._plan.url).hostname}:{PORT}",)
        servers = await asyncio.to_thread(self._servers, addresses)
        listener = await self._connect(self._plan.url, LISTENER)
        await listener.subscribe(self._plan.subject, cb=self._take)
        await listener.flush()
        try:
            self._progress("learning who publishes what")
            heard_first = self._heard = Heard()
            attribution, homes, rate = await self._learn(servers, heard_first, listener)
            self._heard = None
            if not rate:
                raise EngineError(
                    f"nothing was published on '{self._plan.subject}' in {_LEAST_LEARNING_S:g} s"
                )
            sampled = min(1.0, self._plan.most_per_s / rate)
            self._progress(f"tracing for {self._plan.seconds:g} s")
            self._polls = places.polls
            heard, lines = await self._trace(servers, attribution, homes, sampled, listener)
        finally:
            for client in self._clients:
                await client.close()
        await asyncio.to_thread(places.reports.write_text, "".join(lines))
        probes = await asyncio.to_thread(self._beats.write, places.probes)
        return Captured(
            reports=len(lines),
            heard=heard,
            traced=self._traced,
            sampled=sampled,
            seconds=self._plan.seconds,
            probes=probes,
            notes=(
                *_unseen(heard_first),
                *self._notes(attribution, idle=len(servers) > 1 and not probes),
            ),
        )

    @contextlib.asynccontextmanager
    async def _beside(self, servers: dict[str, _Server]) -> AsyncIterator[None]:
        """Run what goes on while messages are traced: heartbeats, and polls of consumers."""
        clients = []
        for name, server in servers.items():
            try:
                clients.append(await self._connect(server.url, LISTENER))
            except EngineError as problem:
                self._beatless.append(f"{name} ({problem})")
        pages, seconds = [each.pages for each in servers.values()], self._plan.seconds
        tasks = [
            asyncio.create_task(poll_consumers(pages, seconds, self._polls, self._unpolled)),
            asyncio.create_task(self._beats.send(clients)),
        ]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
            self._beatless += [str(each) for each in ended if isinstance(each, Exception)]

    def _servers(self, addresses: Sequence[str]) -> dict[str, _Server]:
        """List the servers behind these pages, by name, and where clients reach them."""
        servers = {}
        for address in addresses:
            pages = Pages(address, [])
            varz = read_varz(pages)
            own = str(varz.get("host") or "")
            host = urlsplit(pages.base).hostname if own in _ANYWHERE else own
            name = str(varz.get("server_name") or varz["server_id"])
            servers[name] = _Server(pages, f"nats://{host}:{varz.get('port')}")
        return servers

    async def _connect(self, url: str, name: str) -> Any:
        client = await connect(url, name, user_of(self._plan.url), self._plan.credentials)
        self._clients.append(client)
        return client

    async def _take(self, message: Any) -> None:
        """Take in a message that was published; reports, traced copies and deliveries are not."""
        ours = message.subject.startswith(_TRACES)
        published = not ours and not message.reply.startswith(_HANDED_OUT)
        size = len(message.data)
        if self._heard is not None:
            self._heard.add(message.subject, size, published=published)
        if self._on_message is not None and published and not message.subject.startswith(INNER):
            await self._on_message(message.subject, size)

    async def _learn(
        self, servers: dict[str, _Server], heard: Heard, client: Any
    ) -> tuple[Attribution, Homes, float]:
        """Listen and read counters until it is sure who publishes what, or for the longest time.

        Gives who publishes what, where senders are, and the messages a second.
        """
        pages = {name: each.pages for name, each in servers.items()}
        listener = await asyncio.to_thread(find_listener, pages, client.client_id)
        ends_s = min(_MOST_LEARNING_S, max(_LEAST_LEARNING_S, self._plan.seconds / 4))
        began = time.monotonic()
        readings: list[Reading] = []
        homes: Homes = {}
        while True:
            reading, here = await asyncio.to_thread(read_counters, pages, listener)
            readings.append(reading)
            homes |= here
            await asyncio.sleep(_READ_S)
            passed_s = time.monotonic() - began
            if passed_s < ends_s or (len(readings) < _READINGS and passed_s < _MOST_LEARNING_S):
                continue
            attribution = attribute_heard(heard, readings, homes)
            unsure = [each for each in attribution.unsure if each not in INNER]
            if not unsure or ends_s >= _MOST_LEARNING_S:
                return attribution, homes, heard.events() / passed_s
            ends_s = _MOST_LEARNING_S

    async def _trace(
        self,
        servers: dict[str, _Server],
        attribution: Attribution,
        homes: Homes,
        sampled: float,
        listener: Any,
    ) -> tuple[int, list[str]]:
        """Send a trace-only copy of what is heard; gives how many were heard, and the reports."""
        lines: list[str] = []

        async def keep(message: Any) -> None:
            line = None if self._beats.take(message.data) else self._report(message.data)
            if line is not None:
                lines.append(line)

        await listener.subscribe(self._destination, cb=keep)
        await listener.flush()
        senders: dict[str, Any] = {}
        for sender in attribution.senders:
            if any(
                dict(attribution.of(s)).get(sender) for s in attribution.subjects if s not in INNER
            ):
                name, server = homes[sender]
                senders[sender] = await self._connect(servers[server].url, name)
        heard = 0

        async def copy(subject: str, size: int) -> None:
            nonlocal heard
            heard += 1
            if self._chance.random() >= sampled:
                return
            by_sender = attribution.of(subject)
            if not by_sender:
                self._unknown[subject] += 1
                return
            names, shares = zip(*by_sender, strict=True)
            sender = self._chance.choices(names, shares)[0]
            event = f"{self._destination[len(_TRACES) :]}-{self._traced}"
            self._traced += 1
            pause_s = self._chance.uniform(0.0, _LONGEST_PAUSE_S)
            self._copies[event] = _Copy(size=size, pause_ns=round(pause_s * 1e9))
            headers = {
                "Nats-Trace-Dest": self._destination,
                "Nats-Trace-Only": "true",
                "Nats-Msg-Id": event,
            }
            sending.create_task(send(senders[sender], subject, headers, pause_s))

        async def send(client: Any, subject: str, headers: dict[str, str], pause_s: float) -> None:
            await asyncio.sleep(pause_s)
            headers["Tidings-Published-Ns"] = str(time.time_ns())
            await client.publish(subject, b"", headers=headers)

        async with self._beside(servers), asyncio.TaskGroup() as sending:
            self._on_message = copy
            await asyncio.sleep(self._plan.seconds)
            self._on_message = None
        await asyncio.sleep(_LAST_S)
        return heard, lines

    def _report(self, data: bytes) -> str | None:
        """Write a server's report of a copy as a line, as if it were of the message itself.

        Our own listener is left out, the size is the message's, and all times are those at which
        the message was there. None where it is not of a copy.
        """
        report = json_text.parse(data)
        request = report.get("request") or {}
        headers = request.get("header") or {}
        event = next(iter(headers.get("Nats-Msg-Id") or ()), None)
        copy = self._copies.get(event or "")
        if copy is None:
            return None
        request["msgsize"] = copy.size
        sent_ns = next(iter(headers.get("Tidings-Published-Ns") or ()), "0")
        headers["Tidings-Published-Ns"] = [str(int(sent_ns) - copy.pause_ns)]
        if self._plan.lifetime_s is not None:
            headers["Nats-TTL"] = [f"{max(1, round(self._plan.lifetime_s * 1000))}ms"]
        steps = [each for each in report.get("events") or [] if each.get("name") != LISTENER]
        for each in steps:
            if "ts" in each:
                each["ts"] = earlier(each["ts"], copy.pause_ns)
        report["events"] = steps
        return json.dumps(report) + "\n"

    def _notes(self, attribution: Attribution, *, idle: bool) -> list[str]:
        notes = []
        if idle:
            notes.append(
                f"no server reported a heartbeat ({SUBJECT}) over a link: is the user allowed to "
                "publish and subscribe there?"
            )
        unsure = [
            sender
            for sender, share in zip(attribution.senders, attribution.explained, strict=True)
            if share < _EXPLAINED
        ]
        if unsure:
            notes.append(
                f"what these clients sent was heard only in part: {', '.join(sorted(unsure))}; "
                "another account, or subjects outside --subject"
            )
        guessed = sorted(each for each in attribution.unsure if attribution.of(each))
        if guessed:
            notes.append(
                f"who publishes on {few(guessed)} is only the likeliest: the "
                "counters of several clients grew alike. Rates by publisher may be wrong; capture "
                "again, on a machine that does little else"
            )
        if self._unknown:
            messages = sum(self._unknown.values())
            notes.append(
                f"{messages} messages on {few(sorted(self._unknown))} were not traced: "
                "first heard after who publishes what was learnt, or no client's counters "
                "grew with them"
            )
        if self._beatless:
            notes.append(f"no heartbeats over links from {', '.join(self._beatless)}")
        if self._unpolled:
            notes.append(
                f"{len(self._unpolled)} polls of JetStream consumers failed: {self._unpolled[0]}"
            )
        return notes


def _unseen(heard: Heard) -> list[str]:
    """Note what copies, empty and sent later, do not meet on links."""
    notes, bunching, size = [], heard.bunching(), heard.mean_bytes()
    if bunching > _BUNCHED:
        notes.append(
            f"messages come in bursts (counts in a tenth of a second vary {bunching:.0f} times as "
            "much as of independent ones), and copies go out apart from each other: where a slow "
            "link makes a burst wait for itself, delays are too short and shares on time too high. "
            "Compare with times of your own clients"
        )
    if size > _LARGE_BYTES:
        notes.append(
            f"messages have {size / 1000:.1f} kB on average, and copies have no body: what bodies "
            "take on slow links is not in the delays"
        )
    return notes


def earlier(moment: str, by_ns: int) -> str:
    """Move a moment, as servers write it, back by so many nanoseconds.

    >>> earlier("2026-01-02T00:00:00.25Z", 500_000_001)
    '2026-01-01T23:59:59.749999999Z'
    >>> earlier("2026-01-02T01:00:00+01:00", 1)
    '2026-01-01T23:59:59.999999999Z'
    """
    parts = _MOMENT.fullmatch(moment)
    if parts is None:
        return moment
    whole, fraction, zone = parts.groups()
    seconds = int(datetime.fromisoformat(whole + zone.replace("Z", "+00:00")).timestamp())
    moment_ns = seconds * 1_000_000_000 + int((fraction or "0").ljust(9, "0")[:9]) - by_ns
    seconds, rest_ns = divmod(moment_ns, 1_000_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest_ns:09d}Z"
