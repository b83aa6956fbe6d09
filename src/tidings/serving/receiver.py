"""A receiver of spans by OTLP over HTTP: ``POST /v1/traces``, in JSON or protobuf.

Spans that it accepts are lines of OTLP JSON in a folder, on the disk before the sender is answered.
What it cannot keep it says as the protocol wants it: spans that are no spans are a partial success,
bodies that are no exports an error that is not to be tried again, a full disk or too many senders
at once one that is.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from google.protobuf.json_format import MessageToJson
from google.protobuf.message import Message
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from tidings.model import json_text
from tidings.serving.appending import Appending
from tidings.serving.guard import Guard
from tidings.traces.span_folders import MARK
from tidings.traces.spans import otlp_json, protobuf
from tidings.traces.spans.unpacking import TooLargeError, gunzipped

PORT = 4318  # OTLP over HTTP
PATH = "/v1/traces"
MOST_BYTES = 20 << 20  # of a body, unpacked
READ_ON = 8  # times as much of a body that is too large, so that its sender sees the answer
AT_ONCE = 8  # bodies in memory
PATIENCE_S = 30.0  # for a body to come in, and for a place in memory
RETRY_S = 1
JSON, PROTOBUF = "application/json", "application/x-protobuf"
_INVALID, _EXHAUSTED, _UNAVAILABLE = 3, 8, 14  # of google.rpc.Code
REFUSED = "spans without a trace id of 16 bytes, a span id of 8 bytes and two times in nanoseconds"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiveSettings:
    """Where spans go, and who may send them."""

    folder: Path
    token: str = ""
    file_s: float = 60.0  # for which lines go to one file
    most_bytes: int = MOST_BYTES


class ReceivedCounts:
    """What came in so far."""

    def __init__(self) -> None:
        self.requests = self.spans = self.refused_spans = self.refused_requests = 0
        self._lock = threading.Lock()

    def add(self, *, spans: int = 0, refused_spans: int = 0, refused_requests: int = 0) -> None:
        """Count one more request."""
        with self._lock:
            self.requests += 1
            self.spans += spans
            self.refused_spans += refused_spans
            self.refused_requests += refused_requests


class _Refusal(Exception):  # noqa: N818 - an answer, not a fault
    """An answer that is no success."""

    def __init__(self, status: int, code: int, message: str) -> None:
        super().__init__(message)
        self.status, self.code = status, code


class SpanReceiver:
    """Takes exports of spans and appends them to a folder."""

    def __init__(self, settings: ReceiveSettings) -> None:
        self.settings = settings
        self.counts = ReceivedCounts()
        settings.folder.mkdir(parents=True, exist_ok=True)
        (settings.folder / MARK).touch()  # a watch may begin before the first span comes
        self.appending = Appending(settings.folder, most_s=settings.file_s)
        self._places = asyncio.Semaphore(AT_ONCE)

    def app(self) -> Guard:
        """Make the application that answers requests."""

        @contextlib.asynccontextmanager
        async def lifespan(_: Starlette) -> AsyncIterator[None]:
            looking = asyncio.create_task(self._look())
            yield
            looking.cancel()

        routes = [Route(PATH, self.receive, methods=["POST"])]
        app = Starlette(routes=routes, lifespan=lifespan)
        return Guard(app, token=self.settings.token, methods=("POST",))

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(min(1.0, self.settings.file_s))
            with contextlib.suppress(OSError):  # a full disk: senders are told, and it goes on
                await run_in_threadpool(self.appending.look)

    async def receive(self, request: Request) -> Response:
        """Answer one export."""
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        try:
            async with asyncio.timeout(PATIENCE_S) as patience, self._places:
                if "expect" in request.headers:  # nothing of its body has been sent yet
                    _check_headers(request, kind, self.settings.most_bytes)
                body = await self._body(request)
                packed = _check_headers(request, kind, self.settings.most_bytes)
                patience.reschedule(None)
                return await run_in_threadpool(self._take, body, kind, packed)
        except _Refusal as refusal:
            self.counts.add(refused_requests=1)
            return _refused(refusal, kind)
        except TimeoutError:
            self.counts.add(refused_requests=1)
            late = _Refusal(503, _UNAVAILABLE, "too many senders at once, or too slow a one")
            return _refused(late, kind)
        except ClientDisconnect:
            return Response(status_code=400)

    async def _body(self, request: Request) -> bytes:
        """Read a body; read on where it is too large, as who is hung up on sees no answer."""
        parts, size, most = [], 0, self.settings.most_bytes
        async for part in request.stream():
            size += len(part)
            if size <= most:
                parts.append(part)
            elif size > READ_ON * most:
                break
            else:
                parts.clear()
        if size > most:
            raise _too_large(most)
        return b"".join(parts)

    def _take(self, body: bytes, kind: str, packed: bool) -> Response:
        """Keep the spans of a body, and say which were not."""
        resources = _resources(body, kind, packed, self.settings.most_bytes)
        kept, spans, refused = otlp_json.usable(resources)
        if spans:
            line = json.dumps({"resourceSpans": kept}, separators=(",", ":"))
            try:
                self.appending.append(f"{line}\n".encode())
            except OSError as problem:
                why = f"the receiver cannot write: {problem.strerror or problem}"
                raise _Refusal(503, _UNAVAILABLE, why) from problem
        self.counts.add(spans=spans, refused_spans=refused)
        answer = ExportTraceServiceResponse()
        if refused:
            answer.partial_success.rejected_spans = refused
            answer.partial_success.error_message = f"{refused} {REFUSED}"
        return _answer(answer, kind, 200)


def _check_headers(request: Request, kind: str, most: int) -> bool:
    """Refuse a body that cannot be read; answers whether it is compressed."""
    if kind not in (JSON, PROTOBUF):
        raise _Refusal(
            415, _INVALID, f"got content of type '{kind[:80]}'; wants {JSON} or {PROTOBUF}"
        )
    packing = request.headers.get("content-encoding", "identity").strip().lower()
    if packing not in ("identity", "gzip", ""):
        raise _Refusal(415, _INVALID, f"got the encoding '{packing[:80]}'; wants gzip, or none")
    length = request.headers.get("content-length", "0")
    if length.isdecimal() and int(length[:20]) > most:
        raise _too_large(most)
    return packing == "gzip"


def _resources(body: bytes, kind: str, packed: bool, most: int) -> list[Any]:
    """Read the resources of an export that was sent; raises a refusal where it is none."""
    try:
        if packed:
            body, complete = gunzipped(body, most)
            if not complete:
                raise ValueError("its gzip is torn")
        if kind == PROTOBUF:
            document: Any = protobuf.parse(body)
        else:
            document = json_text.parse(body, parse_constant=json_text.refuse_constant)
    except TooLargeError:
        raise _too_large(most) from None
    except ValueError as problem:
        raise _Refusal(400, _INVALID, f"not an export of spans: {problem}"[:300]) from None
    if kind == PROTOBUF or document == {}:
        document.setdefault("resourceSpans", [])
    resources = otlp_json.resources_of(document)
    if resources is None or None in resources:
        raise _Refusal(400, _INVALID, "not an export of spans: wants a list 'resourceSpans'")
    return resources


def _too_large(most: int) -> _Refusal:
    return _Refusal(413, _EXHAUSTED, f"larger than {most} bytes; send smaller batches")


def _refused(refusal: _Refusal, kind: str) -> Response:
    answer = _answer(Status(code=refusal.code, message=str(refusal)), kind, refusal.status)
    if refusal.status == 413:
        answer.headers["Connection"] = "close"  # else the server reads on, however much there is
    if refusal.status == 503:
        answer.headers["Retry-After"] = str(RETRY_S)
    return answer


def _answer(message: Message, kind: str, status: int) -> Response:
    """Write the answer in the sender's own encoding."""
    if kind == PROTOBUF:
        return Response(message.SerializeToString(), status, media_type=PROTOBUF)
    return Response(MessageToJson(message, indent=None), status, media_type=JSON)
