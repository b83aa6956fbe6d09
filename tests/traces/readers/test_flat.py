"""Tables of one's own, by a mapping: every format gives the same rows, and every line a fate."""

from __future__ import annotations

import gzip
import json

import pandas as pd
import pytest

from tidings.errors import InvalidTracesError
from tidings.traces.importing import import_traces
from tidings.traces.readers.flat import NO_TABLE, read_flat
from tidings.traces.readers.lines import NOT_UTF8, expand
from tidings.traces.readers.mapping import parse_mapping
from tidings.traces.readers.opening import NOT_CSV, NOT_JSON, OTHER_HEADER
from tidings.traces.window import TraceWindow

MAPPING = parse_mapping("""
mapping: 1
tables:
  publications:
    where: {kind: sent}
    event: id
    publisher: {column: who}
    published_ns: {column: at, unit: ms}
    lifetime_ns: {constant: 5, unit: s}
    content: {attributes: {topic: topic, price: {column: price, kind: number}}}
  deliveries:
    where: {kind: [got, got again]}
    event: id
    subscriber: who
    broker: {constant: hub}
    received_ns: {column: at, unit: ms}
""")
AT_MS = 1_700_000_000_123
ROWS = [
    {"kind": "sent", "id": "e1", "who": "p", "at": f"{AT_MS}.000001", "topic": 'a, "b"',
     "price": "12"},
    {"kind": "got", "id": "e1", "who": "s", "at": AT_MS + 5, "topic": "", "price": ""},
    {"kind": "sent", "id": "e2", "who": "p", "at": AT_MS + 7, "topic": "c", "price": ""},
    {"kind": "seen", "id": "e2", "who": "t", "at": AT_MS + 8, "topic": "c", "price": ""},
]  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def _quick(few_rows):
    """All rows of this module are a handful."""


def as_csv(folder):
    pd.DataFrame(ROWS).to_csv(folder / "log.csv", index=False)


def as_tabs_in_gzip(folder):
    pd.DataFrame(ROWS).to_csv(folder / "log.tsv.gz", index=False, sep="\t")


def as_json_lines(folder):
    text = "".join(f"{json.dumps(row)}\n" for row in ROWS)
    (folder / "a [1].jsonl.gz").write_bytes(gzip.compress(text.encode()))


def as_parquet(folder):
    pd.DataFrame(ROWS).astype({"at": "string"}).to_parquet(folder / "log.parquet")


def account_of(imported):
    rows = imported.account.itertuples(index=False, name=None)
    return {(table, fate, reason): number for table, fate, reason, number in rows}


@pytest.fixture
def imported(spark, tmp_path):
    def run(mapping=MAPPING, *sources):
        files = expand(sources or [str(tmp_path)])
        to = tmp_path / "traces"
        found = import_traces(spark, lambda _: read_flat(spark, files, mapping), files, to)
        return found, to

    return run


@pytest.mark.parametrize("write", [as_csv, as_tabs_in_gzip, as_json_lines, as_parquet])
def test_every_format_gives_the_same_rows(spark, tmp_path, write):
    write(tmp_path)
    reading = read_flat(spark, expand([str(tmp_path)]), MAPPING)
    published = reading.tables["publications"].orderBy("event").collect()
    assert [(row.event, row.published_ns, row.lifetime_ns) for row in published] == [
        ("e1", AT_MS * 10**6 + 1, 5 * 10**9),
        ("e2", (AT_MS + 7) * 10**6, 5 * 10**9),
    ]
    assert [json.loads(row.content) for row in published] == [
        {"topic": 'a, "b"', "price": 12},
        {"topic": "c"},
    ]
    (got,) = reading.tables["deliveries"].collect()
    assert (got.event, got.subscriber, got.broker) == ("e1", "s", "hub")
    assert {row.unreadable for row in [*published, got]} == {None}


def test_what_no_table_wants_is_counted_and_passed_over(tmp_path, imported):
    as_parquet(tmp_path)
    found, to = imported()
    assert account_of(found) == {
        ("rows", "used", ""): 3,
        ("rows", "passed over", NO_TABLE): 1,
        ("publications", "used", ""): 2,
        ("deliveries", "used", ""): 1,
    }
    assert not (to / "quarantine").exists()
    assert not list(to.glob(".*"))


def test_what_is_wrong_is_set_aside_with_its_line(spark, tmp_path, imported):
    good = "sent,e{},p,{},a,\n"
    (tmp_path / "log.csv").write_bytes(
        b"kind,id,who,at,topic,price\n"
        + good.format(1, 10).encode()
        + b"\n"
        + good.format(1, 10).encode()  # the same again
        + b"sent,e2,p,soon,a,\n"
        + b"sent,e3,p,-4,a,\n"
        + b"sent,e4,p,5\n"
        + b"sent,e5,p,6,a,dear\n"
        + b"got,\xff\xfe,s,6,a,\n"
        + b"sent,,p,7,a,\n"
        + b"sent,e6,p,99999999999999999999999999999,a,\n"
    )
    found, to = imported()
    assert account_of(found) == {
        ("lines", "used", ""): 7,
        ("lines", "set aside", NOT_CSV): 1,
        ("lines", "set aside", NOT_UTF8): 1,
        ("publications", "used", ""): 1,
        ("publications", "duplicate", "the same in every column as another row"): 1,
        ("publications", "set aside", "published_ns is not a time in ms"): 2,
        ("publications", "set aside", "published_ns is negative"): 1,
        ("publications", "set aside", "price is not a number"): 1,
        ("publications", "set aside", "no event"): 1,
        ("deliveries", "used", ""): 0,
    }
    kept = pd.concat(
        [
            pd.read_parquet(to / "quarantine" / name)
            for name in ("lines-publications-deliveries", "publications")
        ]
    )
    assert dict(zip(kept["line"], kept["reason"], strict=True)) == {
        5: "published_ns is not a time in ms",
        6: "published_ns is negative",
        7: NOT_CSV,
        8: "price is not a number",
        9: NOT_UTF8,
        10: "no event",
        11: "published_ns is not a time in ms",
    }
    assert set(kept["file"]) == {str(tmp_path / "log.csv")}
    assert "sent,e2,p,soon,a," in set(kept["text"])


def test_the_account_of_every_table_holds_after_several_imports(tmp_path, imported):
    """Rows used are in the table, rows set aside in the quarantine, of all imports."""
    (tmp_path / "a.csv").write_text(
        "kind,id,who,at,topic,price\nsent,e1,p,1,a,\nsent,e2,p\nsent,,p,1,a,\ngot,e1,s,2,,\n"
    )
    (tmp_path / "b.csv").write_text("from,to,sent\na,b,1\na,b\na,b,-2\na,b,x\n")
    probes = parse_mapping(
        "{mapping: 1, tables: {probes: {source: from, target: to, sent_ns: sent}}}"
    )
    imported(MAPPING, str(tmp_path / "a.csv"))
    _, to = imported(probes, str(tmp_path / "b.csv"))
    fates = {}
    for name, rows in json.loads((to / "traces.json").read_text())["imported"].items():
        told = {"used": 0, "set aside": 0}
        for row in rows:
            told[row["fate"]] += row["rows"]
        kept = to / "quarantine" / name
        assert told["set aside"] == (len(pd.read_parquet(kept)) if kept.exists() else 0)
        if "-" not in name:
            assert told["used"] == len(pd.read_parquet(to / name))
        fates[name] = (told["used"], told["set aside"])
    assert fates == {
        "lines-publications-deliveries": (3, 1),
        "publications": (1, 1),
        "deliveries": (1, 0),
        "lines-probes": (3, 1),
        "probes": (1, 2),
    }


def test_lines_are_numbered_over_the_blocks_of_large_files(spark, tmp_path, imported):
    spark.conf.set("spark.sql.files.maxPartitionBytes", "2000")
    try:
        for name, bad in (("a", (7, 70)), ("b", (33,))):
            text = [json.dumps({**ROWS[0], "id": f"{name}{i}"}) for i in range(1, 81)]
            for line in bad:
                text[line - 1] = "{nonsense"
            (tmp_path / f"{name}.jsonl").write_text("\n".join(text))
        found, to = imported()
        kept = pd.read_parquet(to / "quarantine" / "lines-publications-deliveries")
    finally:
        spark.conf.unset("spark.sql.files.maxPartitionBytes")
    assert account_of(found)["lines", "set aside", NOT_JSON] == 3
    assert {(file[-7:], line) for file, line in zip(kept["file"], kept["line"], strict=True)} == {
        ("a.jsonl", 7),
        ("a.jsonl", 70),
        ("b.jsonl", 33),
    }


def test_json_lines_keep_kinds_and_nested_fields(spark, tmp_path):
    mapping = parse_mapping("""
mapping: 1
tables:
  hops:
    event: m.id
    broker: b
    came_from: {constant: p}
    arrived_ns: {column: in, unit: iso}
    left_ns: {column: in, unit: iso, plus: {column: took, unit: us, times: 0.5}}
    sent_to: next
  publications:
    event: m.id
    publisher: {constant: p}
    published_ns: {column: in, unit: iso}
    content: {attributes: {deep: m.x, flag: f, n: n}}
""")
    row = {"m": {"id": "e", "x": "y"}, "b": "hub", "in": "2023-11-14T22:13:20.123456789+00:00",
           "took": 3, "next": ["east", "west"], "f": True, "n": 1.5}  # fmt: skip
    (tmp_path / "x.ndjson").write_text(json.dumps(row) + "\n[]\n")
    reading = read_flat(spark, [str(tmp_path / "x.ndjson")], mapping)
    (hop,) = reading.tables["hops"].collect()
    at = 1_700_000_000_123_456_789
    assert (hop.event, hop.arrived_ns, hop.left_ns) == ("e", at, at + 1500)
    assert hop.sent_to == ["east", "west"]
    assert [row.reason for row in reading.records.orderBy("place").collect()] == [None, NOT_JSON]
    (sent,) = reading.tables["publications"].collect()
    assert json.loads(sent.content) == {"deep": "y", "flag": True, "n": 1.5}


def test_a_file_that_begins_otherwise_than_most_costs_no_other_one_anything(tmp_path, imported):
    header = "kind,id,who,at,topic,price\n"
    (tmp_path / "a.csv").write_text("<html>\nsent,odd,p,1,a,\n")
    (tmp_path / "b.csv").write_bytes(f"{header}sent,odd,p,1,a,\n".encode("utf-16"))
    (tmp_path / "c.csv").write_text(f"{header}sent,e1,p,1,a,\n", encoding="utf-8-sig")
    (tmp_path / "d.csv").write_text(f"{header}sent,e2,p,2,a,\n")
    account = account_of(imported()[0])
    assert account["lines", "used", ""] == account["publications", "used", ""] == 2
    assert account["lines", "set aside", OTHER_HEADER] == 2
    assert {why for _, _, why in account} == {"", OTHER_HEADER, NOT_UTF8}


def test_files_of_which_none_begin_as_most_do_are_refused(tmp_path, imported):
    (tmp_path / "a.csv").write_text("kind,id,who,at,topic,price\nsent,e,p,1,a,\n")
    (tmp_path / "b.csv").write_text("id,kind,who,at,topic,price\ne2,sent,p,1,a,\n")
    with pytest.raises(InvalidTracesError, match=r"b\.csv begins with another header"):
        imported()
    assert not (tmp_path / "traces" / "publications").exists()
    assert not list((tmp_path / "traces").glob(".*"))


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("log.csv", "", "empty file"),
        ("log.csv", "kind,id\n", "no column 'who'"),
        ("log.csv", "kind,id,who,at,topic,price\n", "not one row could be used"),
        ("log.txt", "x", "unknown file type"),
        ("log.parquet", "PAR1 no", "is not a Parquet file"),
    ],
)
def test_sources_that_cannot_be_meant_are_told_in_words(tmp_path, imported, name, text, says):
    (tmp_path / name).write_text(text)
    with pytest.raises(InvalidTracesError, match=says):
        imported()


def test_what_names_no_file_is_told_before_spark_starts(tmp_path):
    with pytest.raises(InvalidTracesError, match="no such file"):
        expand([str(tmp_path / "*.csv")])
    with pytest.raises(InvalidTracesError, match="a folder without files"):
        expand([str(tmp_path)])
    assert expand(["s3a://bucket/x/*.gz"]) == ["s3a://bucket/x/*.gz"]


def test_where_no_publication_can_be_used_all_moments_tell_the_window(spark, tmp_path):
    rows = ["kind,id,who,at,topic,price", "got,e1,s,5,,", "got,e2,s,7,,", "sent,,p,6,c,1"]
    (tmp_path / "log.csv").write_text("\n".join(rows))
    files = [str(tmp_path / "log.csv")]
    found = import_traces(
        spark, lambda _: read_flat(spark, files, MAPPING), files, tmp_path / "traces"
    )
    assert found.window == TraceWindow(from_ns=5_000_000, until_ns=7_000_001)
    assert "from the first to the last moment" in found.notes[-1]


def test_a_header_that_names_a_column_twice_is_refused(spark, tmp_path):
    (tmp_path / "log.csv").write_text("kind,id,who,at,topic,topic,price\n")
    with pytest.raises(InvalidTracesError, match="header contains topic twice"):
        read_flat(spark, [str(tmp_path / "log.csv")], MAPPING)
