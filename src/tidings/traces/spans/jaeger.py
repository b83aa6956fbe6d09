"""Traces as Jaeger's page and its API export them: ``{"data": [{"spans", "processes"}]}``."""

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


def traces_of(document: Any) -> list[Any] | None:
    """List the traces of a document, None where it is none of Jaeger's."""
    if isinstance(document, dict):
        if isinstance(document.get("spans"), list):
            return [document]
        return traces_of(document["data"]) if isinstance(document.get("data"), list) else None
    if isinstance(document, list) and document:
        jaegers = all(
            isinstance(each, dict) and isinstance(each.get("spans"), list) for each in document
        )
        return document if jaegers else None
    return None


def resources_of(trace: Json) -> Iterator[Json | None]:
    """Give the spans of a trace, by process; None for each that is no span."""
    processes = trace.get("processes")
    services = processes if isinstance(processes, dict) else {}
    spans: dict[Any, list[Json]] = {}
    for each in trace["spans"]:
        if not isinstance(each, dict) or not isinstance(each.get("spanID"), str):
            yield None
            continue
        own = each.get("process") or services.get(str(each.get("processID")))
        service = own.get("serviceName") if isinstance(own, dict) else None
        spans.setdefault(str(service or ""), []).append(_span(each, trace))
    for service, those in spans.items():
        yield resource(service, those)


def _span(span: Json, trace: Json) -> Json:
    trace_id = hex_id(span.get("traceID") or trace.get("traceID"), TRACE_BYTES)
    tags = [tag for tag in _list(span, "tags") if isinstance(tag.get("key"), str)]
    begin = nanoseconds(span.get("startTime"))
    duration = nanoseconds(span.get("duration") or 0)
    kind = next((str(tag.get("value")) for tag in tags if tag["key"] == "span.kind"), "")
    parent, links = _references(span, trace_id)
    return {
        "traceId": trace_id,
        "spanId": hex_id(span["spanID"], SPAN_BYTES),
        "parentSpanId": parent,
        "name": str(span.get("operationName", "")),
        "kind": KINDS.get(kind.upper(), 0),
        "startTimeUnixNano": None if begin is None else str(begin),
        "endTimeUnixNano": None if begin is None or duration is None else str(begin + duration),
        "attributes": [attribute(tag["key"], tag.get("value")) for tag in tags],
        "links": links,
    }


def _references(span: Json, trace_id: str) -> tuple[str, list[Json]]:
    """Find the parent, which is the first that a span is a child of, and all others as links."""
    parent, links = hex_id(span.get("parentSpanID"), SPAN_BYTES), []
    for each in _list(span, "references"):
        other = hex_id(each.get("traceID") or trace_id, TRACE_BYTES)
        named = hex_id(each.get("spanID"), SPAN_BYTES)
        if each.get("refType") == "CHILD_OF" and not parent and other == trace_id:
            parent = named
        elif named != parent:
            links.append({"traceId": other, "spanId": named})
    return parent, links


def _list(part: Json, name: str) -> list[Json]:
    inside = part.get(name)
    return [each for each in inside if isinstance(each, dict)] if isinstance(inside, list) else []
