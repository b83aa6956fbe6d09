"""Files of spans taken apart: every format gives the same export, and nothing is lost silently."""

from __future__ import annotations

import gzip
import json

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import span_samples as samples
from tidings.model.json_text import TOO_DEEP
from tidings.traces.spans import documents
from tidings.traces.spans.documents import pieces

TRACE = "5afe"


def exported(data):
    """The spans of a file by id, with their service; and why others could not be read."""
    spans, reasons = {}, []
    for piece in pieces(data):
        if piece.reason is not None:
            reasons.append(piece.reason)
            continue
        assert "\n" not in piece.text
        for resource in json.loads(piece.text)["resourceSpans"]:
            named = {a["key"]: a["value"] for a in resource["resource"]["attributes"]}
            for span in documents.otlp_json.spans_of(resource):
                spans[span["traceId"], span["spanId"]] = {
                    "service": named["service.name"]["stringValue"],
                    "parent": span.get("parentSpanId", ""),
                    "kind": span["kind"],
                    "begin": span["startTimeUnixNano"],
                    "end": span["endTimeUnixNano"],
                    "tags": {
                        each["key"]: str(next(iter(each["value"].values())))
                        for each in span.get("attributes", [])
                        if each["key"] != "span.kind"
                    },
                }
    return spans, reasons


PLAIN = json.dumps(samples.otlp(TRACE)).encode()
FORMS = {
    "one line": PLAIN + b"\n",
    "indented": json.dumps(samples.otlp(TRACE), indent=2).encode(),
    "marked as UTF-8": b"\xef\xbb\xbf" + PLAIN,
    "a list": json.dumps([samples.otlp(TRACE)]).encode(),
    "tempo": json.dumps(samples.tempo(TRACE), indent=1).encode(),
    "tempo v2": json.dumps({"trace": samples.with_base64_ids(samples.otlp(TRACE))}).encode(),
    "protobuf": samples.protobuf(TRACE),
    "prefixed": samples.prefixed(samples.protobuf(TRACE)),
    "prefixed zstd": samples.prefixed(pa.compress(samples.protobuf(TRACE), "zstd", asbytes=True)),
    "prefixed json": samples.prefixed(PLAIN),
    "jaeger": json.dumps(samples.jaeger(TRACE)).encode(),
    "jaeger traces": json.dumps(samples.jaeger(TRACE)["data"], indent=4).encode(),
    "zipkin": json.dumps(samples.zipkin(TRACE)).encode(),
    "zipkin traces": json.dumps([samples.zipkin(TRACE)], indent=2).encode(),
    "zipkin lines": "\n".join(map(json.dumps, samples.zipkin(TRACE))).encode(),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_format_gives_the_same_spans(form):
    assert exported(FORMS[form]) == exported(FORMS["one line"])
    spans, reasons = exported(gzip.compress(FORMS[form]))
    assert (sorted(span for _, span in spans), reasons) == (
        ["00000000000000a1", "00000000000000b2", "00000000000000c3"],
        [],
    )
    first = spans[TRACE.zfill(32), "00000000000000a1"]
    assert first["begin"] == str(samples.BEGIN_US * 1000)
    assert spans[TRACE.zfill(32), "00000000000000c3"]["tags"]["messaging.message.body.size"] == (
        "120"
    )


def test_references_of_jaeger_are_a_parent_and_links():
    trace = samples.jaeger(TRACE)
    trace["data"][0]["spans"][2]["references"] = [
        {"refType": "FOLLOWS_FROM", "traceID": "beef", "spanID": "1"},
        {"refType": "CHILD_OF", "traceID": "beef", "spanID": "3"},
        {"refType": "CHILD_OF", "traceID": TRACE, "spanID": "b2"},
        {"refType": "CHILD_OF", "traceID": TRACE, "spanID": "2"},
    ]
    (text,) = [each.text for each in pieces(json.dumps(trace).encode()) if "billing" in each.text]
    (span,) = documents.otlp_json.spans_of(json.loads(text)["resourceSpans"][0])
    assert span["parentSpanId"] == "00000000000000b2"
    assert [(each["traceId"][-4:], each["spanId"][-1]) for each in span["links"]] == [
        ("beef", "1"),
        ("beef", "3"),
        (TRACE, "2"),
    ]


def test_documents_may_follow_each_other_in_one_file():
    both = FORMS["indented"] + b"\n" + json.dumps(samples.jaeger("beef"), indent=2).encode()
    spans, reasons = exported(both)
    assert ({trace.lstrip("0") for trace, _ in spans}, reasons) == ({TRACE, "beef"}, [])


def test_after_a_torn_document_the_next_one_is_read():
    torn = FORMS["indented"][: len(FORMS["indented"]) // 2]
    spans, reasons = exported(torn + b"\n" + PLAIN + b"\nnonsense\n" + PLAIN)
    assert len(spans) == 3
    assert reasons == [documents.NO_DOCUMENT] * 2


def test_what_was_before_the_tear_of_a_compressed_file_is_used():
    lines = b"".join(json.dumps(samples.otlp(f"{n:x}")).encode() + b"\n" for n in range(1, 400))
    packed = gzip.compress(lines)
    spans, reasons = exported(packed[: len(packed) // 2])
    assert 0 < len(spans) < 3 * 399
    assert reasons[-1] == documents.TORN


def test_what_follows_the_last_whole_export_in_protobuf_is_told():
    spans, reasons = exported(FORMS["prefixed"] + FORMS["prefixed"][:-3])
    assert (len(spans), reasons) == (3, [documents.NO_DOCUMENT])
    assert exported(FORMS["protobuf"][:-3]) == ({}, [documents.NO_DOCUMENT])
    # Cut off where one resource ends it would be an export too, with fewer spans.
    first = samples.as_protobuf({"resourceSpans": samples.otlp(TRACE)["resourceSpans"][:1]})
    assert FORMS["protobuf"].startswith(first)
    cut = FORMS["prefixed"][: 4 + len(first)]
    assert exported(cut) == ({}, [documents.NO_DOCUMENT])


def test_protobuf_that_begins_like_a_text_is_protobuf():
    # The first list of 123 bytes begins with a line feed and a brace.
    def made(name):
        first = samples.otlp(TRACE)["resourceSpans"][0]
        first["scopeSpans"][0]["spans"][0].update(name=name, attributes=[])
        return samples.as_protobuf({"resourceSpans": [first]})

    (data,) = [each for n in range(60) if (each := made("x" * n))[:2] == b"\n{"]
    spans, reasons = exported(data)
    assert (len(spans), reasons) == (1, [])


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"[" * 100_000, TOO_DEEP),
        (b'{"resourceSpans":' + b"[" * 61 + b"]" * 61 + b"}", TOO_DEEP),
        (b'{"data": [1, 2]}', documents.NO_DOCUMENT),
        (b'{"resourceSpans": NaN}', documents.NO_DOCUMENT),
        (b'{"resourceSpans": []}', documents.NO_DOCUMENT),
        (b'{"hello": 1}', documents.NO_DOCUMENT),
        (b'{"traceId": "1", "id": "2", "binaryAnnotations": []}', documents.NO_DOCUMENT),
        (b"\x00\x00\x00\x05spans", documents.NO_DOCUMENT),
        (b"\xff\xff\xff\xff", documents.NO_DOCUMENT),
        (b"\x1f\x8b rubbish", documents.TORN),
        (b"some text", documents.NO_DOCUMENT),
    ],
)  # fmt: skip
def test_what_is_no_export_is_one_record_with_a_reason(data, reason):
    spans, reasons = exported(data)
    assert (spans, reasons) == ({}, [reason])


def test_spans_without_an_id_are_told_one_by_one():
    trace = samples.jaeger(TRACE)
    trace["data"][0]["spans"] += [None, {"operationName": "x"}]
    spans, reasons = exported(json.dumps(trace).encode())
    assert (len(spans), reasons) == (3, [documents.NOT_A_SPAN] * 2)
    spans, reasons = exported(json.dumps([*samples.zipkin(TRACE), 5]).encode())
    assert (len(spans), reasons) == (3, [documents.NOT_A_SPAN])


def test_a_small_file_that_unpacks_to_more_than_memory_is_refused():
    bomb = gzip.compress(b"0" * 2_000_000)
    assert [each.reason for each in pieces(bomb, most=1_000_000)] == [documents.TOO_LARGE]


def test_many_spans_are_lines_of_their_own():
    document = samples.otlp(TRACE)
    (span,) = document["resourceSpans"][0]["scopeSpans"][0]["spans"]
    many = [{**span, "spanId": f"{n:016x}"} for n in range(1001, 2201)]
    document["resourceSpans"][0]["scopeSpans"] = [{"spans": many[:700]}, {"spans": many[700:]}]
    spans, reasons = exported(json.dumps(document).encode())
    assert (len(spans), reasons) == (1202, [])
    assert max(len(each.text) for each in pieces(json.dumps(document).encode())) < 300_000


@settings(deadline=None, max_examples=200)
@given(
    form=st.sampled_from(sorted(FORMS)),
    cut=st.floats(0, 1),
    junk=st.binary(max_size=40),
)
def test_no_damage_makes_it_fail_or_vanish(form, cut, junk):
    data = FORMS[form]
    at = int(cut * len(data))
    read = list(pieces(data[:at] + junk + data[at:]))
    assert read  # something is told of every file that is not blank
    for piece in read:
        assert piece.reason is not None or json.loads(piece.text)["resourceSpans"]
    list(pieces(data[:at]))
