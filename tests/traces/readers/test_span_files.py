"""Spans of all formats through Spark: one mapping for all, every piece with its origin."""

from __future__ import annotations

import gzip
import json

import pandas as pd
import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.trace import Link, SpanKind

import span_samples as samples
from tidings.errors import InvalidTracesError
from tidings.serving.listening import listen
from tidings.serving.receiver import PATH, ReceiveSettings, SpanReceiver
from tidings.traces.actions import bring_here
from tidings.traces.quarantine import REASON, UNREADABLE
from tidings.traces.readers import lines, otlp, span_files
from tidings.traces.readers.otlp import read_otlp
from tidings.traces.spans import documents


def of_several_versions(trace):
    """An export with scopes under both their names, one of them without spans."""
    document = samples.otlp(trace)
    first, second, third = document["resourceSpans"]
    first["scopeSpans"].append({"scope": {"name": "idle"}})
    second["instrumentationLibrarySpans"] = second.pop("scopeSpans")
    second["scopeSpans"] = []
    third["instrumentationLibrarySpans"] = []
    return document


MADE = {
    "mixed.jsonl": lambda trace: json.dumps(of_several_versions(trace)).encode(),
    "lines.jsonl": lambda trace: json.dumps(samples.otlp(trace)).encode() + b"\n",
    "lines.json.gz": lambda trace: gzip.compress(json.dumps(samples.otlp(trace)).encode()),
    "indented.json": lambda trace: json.dumps(samples.otlp(trace), indent=2).encode(),
    "packed.json.gz": lambda trace: gzip.compress(
        json.dumps(samples.otlp(trace), indent=2).encode()
    ),
    "tempo.json": lambda trace: json.dumps(samples.tempo(trace)).encode(),
    "spans.binpb": samples.protobuf,
    "prefixed": lambda trace: samples.prefixed(samples.protobuf(trace)),
    "jaeger.json": lambda trace: json.dumps(samples.jaeger(trace)).encode(),
    "zipkin.json": lambda trace: json.dumps(samples.zipkin(trace)).encode(),
}
BAD = {
    "torn.json": json.dumps(samples.otlp("f1"), indent=2).encode()[:900],
    "torn.pb": samples.protobuf("f2")[:-5],
    "wrong.json.gz": b"not gzip at all",
    "zeros.jsonl": MADE["lines.jsonl"]("f3") + b"\0" * 64 + b"\n",
    "empty.json": b"",
    "torn.jsonl.gz": gzip.compress(
        b"".join(MADE["lines.jsonl"](f"{7**40 + n**9:x}") for n in range(200))
    )[:-300],
}


def receive_from_the_real_exporter(folder):
    """Have OpenTelemetry's own exporter send a message and its delivery; gives the event's id."""

    def tracer(service):
        made = TracerProvider(resource=Resource({"service.name": service}), shutdown_on_exit=False)
        made.add_span_processor(SimpleSpanProcessor(exporter))
        return made.get_tracer("tests")

    receiver = SpanReceiver(ReceiveSettings(folder=folder))
    messaging = {"messaging.system": "kafka", "messaging.destination.name": "bills"}
    with listen(receiver.app(), port=0, token="") as served:
        exporter = OTLPSpanExporter(endpoint=served.url.rstrip("/") + PATH, timeout=30)
        sent = tracer("till").start_span("send", kind=SpanKind.PRODUCER, attributes=messaging)
        sent.end()
        tracer("audit").start_span(
            "process", kind=SpanKind.CONSUMER, attributes=messaging,
            links=[Link(sent.get_span_context())],
        ).end()  # fmt: skip
        exporter.shutdown()
    receiver.appending.close()
    context = sent.get_span_context()
    return f"{context.trace_id:032x}:{context.span_id:016x}"


@pytest.fixture(scope="module")
def received(tmp_path_factory):
    """A folder of received spans, and the event in it."""
    folder = tmp_path_factory.mktemp("received")
    return folder, receive_from_the_real_exporter(folder)


@pytest.fixture(scope="module")
def reading(spark, few_rows, received, tmp_path_factory):
    """What a folder gives that has a file of each format, a trace each, and bad ones."""
    place = tmp_path_factory.mktemp("spans")
    (place / "below").mkdir()
    for number, (name, make) in enumerate(MADE.items(), 1):
        (place / "below" / name).write_bytes(make(f"{number}"))
    for name, data in BAD.items():
        (place / name).write_bytes(data)
    files = lines.expand([str(place), str(received[0])])
    return read_otlp(spark, files, lambda frame, _: frame.localCheckpoint())


def test_one_mapping_does_for_all_formats(reading):
    others = f"publisher = 'shop' and {lines.FILE} not like '%torn.jsonl.gz'"
    rows = bring_here(reading.tables["publications"].where(others), "them")
    published = rows.set_index("event").sort_index()
    traces = [f"{n}".zfill(32) for n in (*range(1, len(MADE) + 1), "f3")]
    assert list(published.index) == [f"{trace}:00000000000000a1" for trace in sorted(traces)]
    assert set(published["content"]) == {'{"topic":"orders"}'}
    assert set(published["published_ns"]) == {samples.BEGIN_US * 1000}
    got = bring_here(
        reading.tables["deliveries"].where(
            others.replace("publisher = 'shop'", "subscriber = 'billing'")
        ),
        "them",
    )
    assert sorted(got["event"]) == list(published.index)  # through the broker's span
    assert set(got["received_ns"] - samples.BEGIN_US * 1000) == {3_000_000}


def test_what_the_real_exporter_sent_to_the_receiver_is_joined_by_its_link(reading, received):
    _, event = received
    (got,) = reading.tables["deliveries"].where("subscriber = 'audit'").collect()
    assert (got.event, got[UNREADABLE]) == (event, None)


def test_every_piece_is_accounted_for(reading):
    """Also of exports of several versions at once: scopes of two names, and without spans."""
    records = bring_here(reading.records.groupBy(REASON).count(), "them")
    whole = len(MADE) + 1
    before_the_tear = documents.pieces(BAD["torn.jsonl.gz"])
    before_the_tear = sum(each.reason is None for each in before_the_tear) // 3
    assert 0 < before_the_tear < 200
    assert dict(zip(records[REASON].map(str), records["count"], strict=True)) == {
        "None": 2 * whole + 2 + 2 * before_the_tear,
        otlp.NOT_MESSAGING: whole + before_the_tear,
        documents.NO_DOCUMENT: 2,
        lines.NOT_UTF8: 1,
        lines.TORN: 2,
    }


def test_what_is_set_aside_can_be_found_again(reading):
    bad = reading.records.where(f"{REASON} is not null and {REASON} != '{otlp.NOT_MESSAGING}'")
    kept = bring_here(lines.found_again(bad, reading.in_lines), "them")
    places = {
        file.rpartition("/")[2]: line for file, line in zip(kept["file"], kept["line"], strict=True)
    }
    unknown = {name: places.pop(name) for name in ("torn.jsonl.gz", "wrong.json.gz")}
    assert all(pd.isna(line) for line in unknown.values())
    assert places == {"torn.json": 1, "torn.pb": 1, "zeros.jsonl": 2}


@pytest.mark.parametrize(
    ("name", "begin", "expected"),
    [
        ("a.jsonl", b'{"resourceSpans":[]}\n', True),
        ("a.json", b'{"resourceSpans":[{"resource"' + b"x" * 100_000, True),  # one very long line
        ("a.json", b"{\n", False),
        ("a.json", b'{ "resourceSpans": [\n  {', False),
        ("a.json", b'[{"traceId":"1","id":"2"}]', False),
        ("a.json", b'{"data":[', False),
        ("a.pb", b'{"resourceSpans":[]}\n', False),
        ("a", b"\x00\x00\x01\x00rest", False),
        ("a", b"\n\x7f\xff\xfe\xfd", False),
        ("a.log", b"nothing known\n", True),  # its lines are told of one by one
        ("a.json", b"", True),
        ("a.jsonl", b"\0" * 64 + b"\n", True),
    ],
)
def test_whether_a_file_is_in_lines_is_told_by_its_begin(tmp_path, name, begin, expected):
    (tmp_path / name).write_bytes(begin)
    assert span_files.is_in_lines(None, str(tmp_path / name)) is expected


def test_a_file_too_large_to_be_read_whole_is_refused_by_name(spark, tmp_path):
    with (tmp_path / "large.json").open("wb") as stream:
        stream.write(b"{\n")
        stream.truncate(documents.MOST_BYTES + 1)
    with pytest.raises(InvalidTracesError, match=r"large.json has 128 MiB; .* lines of OTLP JSON"):
        read_otlp(spark, [str(tmp_path / "large.json")])
