"""A file of spans, whatever its format, as export requests in OTLP JSON, one a line.

It may be one document, indented or not, or several, one after the other: exports of OTLP or Tempo,
of Jaeger or Zipkin; or protobuf: one export, or many, each after its length in four bytes, as the
collector's file exporter writes them. Which it is, its bytes tell, not its name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tidings.model.json_text import TOO_DEEP, parse_one
from tidings.traces.spans import jaeger, otlp_json, zipkin
from tidings.traces.spans.otlp_json import Json
from tidings.traces.spans.unpacking import TORN, ZSTD, TooLargeError, unpacked

MOST_BYTES = 128 << 20  # of one file, unpacked: it is held in memory while it is read
NO_DOCUMENT = "not a document of spans: OTLP (JSON or protobuf), Tempo, Jaeger or Zipkin"
NOT_A_SPAN = "a span without an id, in a document of spans"
TOO_LARGE = f"more than {MOST_BYTES >> 20} MiB unpacked, and not in lines of OTLP JSON"
NEEDS_PROTOBUF = "protobuf; to read it run: pip install 'tidings[otlp]'"
_MOST_SHOWN = 2000  # characters of what could not be read
_MOST_SPANS = 500  # in a line, so that none is too long to be handled
_BLANK = re.compile(r"[\s\ufeff]*")
_NEXT = re.compile(r"\n(?=[{\[])")  # where the next document may begin after one that is torn
_BRACKETS = b" \t\r\n\xef\xbb\xbf"


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """An export request in OTLP JSON; or what could not be read as one, and why not."""

    text: str
    reason: str | None = None


def pieces(data: bytes, most: int = MOST_BYTES) -> Iterator[Piece]:
    """Give all that is in a file of spans; nothing that is not blank is left out."""
    try:
        whole, complete = unpacked(data, most)
    except TooLargeError:
        yield Piece(text="", reason=TOO_LARGE)
        return
    if whole.strip(_BRACKETS)[:1] in (b"{", b"["):
        read = list(_texts(whole))
        # Two bytes of protobuf, a list of 91 or 123 bytes, may look like the begin of a text.
        if whole[:1] == b"\n" and all(each.reason for each in read):
            binary = list(_binary(whole))
            read = binary if not any(each.reason for each in binary) else read
        yield from read
    elif whole.strip(_BRACKETS):
        yield from _binary(whole)
    if not complete:
        yield Piece(text="", reason=TORN)


def requests_of(document: Any) -> Iterator[Piece]:
    """Give a document of whichever tool as export requests, with what of it is no span."""
    resources = otlp_json.resources_of(document)
    if resources is not None:
        given: Iterator[Json | None] = iter(resources)
    elif (traces := jaeger.traces_of(document)) is not None:
        given = (each for trace in traces for each in _of_trace(trace))
    elif (spans := zipkin.spans_of(document)) is not None:
        given = zipkin.resources_of(spans)
    elif isinstance(document, list) and document:
        for each in document:
            yield from requests_of(each) if isinstance(each, dict) else [_unread(each)]
        return
    else:
        yield _unread(document)
        return
    count = 0
    for resource in given:
        count += 1
        if resource is None:
            yield Piece(text="", reason=NOT_A_SPAN)
        else:
            yield from map(_line, _cut(resource))
    if not count:
        yield _unread(document)


def _of_trace(trace: Any) -> Iterator[Json | None]:
    if isinstance(trace, dict) and isinstance(trace.get("spans"), list):
        yield from jaeger.resources_of(trace)
    else:
        yield None


def _cut(resource: Json) -> Iterator[Json]:
    """Yield the resource; one with very many spans in parts."""
    spans = list(otlp_json.spans_of(resource))
    if len(spans) <= _MOST_SPANS:
        yield resource
        return
    kept = {name: each for name, each in resource.items() if name not in otlp_json.SCOPES}
    for begin in range(0, len(spans), _MOST_SPANS):
        yield {**kept, "scopeSpans": [{"spans": spans[begin : begin + _MOST_SPANS]}]}


def _line(resource: Json) -> Piece:
    return Piece(text=json.dumps({"resourceSpans": [resource]}, separators=(",", ":")))


def _unread(document: Any) -> Piece:
    return Piece(text=json.dumps(document)[:_MOST_SHOWN], reason=NO_DOCUMENT)


def _texts(data: bytes) -> Iterator[Piece]:
    """Yield documents in JSON, one after the other; after a torn one, from the next line on."""
    text = data.decode("utf-8", errors="replace")
    at = _BLANK.match(text).end()  # type: ignore[union-attr]
    while at < len(text):
        try:
            document, end = parse_one(text, at)
        except ValueError as problem:
            further = _NEXT.search(text, at)
            end = further.end() if further else len(text)
            yield Piece(
                text=text[at:end].strip()[:_MOST_SHOWN],
                reason=TOO_DEEP if str(problem) == TOO_DEEP else NO_DOCUMENT,
            )
        else:
            yield from requests_of(document)
        at = _BLANK.match(text, end).end()  # type: ignore[union-attr]


def _binary(data: bytes) -> Iterator[Piece]:
    """Yield exports in protobuf: one, or many that each have their length before them."""
    if data[:1] == b"\n":  # the first field of an export; as a length it would be 160 MiB
        yield from _export(data)
        return
    at = 0
    while at < len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        part = data[at + 4 : at + 4 + size]
        if len(part) < size or at + 4 > len(data):
            yield Piece(text=_shown(data[at:]), reason=NO_DOCUMENT)
            return
        yield from _part(part)
        at += 4 + size


def _part(part: bytes) -> Iterator[Piece]:
    """Yield what followed its length: an export in protobuf or JSON, perhaps compressed itself."""
    if part.startswith(ZSTD):
        try:
            part, complete = unpacked(part, MOST_BYTES)
        except TooLargeError:
            complete = False
        if not complete:
            yield Piece(text="", reason=NO_DOCUMENT)
            return
    yield from _texts(part) if part.startswith(b"{") else _export(part)


def _export(data: bytes) -> Iterator[Piece]:
    try:
        from tidings.traces.spans.protobuf import parse as parse_export
    except ImportError:
        yield Piece(text=_shown(data), reason=NEEDS_PROTOBUF)
        return
    try:
        document = parse_export(data)
    except ValueError:
        yield Piece(text=_shown(data), reason=NO_DOCUMENT)
        return
    yield from requests_of(document or {"resourceSpans": []})


def _shown(data: bytes) -> str:
    return data[: _MOST_SHOWN // 2].hex()
