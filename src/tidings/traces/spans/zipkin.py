"""Spans of Zipkin's second format: a list of spans, or of traces that are lists of spans."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tidings.traces.spans.otlp_json import (
    KINDS,
    SPAN_BYTES,
    TRACE_BYTES,
    Json,
    attribute,
    hex_id,
    nanoseconds,
    resource,
)


def spans_of(document: Any) -> list[Any] | None:
    """List the spans of a document, None where it is none of Zipkin's."""
    if isinstance(document, dict):
        return [document] if _is_span(document) else None
    if not isinstance(document, list):
        return None
    flat = [span for each in document for span in (each if isinstance(each, list) else [each])]
    return flat if any(_is_span(each) for each in flat) else None


def resources_of(spans: list[Any]) -> Iterator[Json | None]:
    """Give the spans by service; None for each that is no span."""
    by_service: dict[str, list[Json]] = {}
    for each in spans:
        if not _is_span(each):
            yield None
            continue
        end = each.get("localEndpoint")
        service = end.get("serviceName") if isinstance(end, dict) else None
        by_service.setdefault(str(service or ""), []).append(_span(each))
    for service, those in by_service.items():
        yield resource(service, those)


def _is_span(each: Any) -> bool:
    return (
        isinstance(each, dict)
        and isinstance(each.get("traceId"), str)
        and isinstance(each.get("id"), str)
        and "binaryAnnotations" not in each  # Zipkin's first format
    )


def _span(span: Json) -> Json:
    begin, duration = nanoseconds(span.get("timestamp")), nanoseconds(span.get("duration") or 0)
    tags = span.get("tags")
    return {
        "traceId": hex_id(span["traceId"], TRACE_BYTES),
        "spanId": hex_id(span["id"], SPAN_BYTES),
        "parentSpanId": hex_id(span.get("parentId"), SPAN_BYTES),
        "name": str(span.get("name", "")),
        "kind": KINDS.get(str(span.get("kind", "")).upper(), 0),
        "startTimeUnixNano": None if begin is None else str(begin),
        "endTimeUnixNano": None if begin is None or duration is None else str(begin + duration),
        "attributes": [
            attribute(key, value) for key, value in (tags.items() if isinstance(tags, dict) else ())
        ],
    }
