"""One form of spans for all: OTLP JSON, whose ids are lower-case hexadecimal.

>>> hex_id("AAAAAAAAEjQ=", SPAN_BYTES), hex_id("1234", SPAN_BYTES)
('0000000000001234', '0000000000001234')
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

Json = dict[str, Any]
TRACE_BYTES, SPAN_BYTES = 16, 8
KINDS = {"INTERNAL": 1, "SERVER": 2, "CLIENT": 3, "PRODUCER": 4, "CONSUMER": 5}
# What the list of resources is called: by OTLP, and by Tempo's first API.
RESOURCES = ("resourceSpans", "batches")
SCOPES = ("scopeSpans", "instrumentationLibrarySpans")  # today's name first
_HEX = re.compile(r"[0-9a-f]*")


def resources_of(document: Any) -> list[Json | None] | None:
    """List the resources of an export, ids in hexadecimal; None where it is no export of spans.

    Tempo calls the list ``batches``, or wraps the export in ``trace``. An element that is no
    resource is None.
    """
    if not isinstance(document, dict):
        return None
    if isinstance(document.get("trace"), dict):
        return resources_of(document["trace"])
    for name in RESOURCES:
        if isinstance(document.get(name), list):
            return [
                _with_hex_ids(each) if isinstance(each, dict) else None for each in document[name]
            ]
    return None


def spans_of(resource: Mapping[str, Any]) -> Iterator[Any]:
    """Give all spans of a resource."""
    for scope in _lists(resource, *SCOPES):
        yield from _lists(scope, "spans")


def usable(resources: Iterable[Json]) -> tuple[list[Json], int, int]:
    """Leave out spans that nothing can be made of: the rest, how many these are, and how many not.

    A span has to have an id, that of its trace, and two times. A resource without spans goes.
    """
    kept, spans, refused = [], 0, 0
    for resource in resources:
        every = list(spans_of(resource))
        good = [span for span in every if _is_usable(span)]
        spans += len(good)
        refused += len(every) - len(good)
        if len(good) == len(every) and good:
            kept.append(resource)
        elif good:
            rest = {name: each for name, each in resource.items() if name not in SCOPES}
            kept.append({**rest, "scopeSpans": [{"spans": good}]})
    return kept, spans, refused


def _is_usable(span: Any) -> bool:
    if not isinstance(span, dict):
        return False
    times = [str(span.get(name)) for name in ("startTimeUnixNano", "endTimeUnixNano")]
    return (
        is_id(str(span.get("traceId")), TRACE_BYTES)
        and is_id(str(span.get("spanId")), SPAN_BYTES)
        and all(time.isdecimal() and len(time) < 20 for time in times)
    )


def hex_id(given: Any, size: int) -> str:
    """Write an id of so many bytes in hexadecimal; what it cannot be stays as it is.

    Ids come in hexadecimal, with leading zeros or without, and from Tempo in base64.
    """
    text = given if isinstance(given, str) else ""
    if len(text) == 4 * -(-size // 3) and text.endswith("="):
        try:
            return base64.b64decode(text, validate=True).hex()
        except ValueError:
            return text
    low = text.lower()
    return low.zfill(2 * size) if low and _HEX.fullmatch(low) else low


def is_id(text: str, size: int) -> bool:
    """Tell whether this is an id of so many bytes, not all of them zero."""
    return len(text) == 2 * size and _HEX.fullmatch(text) is not None and text.strip("0") != ""


def resource(service: Any, spans: list[Json]) -> Json:
    """Make the resource of a service with its spans."""
    named = [attribute("service.name", service)] if isinstance(service, str) and service else []
    return {"resource": {"attributes": named}, "scopeSpans": [{"spans": spans}]}


def attribute(key: str, value: Any) -> Json:
    """Make an attribute; what is no text, number or flag is written as text."""
    if isinstance(value, bool):
        return {"key": key, "value": {"boolValue": value}}
    if isinstance(value, int):
        return {"key": key, "value": {"intValue": str(value)}}
    if isinstance(value, float):
        return {"key": key, "value": {"doubleValue": value}}
    return {"key": key, "value": {"stringValue": str(value)}}


def nanoseconds(microseconds: Any) -> int | None:
    """Turn a time in microseconds, as Jaeger and Zipkin have it, into whole nanoseconds."""
    if isinstance(microseconds, bool) or not isinstance(microseconds, int | float):
        return None
    try:
        return round(microseconds * 1000)
    except (OverflowError, ValueError):  # infinite, or not a number
        return None


def _with_hex_ids(resource: Json) -> Json:
    """Write the ids of a resource's spans in hexadecimal; inputs are not changed."""
    scopes = {
        name: [_scope(scope) for scope in _lists(resource, name)]
        for name in SCOPES
        if isinstance(resource.get(name), list)
    }
    return {**resource, **scopes}


def _scope(scope: Any) -> Any:
    if not isinstance(scope, dict) or not isinstance(scope.get("spans"), list):
        return scope
    return {**scope, "spans": [_span(span) for span in scope["spans"]]}


def _span(span: Any) -> Any:
    if not isinstance(span, dict):
        return span
    links = [_ids(link) if isinstance(link, dict) else link for link in _lists(span, "links")]
    return {**_ids(span), "links": links} if links else _ids(span)


def _ids(part: Json) -> Json:
    sizes = {"traceId": TRACE_BYTES, "spanId": SPAN_BYTES, "parentSpanId": SPAN_BYTES}
    return {**part, **{key: hex_id(part[key], size) for key, size in sizes.items() if key in part}}


def _lists(part: Any, *names: str) -> Iterator[Any]:
    """Give the elements of all lists of these names, of whatever kind they are."""
    for name in names:
        inside = part.get(name) if isinstance(part, Mapping) else None
        if isinstance(inside, list):
            yield from inside
