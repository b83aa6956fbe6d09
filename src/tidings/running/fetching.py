"""Rows of trace tables fetched from where they are kept: a JetStream stream, files on a web server.

Both can be read again from any offset, so that what has been fetched is known by the pieces in an
:class:`~tidings.running.inbox.Inbox` alone. A fetch reads what is there when it begins, and waits
for nothing. Rows are not looked into: whoever takes them in sets the bad ones aside.
"""

from __future__ import annotations

import asyncio
import base64
import urllib.error
import urllib.parse
import urllib.request
from typing import Any, Protocol

from tidings.errors import EngineError, InvalidInputError
from tidings.model.trace_tables import MANIFEST, TRACE_TABLES
from tidings.running.asking import hidden
from tidings.running.inbox import Inbox
from tidings.running.nats_pages import connect, user_of

_TIMEOUT_S = 5.0
_MOST_MESSAGES, _MOST_BYTES = 10_000, 16 * 2**20  # of a piece
_AT_A_TIME = 500  # messages asked for
_GROWING, _ANEW, _MISSING = "growing", "anew", "missing"  # how a file is found
_STREAM, _CREATED = "stream", "created"  # keys of pieces: of messages, and when it was created


class Fetching(Protocol):
    """Where rows are kept until they are fetched."""

    def fetch(self, inbox: Inbox) -> str:
        """Put all that is new into an inbox; gives what is to be told of it, if anything."""
        ...


def fetching(url: str, credentials: str | None = None) -> Fetching:
    """Find out how rows are fetched from an address, without asking there."""
    parts = urllib.parse.urlsplit(url)
    if parts.scheme in ("http", "https") and parts.hostname:
        return WebFiles(url)
    stream = parts.path.strip("/")
    if parts.scheme in ("nats", "tls") and parts.hostname and stream and "/" not in stream:
        return StreamSource(url, stream, credentials)
    raise InvalidInputError(
        f"'{hidden(url)}' is no source; wants a folder, nats://HOST:PORT/STREAM or http://HOST/PATH"
    )


class FetchedSource:
    """A source and the inbox that it is fetched into."""

    def __init__(self, source: Fetching, inbox: Inbox) -> None:
        self._source, self._inbox = source, inbox
        self._fetched: list[str] = []

    def fetch(self) -> str:
        """Fetch all that is new; gives what is to be told of it, if anything."""
        told = self._source.fetch(self._inbox)
        self._fetched = self._inbox.pieces()
        return told

    def clear(self) -> None:
        """Remove what was there after the last fetch: it has been taken in."""
        self._inbox.clear(self._fetched)
        self._fetched = []


class StreamSource:
    """A JetStream stream whose messages are rows in JSON, one a line.

    The last token of a subject is the table: ``traces.hops``. Offsets are sequence numbers.
    """

    def __init__(self, url: str, name: str, credentials: str | None) -> None:
        self._url, self._name, self._credentials = url, name, credentials

    def fetch(self, inbox: Inbox) -> str:
        """Fetch all messages that are in the stream by now."""
        return asyncio.run(self._fetch(inbox))

    async def _fetch(self, inbox: Inbox) -> str:
        server = self._url.rpartition("/")[0]
        client = await connect(server, "tidings-watch", user_of(self._url), self._credentials)
        try:
            return await self._read(client.jetstream(timeout=_TIMEOUT_S), inbox)
        except EngineError:
            raise
        except Exception as problem:
            raise EngineError(
                f"the stream {self._name} at {hidden(server)} cannot be read: "
                f"{type(problem).__name__} {problem}"
            ) from None
        finally:
            await client.close()

    async def _read(self, jetstream: Any, inbox: Inbox) -> str:
        info = await jetstream.stream_info(self._name)
        state, told = info.state, []
        created_ns = round(info.created.timestamp() * 1e6) * 1000
        known_ns = inbox.reached(_CREATED)
        if inbox.reached(_STREAM) > state.last_seq + 1 or 0 < known_ns < created_ns:
            inbox.begin_anew(_STREAM)
            told.append(
                f"the stream {self._name} has begun anew and is read from its beginning; what was "
                "not read of the old one is lost"
            )
        if known_ns < created_ns:
            inbox.put(_CREATED, 0, created_ns, {})
        known = inbox.reached(_STREAM)
        begin, end = max(known, state.first_seq, 1), state.last_seq + 1
        if begin < end:
            await self._read_between(jetstream, inbox, begin, end)
        gone = state.first_seq - known
        if known and gone > 0:
            told.append(
                f"{gone} messages of the stream {self._name} were gone before they were read"
            )
        return "; ".join(told)

    async def _read_between(self, jetstream: Any, inbox: Inbox, begin: int, end: int) -> None:
        from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy

        config = ConsumerConfig(
            deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
            opt_start_seq=begin,
            ack_policy=AckPolicy.NONE,
            inactive_threshold=60.0,
            mem_storage=True,
        )
        consumer = await jetstream.pull_subscribe(">", stream=self._name, config=config)
        rows: dict[str, list[bytes]] = {}
        at, messages, size = begin, 0, 0
        while at < end:
            waiting = (await consumer.consumer_info()).num_pending
            if not waiting:
                at = end  # the rest was deleted
            for message in await consumer.fetch(_AT_A_TIME, timeout=_TIMEOUT_S) if waiting else ():
                if at >= end:
                    break
                _add(rows, message.subject, message.data)
                at = message.metadata.sequence.stream + 1
                messages, size = messages + 1, size + len(message.data)
            if at >= end or messages >= _MOST_MESSAGES or size >= _MOST_BYTES:
                inbox.put(_STREAM, begin, at, {name: b"".join(each) for name, each in rows.items()})
                rows, begin, messages, size = {}, at, 0, 0
        await consumer.unsubscribe()


def _add(rows: dict[str, list[bytes]], subject: str, data: bytes) -> None:
    table = subject.rpartition(".")[2]
    if table in TRACE_TABLES and data.strip():
        rows.setdefault(f"{table}.jsonl", []).append(data.rstrip(b"\n") + b"\n")


class WebFiles:
    """Files of rows in JSON, one a line, that grow on a web server: ``PATH/hops.jsonl`` and so on.

    Beside them may be their manifest, ``PATH/traces.json``. Only what is new is asked for, by
    ``Range``, and the byte before it. Offsets are bytes, of every
    table its own; a line that has not ended is left for the next time. Where that byte ends no line
    any more, or is not there, the file is another one, and read from its beginning.
    """

    def __init__(self, url: str) -> None:
        parts = urllib.parse.urlsplit(url)
        netloc = parts.netloc.rpartition("@")[2]
        self._base = f"{parts.scheme}://{netloc}{parts.path.rstrip('/')}"
        self._headers = {"User-Agent": "tidings"}
        if parts.username is not None:
            user = urllib.parse.unquote(parts.username)
            password = urllib.parse.unquote(parts.password or "")
            code = base64.b64encode(f"{user}:{password}".encode()).decode()
            self._headers["Authorization"] = f"Basic {code}"

    def fetch(self, inbox: Inbox) -> str:
        """Fetch what has been added to the files of all tables; one at least must be there."""
        manifest = self._read(MANIFEST, 0)  # first: it says how rows are to be counted
        if manifest:
            inbox.describe(manifest)
        found = {table: self._fetch_table(inbox, table) for table in TRACE_TABLES}
        anew = [f"{table}.jsonl" for table, of in found.items() if of == _ANEW]
        if anew:
            return (
                f"{', '.join(anew)} of {self._base} began anew and is read from its beginning; "
                "what was not read of the old one is lost"
            )
        if set(found.values()) == {_MISSING}:
            return f"{self._base} has none of the files of trace tables, as hops.jsonl"
        return ""

    def _fetch_table(self, inbox: Inbox, table: str) -> str:
        """Fetch what is new in a file; gives how it was found."""
        how = _GROWING
        while True:
            begin = inbox.reached(table)
            body = self._read(f"{table}.jsonl", max(begin - 1, 0))
            if body is None:
                return _MISSING
            if begin:
                if body[:1] != b"\n":
                    inbox.begin_anew(table)
                    how = _ANEW
                    continue
                body = body[1:]
            whole = body[: body.rfind(b"\n") + 1]
            if not whole:
                if len(body) >= _MOST_BYTES:
                    raise EngineError(f"{self._base}/{table}.jsonl has a line without an end")
                return how
            inbox.put(table, begin, begin + len(whole), {f"{table}.jsonl": whole})

    def _read(self, file: str, begin: int) -> bytes | None:
        """Read bytes of a file from an offset on, so many at most; None: there is no such file."""
        address = f"{self._base}/{file}"
        wanted = {"Range": f"bytes={begin}-{begin + _MOST_BYTES}"}
        request = urllib.request.Request(address, headers=self._headers | wanted)
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:
                skipped = 0 if answer.status == 206 else begin
                while skipped:  # a server that knows no ranges gives the whole file
                    skipped -= len(answer.read(min(skipped, _MOST_BYTES))) or skipped
                return bytes(answer.read(_MOST_BYTES + 1))
        except urllib.error.HTTPError as problem:
            if problem.code == 404:
                return None
            if problem.code == 416:  # nothing is there beyond the offset
                return b""
            raise EngineError(f"{address} answered {problem.code} {problem.reason}") from None
        except (OSError, ValueError) as problem:
            reason = getattr(problem, "reason", problem)
            raise EngineError(f"{address} cannot be read: {reason}") from None
