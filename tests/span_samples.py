"""The same few messages as different tools export their spans, made up."""

from __future__ import annotations

import base64
import copy

from google.protobuf.json_format import ParseDict
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

BEGIN_US = 1_700_000_000_000_000
# A producer, a broker's span below it, and a consumer below that; 3 ms from one to the other.
SPANS = [
    {"id": "a1", "parent": "", "service": "shop", "kind": "producer", "at_us": 0, "name": "send",
     "tags": {"messaging.destination.name": "orders", "messaging.system": "kafka"}},
    {"id": "b2", "parent": "a1", "service": "broker", "kind": "server", "at_us": 1000,
     "name": "append", "tags": {}},
    {"id": "c3", "parent": "b2", "service": "billing", "kind": "consumer", "at_us": 3000,
     "name": "process", "tags": {"messaging.destination.name": "orders",
                                 "messaging.message.body.size": 120}},
]  # fmt: skip
KINDS = {"internal": 1, "server": 2, "client": 3, "producer": 4, "consumer": 5}


def otlp(trace: str) -> dict:
    """The messages as one export of OTLP, in the trace of this id."""
    resources = []
    for span in SPANS:
        begin_ns = (BEGIN_US + span["at_us"]) * 1000
        attributes = [
            {"key": key, "value": {"intValue" if isinstance(value, int) else "stringValue":
                                   str(value)}}
            for key, value in span["tags"].items()
        ]  # fmt: skip
        own = {
            "traceId": trace.zfill(32),
            "spanId": span["id"].zfill(16),
            "name": span["name"],
            "kind": KINDS[span["kind"]],
            "startTimeUnixNano": str(begin_ns),
            "endTimeUnixNano": str(begin_ns + 500_000),
            "attributes": attributes,
        }
        if span["parent"]:
            own["parentSpanId"] = span["parent"].zfill(16)
        named = [{"key": "service.name", "value": {"stringValue": span["service"]}}]
        resources.append({"resource": {"attributes": named}, "scopeSpans": [{"spans": [own]}]})
    return {"resourceSpans": resources}


def with_base64_ids(document: dict) -> dict:
    """An export whose ids are in base64, as Tempo writes them."""
    changed = copy.deepcopy(document)
    for resource in changed["resourceSpans"]:
        for span in resource["scopeSpans"][0]["spans"]:
            for key in ("traceId", "spanId", "parentSpanId"):
                if key in span:
                    span[key] = base64.b64encode(bytes.fromhex(span[key])).decode()
    return changed


def tempo(trace: str) -> dict:
    """The messages as Tempo's API gives them."""
    return {"batches": with_base64_ids(otlp(trace))["resourceSpans"]}


def protobuf(trace: str) -> bytes:
    """The messages as an export in protobuf."""
    return as_protobuf(otlp(trace))


def as_protobuf(document: dict) -> bytes:
    """An export of OTLP JSON in protobuf."""
    return ParseDict(with_base64_ids(document), TracesData()).SerializeToString()


def prefixed(*exports: bytes) -> bytes:
    """Exports after their lengths, as the collector's file exporter writes them."""
    return b"".join(len(each).to_bytes(4, "big") + each for each in exports)


def jaeger(trace: str) -> dict:
    """The messages as Jaeger's page saves them: ids without leading zeros, times in µs."""
    spans, processes = [], {}
    for number, span in enumerate(SPANS, 1):
        processes[f"p{number}"] = {"serviceName": span["service"], "tags": []}
        tags = [
            {"key": key, "type": "int64" if isinstance(value, int) else "string", "value": value}
            for key, value in {**span["tags"], "span.kind": span["kind"]}.items()
        ]
        parent = {"refType": "CHILD_OF", "traceID": trace, "spanID": span["parent"]}
        spans.append(
            {
                "traceID": trace,
                "spanID": span["id"],
                "operationName": span["name"],
                "references": [parent] if span["parent"] else [],
                "startTime": BEGIN_US + span["at_us"],
                "duration": 500,
                "tags": tags,
                "logs": [],
                "processID": f"p{number}",
                "warnings": None,
            }
        )
    one = {"traceID": trace, "spans": spans, "processes": processes, "warnings": None}
    return {"data": [one], "total": 0, "limit": 0, "offset": 0, "errors": None}


def zipkin(trace: str) -> list:
    """The messages as Zipkin's API gives them: a list of spans, tags are texts."""
    return [
        {
            "traceId": trace.zfill(16),
            "id": span["id"].zfill(16),
            **({"parentId": span["parent"].zfill(16)} if span["parent"] else {}),
            "kind": span["kind"].upper(),
            "name": span["name"],
            "timestamp": BEGIN_US + span["at_us"],
            "duration": 500,
            "localEndpoint": {"serviceName": span["service"], "ipv4": "10.0.0.1"},
            "tags": {key: str(value) for key, value in span["tags"].items()},
        }
        for span in SPANS
    ]
