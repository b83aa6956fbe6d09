"""Damaged text: whatever a line holds, it is read as it stands or set aside, never misread."""

from __future__ import annotations

import csv
import gzip
import json
import random

import pytest

from tidings.errors import InvalidTracesError
from tidings.model.trace_tables import TRACE_TABLES
from tidings.traces.actions import run_action
from tidings.traces.places import find_tables
from tidings.traces.quarantine import REASON, with_reasons
from tidings.traces.readers import lines
from tidings.traces.readers.lines import NOT_UTF8, ORIGIN
from tidings.traces.readers.opening import NOT_CSV, NOT_JSON, OPEN_QUOTE
from tidings.traces.reading import open_table, read_traces

HEADER = b"source,target,sent_ns,received_ns\n"
MANIFEST = '{"version": 1, "from_ns": 0, "until_ns": 1000}'
NOT_WHOLE = "received_ns is not a whole number (digits only, below 2^63)"
CSV_LINES = [
    (b"a,b,1,5", ("a", "b", 1, 5)),
    (b"a,b,2", NOT_CSV),  # not a lost probe
    (b"a,b,2,", ("a", "b", 2, None)),  # a lost probe
    (b"a,b,3,7,9,extra", NOT_CSV),
    (b'a,b,4,"7', OPEN_QUOTE),
    (b'"a,b,9,10', OPEN_QUOTE),
    (b'"a"x,b,5,7', OPEN_QUOTE),
    (b'"a, ""b""",c,5,7', ('a, "b"', "c", 5, 7)),
    (b"\xe9,b,5,7", NOT_UTF8),
    ("é,b,5,7".encode(), ("é", "b", 5, 7)),
    (b"a,b,6,99999999999999999999999", NOT_WHOLE),
    (b"a,b,7,1e2", NOT_WHOLE),
    (b"a,b,-7,9", "sent_ns is negative"),
    (b"a,b,11,12\x00", NOT_UTF8),
]
JSON_LINES = [
    (b'\xef\xbb\xbf{"source":"a","target":"b","sent_ns":1,"received_ns":5}', ("a", "b", 1, 5)),
    (b'{"source":"a","target":"b","sent_ns":1.0,"received_ns":null}', ("a", "b", 1, None)),
    (b'{"source":"a","target":"b","sent_ns":1,"received_ns":2.5}', NOT_WHOLE),
    (b'{"source":"a","target":"b","sent_ns":1,"received_ns":[2]}', NOT_WHOLE),
    (b'{"source":"a","target":"b","sent_ns":1} {"source":"c","target":"d","sent_ns":2}', NOT_JSON),
    (b'{"source":"a","target":"b","sent_ns":1},{"source":"c","target":"d","sent_ns":2}', NOT_JSON),
    (b'{"source":"a","target":"b","sent_ns":1}]', NOT_JSON),
    (b'[{"source":"a","target":"b","sent_ns":1},{"source":"c"}]', NOT_JSON),
    (b'{"source":"a","target":"b","sent_ns":1', NOT_JSON),
    (b'{"source":"\xe9","target":"b","sent_ns":1}', NOT_UTF8),
    (b"17", NOT_JSON),
    (b"null", NOT_JSON),
    (b'{"source":"a","sent_ns":1}', "no target"),
]


@pytest.fixture(scope="module", autouse=True)
def _quick(few_rows):
    """All rows of this module are a handful."""


def fates(spark, folder, name="probes"):
    """What became of every row of a table, by the line it stands on."""
    (folder / "traces.json").write_text(MANIFEST)
    table = TRACE_TABLES[name]
    rows = open_table(spark, table, find_tables(folder)[name], ORIGIN)
    columns = [column.name for column in table.columns]
    found = with_reasons(rows, table).orderBy("place").collect()
    plain = with_reasons(read_traces(spark, folder).tables[name], table).collect()
    assert [row[REASON] for row in plain] == [row[REASON] for row in found]
    return [row[REASON] or tuple(row[each] for each in columns) for row in found]


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "jsonl"])
def test_every_line_is_read_as_it_stands_or_set_aside(spark, tmp_path, kind):
    given = JSON_LINES if kind == "jsonl" else CSV_LINES
    text = b"\n\r\n".join(line for line, _ in given)  # with empty lines between
    text = text if kind == "jsonl" else HEADER + text
    packed = gzip.compress(text) if kind.endswith("gz") else text
    (tmp_path / f"probes.{kind}").write_bytes(packed)
    assert fates(spark, tmp_path) == [fate for _, fate in given]


def test_quotes_are_understood_as_python_understands_them(spark, tmp_path):
    """Random lines, against the strict reader of the standard library."""
    rng = random.Random(8)
    texts = ["".join(rng.choices('"",,ax1\\ ', k=rng.randint(4, 14))) + ",1,2" for _ in range(600)]
    texts = [text for text in texts if text.strip()]
    (tmp_path / "probes.csv").write_bytes(HEADER + "\n".join(texts).encode())
    found = fates(spark, tmp_path)
    assert len(found) == len(texts)
    used = 0
    for text, fate in zip(texts, found, strict=True):
        try:
            cells = next(csv.reader([text], strict=True))
        except csv.Error:
            cells = []
        if len(cells) != 4:
            assert fate in (NOT_CSV, OPEN_QUOTE), text
        elif all(cell.strip() for cell in cells):
            assert fate == (cells[0], cells[1], 1, 2), text
            used += 1
        else:
            assert fate in ("no source", "no target"), text
    assert used > 20


def test_cells_and_quotes_may_be_many(spark, tmp_path):
    content = json.dumps(dict.fromkeys(map(str, range(20_000)), "x"))
    row = f'e,p,1,"{content.replace(chr(34), chr(34) * 2)}"\n'
    (tmp_path / "publications.csv").write_text("event,publisher,published_ns,content\n" + row)
    (fate,) = fates(spark, tmp_path, "publications")
    assert fate[4] == content


@pytest.mark.parametrize("header_bytes", [64, 10**6])  # Spark finds out, or whoever reads headers
@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_a_file_that_is_cut_off_is_named(spark, tmp_path, monkeypatch, kind, header_bytes):
    monkeypatch.setattr(lines, "_LONGEST_HEADER", header_bytes)
    rows = b"".join(b"a%d,b,%d,%d\n" % (n * 7919 % 9973, n, n + 5) for n in range(9999))
    packed = gzip.compress(HEADER + rows)
    (tmp_path / f"probes.{kind}.gz").write_bytes(packed[: len(packed) // 2])
    (tmp_path / "traces.json").write_text(MANIFEST)

    def read():
        run_action(read_traces(spark, tmp_path).tables["probes"].collect, "the probes")

    with pytest.raises(InvalidTracesError, match=rf"probes\.{kind}\.gz") as told:
        read()
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"", "empty file"),
        (
            b"source,target,received_ns\na,b,1\n",
            r"\(its columns: source, target, received_ns\)\n  sent_ns: got no such column",
        ),
        (b"source,target,sent_ns,sent_ns\na,b,1,1\n", "contains sent_ns twice"),
        ("source,target,sent_ns\na,b,1\n".encode("utf-16"), "not text in UTF-8"),
    ],
)
def test_a_table_without_its_header_is_refused_by_name(spark, tmp_path, text, says):
    (tmp_path / "probes.csv").write_bytes(text)
    (tmp_path / "traces.json").write_text(MANIFEST)
    with pytest.raises(InvalidTracesError, match=says) as told:
        read_traces(spark, tmp_path)
    assert "probes.csv" in str(told.value)


def test_an_empty_file_among_others_and_notes_beside_them_do_no_harm(spark, tmp_path):
    folder = tmp_path / "probes"
    folder.mkdir()
    (folder / "a.csv").write_bytes(HEADER + b"a,b,1,2\n")
    (folder / "b.csv").write_bytes(b"")
    (folder / "c.csv").write_bytes(HEADER)
    (folder / "notes.txt").write_text("of what was done")
    assert fates(spark, tmp_path) == [("a", "b", 1, 2)]
    (tmp_path / "probes" / "a.csv").rename(tmp_path / "hops.jsonl")
    (tmp_path / "hops.jsonl").write_bytes(b"")
    assert fates(spark, tmp_path, "hops") == []
