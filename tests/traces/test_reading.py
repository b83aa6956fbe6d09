from __future__ import annotations

import gzip
import json

import pandas as pd
import pytest

from tidings.errors import InvalidTracesError
from tidings.model.trace_tables import PROBES, PUBLICATIONS, TRACE_TABLES
from tidings.traces.places import require_tables, table_names
from tidings.traces.quarantine import REASON, with_reasons
from tidings.traces.readers.opening import NOT_CSV, NOT_JSON
from tidings.traces.reading import parse_manifest, read_rows, read_traces
from tidings.traces.window import TraceWindow

ROWS = [
    {"event": "e1", "publisher": "p", "broker": "hub", "published_ns": 1_700_000_000_000_000_001,
     "content": '{"topic":"a, \\"b\\""}', "lifetime_ns": 5, "size_bytes": None},
    {"event": "e2", "publisher": "p", "broker": None, "published_ns": 1_700_000_000_000_000_009,
     "content": "{}", "lifetime_ns": None, "size_bytes": 7},
]  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def _quick(few_rows):
    """All rows of this module are a handful."""


def in_parquet_folder(folder):
    (folder / "publications").mkdir()
    kinds = {"lifetime_ns": "Int64", "size_bytes": "Int64"}
    pd.DataFrame(ROWS).astype(kinds).to_parquet(folder / "publications" / "a.parquet")


def in_parquet_of_other_tools(folder):  # whole numbers with gaps as floats
    pd.DataFrame(ROWS).to_parquet(folder / "publications.parquet")


def in_csv(folder):
    pd.DataFrame(ROWS).astype({"lifetime_ns": "Int64", "size_bytes": "Int64"})[
        [*reversed(list(ROWS[0]))]
    ].to_csv(folder / "publications.csv", index=False)


def in_gzipped_csv(folder):
    kinds = {"lifetime_ns": "Int64", "size_bytes": "Int64"}
    pd.DataFrame(ROWS).astype(kinds).to_csv(folder / "publications.csv.gz", index=False)


def in_json_lines(folder):
    text = "\n".join(json.dumps(row) for row in ROWS)
    (folder / "publications.jsonl").write_text(text)


def in_gzipped_json_lines(folder):
    (folder / "publications").mkdir()
    with gzip.open(folder / "publications" / "x.ndjson.gz", "wt") as file:
        file.write("\n".join(json.dumps(row) for row in ROWS))


@pytest.mark.parametrize(
    "write",
    [
        in_parquet_folder,
        in_parquet_of_other_tools,
        in_csv,
        in_gzipped_csv,
        in_json_lines,
        in_gzipped_json_lines,
    ],
)
def test_every_format_gives_the_same_rows(spark, tmp_path, write):
    write(tmp_path)
    traces = read_traces(spark, tmp_path)
    found = with_reasons(traces.tables["publications"], PUBLICATIONS).orderBy("event").collect()
    assert [row.asDict() for row in found] == [
        {**row, "unreadable": None, REASON: None} for row in ROWS
    ]
    # without a manifest the window is that of the publications
    first, last = (row["published_ns"] for row in ROWS)
    assert traces.window == TraceWindow(from_ns=first, until_ns=last + 1)
    assert traces.notes


def test_what_cannot_be_read_in_a_text_format_is_noted_not_lost(spark, tmp_path):
    (tmp_path / "publications.csv").write_text(
        "event,publisher,published_ns,content,lifetime_ns\n"
        "e1,p,1,{},\ne2,p,12x,{},\ne3,p,99999999999999999999,{},1\ne4,p,2,{},soon\ne5,p\n"
    )
    (tmp_path / "probes.jsonl").write_text(
        '{"source":"a","target":"b","sent_ns":1,"received_ns":null}\n'
        'nonsense\n{"source":"a","target":"b","sent_ns":1.5}\n{"source":"a","sent_ns":[2]}\n'
    )
    (tmp_path / "traces.json").write_text(
        '{"version": 1, "from_ns": 0, "until_ns": 9, "incomplete": "a server died"}'
    )
    traces = read_traces(spark, tmp_path)
    assert ["the traces are incomplete: a server died" in each for each in traces.notes] == [True]
    reasons = {}
    for name in ("publications", "probes"):
        found = with_reasons(traces.tables[name], TRACE_TABLES[name])
        reasons[name] = sorted(row[REASON] for row in found.collect() if row[REASON])
    assert reasons == {
        "publications": [
            NOT_CSV,
            "lifetime_ns is not a whole number (digits only, below 2^63)",
            "published_ns is not a whole number (digits only, below 2^63)",
            "published_ns is not a whole number (digits only, below 2^63)",
        ],
        "probes": [
            NOT_JSON,
            "sent_ns is not a whole number (digits only, below 2^63)",
            "sent_ns is not a whole number (digits only, below 2^63)",
        ],
    }


def test_lists_of_names_may_be_json_in_a_text_format(spark, tmp_path):
    (tmp_path / "hops.csv").write_text(
        "event,broker,came_from,arrived_ns,left_ns,sent_to\n"
        'e1,hub,p,1,2,"[""a"",""b""]"\ne2,hub,p,1,2,\n'
    )
    (tmp_path / "traces.json").write_text('{"version": 1, "from_ns": 0, "until_ns": 9}')
    rows = read_traces(spark, tmp_path).tables["hops"].orderBy("event").collect()
    assert [row.sent_to for row in rows] == [["a", "b"], None]
    assert rows[0].started_ns is None  # a nullable column may be missing


def test_missing_and_wrong_columns_are_all_named_with_what_was_found(spark, tmp_path):
    pd.DataFrame(
        {"event": ["e"], "who": ["p"], "published_ns": [[1]], "content": ["{}"]}
    ).to_parquet(tmp_path / "publications.parquet")
    with pytest.raises(InvalidTracesError) as told:
        read_traces(spark, tmp_path)
    text = str(told.value)
    assert "(its columns: event, who, published_ns, content)" in text
    assert "publisher: got no such column; wants string: who published it" in text
    assert "published_ns: got a column of type array<bigint>; wants bigint: when" in text


def test_a_folder_without_tables_says_what_it_holds(spark, tmp_path):
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(InvalidTracesError, match=r"no trace tables here.*found notes.txt"):
        read_traces(spark, tmp_path)
    with pytest.raises(InvalidTracesError, match="got nothing; wants a folder"):
        read_traces(spark, tmp_path / "absent")
    with pytest.raises(InvalidTracesError, match="got a file; wants a folder"):
        read_traces(spark, tmp_path / "notes.txt")


def test_a_table_that_is_there_twice_is_refused(spark, tmp_path):
    in_csv(tmp_path)
    in_json_lines(tmp_path)
    with pytest.raises(InvalidTracesError, match="publications is there twice"):
        read_traces(spark, tmp_path)


def test_a_broken_parquet_file_is_an_error_in_one_line(spark, tmp_path):
    (tmp_path / "publications.parquet").write_bytes(b"PAR1 this is none")
    with pytest.raises(InvalidTracesError, match=r"publications\.parquet") as told:
        read_traces(spark, tmp_path)
    assert "\n" not in str(told.value)
    assert "is not a Parquet file" in str(told.value)
    assert "An error occurred while calling" not in str(told.value)


def test_a_url_without_tables_is_an_error_too(spark, tmp_path):
    with pytest.raises(InvalidTracesError, match="got nothing"):
        read_traces(spark, f"file://{tmp_path}/absent")


def test_all_missing_tables_are_named_and_what_there_is(tmp_path):
    in_csv(tmp_path)
    found = table_names(tmp_path)
    says = r"x has no table hops; wants publications, hops, found .*publications"
    with pytest.raises(InvalidTracesError, match=says):
        require_tables("x", ("publications", "hops"), found)
    with pytest.raises(InvalidTracesError, match=r"x has no tables hops, deliveries; .*found none"):
        require_tables("x", ("hops", "deliveries"), ())
    assert table_names("s3a://bucket/traces") is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"version": 1}',
        '{"version": 2, "from_ns": 0, "until_ns": 1}',
        '{"version": 1, "from_ns": "0", "until_ns": 1}',
        '{"version": 1, "from_ns": 0.5, "until_ns": 1}',
        '{"version": 1, "from_ns": true, "until_ns": 2}',
        '{"version": 1, "from_ns": 2, "until_ns": 1}',
    ],
)
def test_a_bad_manifest_is_refused(text):
    with pytest.raises(InvalidTracesError):
        parse_manifest(text)


def test_a_frame_of_ones_own_is_made_canonical(frame):
    columns = "source string, target string, sent_ns int, x string"
    read = read_rows(frame([("a", "b", 5, "extra")], columns), PROBES)
    assert [(f.name, f.dataType.simpleString()) for f in read.schema] == [
        ("source", "string"),
        ("target", "string"),
        ("sent_ns", "bigint"),
        ("received_ns", "bigint"),
        ("unreadable", "string"),
    ]
