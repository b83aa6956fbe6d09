"""The receiver as senders meet it: the real exporter, and those that send something else."""

from __future__ import annotations

import contextlib
import gzip
import http.client
import json
import os
import signal
import subprocess
import sys
import time

import pytest
from google.rpc.status_pb2 import Status
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExportResult
from opentelemetry.trace import SpanKind

import span_samples as samples
from tidings.cli.commands import run
from tidings.serving.listening import listen
from tidings.serving.receiver import JSON, PATH, PROTOBUF, ReceiveSettings, SpanReceiver

PATIENCE_S = 60.0
TOKEN = "a-token-of-its-own"


class Sender:
    """Sends to one receiver."""

    def __init__(self, receiver, served):
        self.receiver, self.served = receiver, served
        self.url = served.url.rstrip("/") + PATH

    def __call__(self, body, kind=JSON, path=PATH, method="POST", **headers):
        """The answer to a request, and its body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.served.port, timeout=PATIENCE_S)
        try:
            named = {name.replace("_", "-"): each for name, each in headers.items()}
            connection.request(method, path, body, {"Content-Type": kind, **named})
            answer = connection.getresponse()
            return answer, answer.read()
        finally:
            connection.close()

    def lines(self):
        """What the folder has, once the receiver has given its file a name."""
        self.receiver.appending.close()
        folder = self.receiver.settings.folder
        return [json.loads(line) for path in sorted(folder.glob("*")) for line in path.open()]


@pytest.fixture
def sender(tmp_path):
    """Starts receivers that end with the test."""
    with contextlib.ExitStack() as running:

        def start(**settings):
            receiver = SpanReceiver(ReceiveSettings(folder=tmp_path / "spans", **settings))
            token = settings.get("token", "")
            return Sender(
                receiver, running.enter_context(listen(receiver.app(), port=0, token=token))
            )

        yield start


def spans_in(lines):
    return [
        span["spanId"]
        for line in lines
        for resource in line["resourceSpans"]
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    ]


def tracer(service, *exporters):
    made = TracerProvider(resource=Resource({"service.name": service}), shutdown_on_exit=False)
    for each in exporters:
        made.add_span_processor(SimpleSpanProcessor(each))
    return made.get_tracer("test")


@pytest.mark.parametrize("compression", [Compression.Gzip, Compression.NoCompression])
def test_spans_of_the_real_exporter_are_kept(sender, compression):
    start = sender()
    exporter = OTLPSpanExporter(endpoint=start.url, compression=compression, timeout=30)
    with tracer("shop", exporter).start_as_current_span("send", kind=SpanKind.PRODUCER) as sent:
        sent.set_attribute("messaging.destination.name", "orders")
    exporter.shutdown()
    (line,) = start.lines()
    (span,) = line["resourceSpans"][0]["scopeSpans"][0]["spans"]
    context = sent.get_span_context()
    assert span["traceId"] == f"{context.trace_id:032x}"
    assert span["spanId"] == f"{context.span_id:016x}"
    assert (span["kind"], span["startTimeUnixNano"]) == (4, str(sent.start_time))
    assert span["attributes"] == [
        {"key": "messaging.destination.name", "value": {"stringValue": "orders"}}
    ]


def test_the_real_exporter_takes_no_for_an_answer(sender, caplog):
    start = sender(token=TOKEN)
    for headers, expected in (
        ({}, SpanExportResult.FAILURE),
        ({"authorization": f"Bearer {TOKEN}"}, SpanExportResult.SUCCESS),
    ):
        exporter = OTLPSpanExporter(endpoint=start.url, headers=headers, timeout=30)
        span = tracer("shop").start_span("send", kind=SpanKind.PRODUCER)
        span.end()
        assert exporter.export([span]) is expected
        exporter.shutdown()
    assert len(start.lines()) == 1


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("kind", [JSON, PROTOBUF, f"{JSON}; charset=utf-8"])
def test_an_export_is_a_line(sender, kind, packed):
    start = sender()
    plain = samples.protobuf("5afe") if kind == PROTOBUF else json.dumps(samples.otlp("5afe"))
    body = plain if isinstance(plain, bytes) else plain.encode()
    headers = {"Content_Encoding": "gzip"} if packed else {}
    answer, text = start(gzip.compress(body) if packed else body, kind, **headers)
    own_kind = kind.partition(";")[0]
    assert (answer.status, answer.getheader("content-type")) == (200, own_kind)
    assert text == (b"" if kind == PROTOBUF else b"{}")  # all went well
    (line,) = start.lines()
    assert spans_in([line]) == ["00000000000000a1", "00000000000000b2", "00000000000000c3"]
    assert line["resourceSpans"][1]["scopeSpans"][0]["spans"][0]["parentSpanId"] == (
        "00000000000000a1"
    )


def spoilt():
    """An export of which two spans are none."""
    document = samples.otlp("5afe")
    document["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["traceId"] = "0" * 32
    del document["resourceSpans"][1]["scopeSpans"][0]["spans"][0]["endTimeUnixNano"]
    return document


def test_spans_that_are_none_are_a_partial_success(sender):
    start = sender()
    answer, text = start(json.dumps(spoilt()))
    told = json.loads(text)["partialSuccess"]
    assert (answer.status, told["rejectedSpans"]) == (200, "2")
    assert told["errorMessage"].startswith("2 spans without a trace id")
    body = samples.as_protobuf(spoilt())
    answer, text = start(body, PROTOBUF)
    told = ExportTraceServiceResponse.FromString(text).partial_success
    assert (answer.status, told.rejected_spans) == (200, 2)
    assert spans_in(start.lines()) == ["00000000000000c3"] * 2
    counts = start.receiver.counts
    assert (counts.requests, counts.spans, counts.refused_spans) == (2, 2, 4)


@pytest.mark.parametrize("kind", [JSON, PROTOBUF])
def test_an_export_without_spans_is_no_line(sender, kind):
    start = sender()
    assert start(b"{}" if kind == JSON else b"", kind)[0].status == 200
    assert start.lines() == []


@pytest.mark.parametrize(
    ("body", "kind", "headers", "status"),
    [
        (b"not json", JSON, {}, 400),
        (b'{"resourceSpans": 5}', JSON, {}, 400),
        (b'{"resourceSpans": [5]}', JSON, {}, 400),
        (b'{"resourceSpans": [NaN]}', JSON, {}, 400),
        (b"[" * 100_000, JSON, {}, 400),
        (b"\xff\xfe\xfd", JSON, {}, 400),
        (b"\xff\xff\xff", PROTOBUF, {}, 400),
        (b"\x0a\xff\xff\xff\xff\x0f", PROTOBUF, {}, 400),
        (gzip.compress(b"{}", mtime=0)[:-9], JSON, {"Content_Encoding": "gzip"}, 400),
        (b"{}", JSON, {"Content_Encoding": "br"}, 415),
        (b"{}", "text/plain", {}, 415),
        (b" " * 200_000, JSON, {}, 413),
        (gzip.compress(b" " * 200_000, mtime=0), JSON, {"Content_Encoding": "gzip"}, 413),
    ],
)  # fmt: skip
def test_what_is_no_export_is_refused_for_good(sender, body, kind, headers, status):
    start = sender(most_bytes=150_000)
    answer, text = start(body, kind, **headers)
    assert answer.status == status
    assert answer.getheader("retry-after") is None
    if kind == PROTOBUF:
        assert Status.FromString(text).code == 3
    else:
        assert json.loads(text)["message"]
    assert start(json.dumps(samples.otlp("1")))[0].status == 200  # and it goes on
    assert len(start.lines()) == 1
    assert start.receiver.counts.refused_requests == 1


@pytest.mark.parametrize(
    ("kind", "headers", "status"),
    [(JSON, {}, 413), (PROTOBUF, {}, 413), (JSON, {"Content_Encoding": "br"}, 415),
     ("text/plain", {}, 415)],
)  # fmt: skip
def test_a_sender_of_much_sees_the_answer(sender, kind, headers, status):
    most = 20 << 20
    start = sender(most_bytes=most)
    size = most + (1 << 20) if status == 413 else most
    assert start(b" " * size, kind, Connection="close", **headers)[0].status == status
    assert start(json.dumps(samples.otlp("1")))[0].status == 200


def test_who_asks_before_sending_is_refused_at_once(sender):
    start = sender(most_bytes=1000)
    connection = http.client.HTTPConnection("127.0.0.1", start.served.port, timeout=PATIENCE_S)
    connection.putrequest("POST", PATH)
    for name, value in {
        "Content-Type": JSON,
        "Content-Length": 2000,
        "Expect": "100-continue",
    }.items():
        connection.putheader(name, str(value))
    connection.endheaders()
    assert connection.getresponse().status == 413
    connection.close()


def test_a_body_of_unknown_length_is_cut_off(sender, monkeypatch):
    monkeypatch.setattr("tidings.serving.receiver.READ_ON", 2)
    start = sender(most_bytes=150_000)
    assert start((b" " * 50_000 for _ in range(5)), JSON)[0].status == 413
    sent = []

    def endless():
        while True:
            sent.append(1)
            yield b" " * 50_000

    with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # hung up on while sending
        start(endless(), JSON)
    assert len(sent) < 2000
    assert start.receiver.counts.refused_requests == 2


def test_a_full_disk_is_to_be_tried_again(sender, monkeypatch):
    start = sender()

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(start.receiver.appending, "append", full)
    answer, text = start(json.dumps(samples.otlp("1")))
    assert (answer.status, answer.getheader("retry-after")) == (503, "1")
    assert "No space left" in json.loads(text)["message"]


def test_a_sender_too_slow_is_not_waited_for(sender, monkeypatch):
    monkeypatch.setattr("tidings.serving.receiver.PATIENCE_S", 0.2)
    start = sender()
    connection = http.client.HTTPConnection("127.0.0.1", start.served.port, timeout=PATIENCE_S)
    connection.putrequest("POST", PATH)
    connection.putheader("Content-Type", JSON)
    connection.putheader("Content-Length", "1000")
    connection.endheaders(b"{")
    assert connection.getresponse().status == 503
    connection.close()


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        ({"method": "GET"}, 405),
        ({"method": "OPTIONS"}, 405),  # what a page elsewhere would have to ask first
        ({"path": "/v1/metrics"}, 404),
        ({"Host": "evil.example"}, 403),
    ],
)
def test_others_are_turned_away(sender, asked, status):
    assert sender()(b"{}", **asked)[0].status == status


def test_with_a_token_nothing_is_taken_without_it(sender):
    start = sender(token=TOKEN)
    assert start(b"{}")[0].status == 401
    assert start(b"{}", path=f"{PATH}?token={TOKEN}")[0].status == 401
    assert start(b"{}", Authorization=f"Bearer {TOKEN}")[0].status == 200


def test_a_file_is_given_its_name_while_the_receiver_runs(sender):
    start = sender(file_s=0.05)
    start(json.dumps(samples.otlp("1")))
    folder, end = start.receiver.settings.folder, time.monotonic() + PATIENCE_S
    while not list(folder.glob("*.jsonl")):
        assert time.monotonic() < end
        time.sleep(0.05)


# ---- the command ---------------------------------------------------------------------------


def test_a_place_that_is_no_folder_is_wrong_input(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert run(["receive", str(tmp_path / "file")]) == 2
    assert "not a folder" in capsys.readouterr().err


@pytest.mark.slow
def test_a_receiver_that_is_killed_loses_nothing_that_it_acknowledged(tmp_path):
    folder = tmp_path / "spans"

    def started():
        process = subprocess.Popen(
            [sys.executable, "-c", "from tidings.cli.main import main; main()", "receive",
             str(folder), "--port", "0", "--json"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONUNBUFFERED": ""},
        )  # fmt: skip
        text = ""
        while not text.endswith("}\n"):
            line = process.stdout.readline()
            assert line, process.stderr.read()
            text += line
        return process, json.loads(text)

    def post(url, trace):
        port = int(url.rpartition(":")[2].partition("/")[0])
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
        connection.request("POST", PATH, json.dumps(samples.otlp(trace)), {"Content-Type": JSON})
        assert connection.getresponse().status == 200
        connection.close()

    for turn, (name, code) in enumerate([("SIGKILL", -9), ("SIGTERM", 130)]):
        process, told = started()
        try:
            assert told["recovered"] == turn
            post(told["url"], f"{turn + 1}")
            process.send_signal(getattr(signal, name))
            assert process.wait(PATIENCE_S) == code
            said = process.stderr.read()
        finally:
            process.kill()
            process.communicate()
    assert said.startswith("files of a receiver that was killed, now complete: 1\n")
    assert "received 3 spans in 1 request\nnext: tidings import otlp" in said
    texts = [path.read_text() for path in sorted(folder.glob("*.jsonl"))]
    assert [json.loads(text)["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["traceId"][-1]
            for text in texts] == ["1", "2"]  # fmt: skip
