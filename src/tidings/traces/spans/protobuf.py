"""OTLP in protobuf, as exporters send it and the collector's file exporter may write it."""

from __future__ import annotations

from google.protobuf.json_format import MessageToDict
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tidings.traces.spans.otlp_json import Json


def parse(data: bytes) -> Json:
    """Read an export of spans; raises ValueError where the bytes are none.

    An export request, ``TracesData`` and a trace from Tempo have the same bytes. What is nested too
    deeply, in values of attributes, is no export either.
    """
    try:
        request = ExportTraceServiceRequest.FromString(data)
        document: Json = MessageToDict(request, use_integers_for_enums=True)
    except (DecodeError, RecursionError, ValueError) as problem:
        raise ValueError(f"not an export of spans in protobuf: {problem}") from problem
    return document
