"""Tables where people keep them: by day, in Delta and Iceberg, behind URLs, in catalogs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

from tidings.errors import InvalidTracesError, UnsupportedError
from tidings.model.trace_tables import PUBLICATIONS
from tidings.traces import lakes, places
from tidings.traces.places import TablePlace, find_tables, table_names
from tidings.traces.readers.lines import ORIGIN
from tidings.traces.reading import open_table, read_traces

pytestmark = pytest.mark.spark
WRITTEN = Path(__file__).parent / "written_by_delta_rs"
ROW = {"publisher": "p", "content": "{}"}


@pytest.fixture(scope="module", autouse=True)
def _quick(few_rows):
    """All rows of this module are a handful."""


def rows(*events, **more):
    return pd.DataFrame([{"event": f"e{at}", "published_ns": at, **ROW, **more} for at in events])


def write(path, frame):
    path.parent.mkdir(parents=True, exist_ok=True)
    frame.to_parquet(path) if path.suffix == ".parquet" else frame.to_json(
        path, orient="records", lines=True
    )


def events(traces, *columns):
    read = traces.tables["publications"].orderBy("published_ns")
    return [
        row[0] if len(row) == 1 else tuple(row) for row in read.select("event", *columns).collect()
    ]


@pytest.mark.parametrize("name", ["a.parquet", "a.jsonl.gz"])
def test_tables_may_be_partitioned_by_day(spark, tmp_path, name):
    """The day is not a column of ours; later days may have more columns than the first."""
    write(tmp_path / "publications" / "year=2026" / "day=17" / name, rows(1, 2))
    write(tmp_path / "publications" / "year=2026" / "day=18" / name, rows(3, size_bytes=7))
    (tmp_path / "publications" / "_SUCCESS").touch()
    traces = read_traces(spark, tmp_path)
    assert events(traces, "size_bytes") == [("e1", None), ("e2", None), ("e3", 7)]
    assert traces.tables["publications"].columns == [
        *(column.name for column in PUBLICATIONS.columns),
        "unreadable",
    ]


def test_what_folders_say_of_our_columns_is_taken_as_it_is_written(spark, tmp_path):
    write(tmp_path / "publications" / "broker=007" / "a.parquet", rows(1, 2))
    write(tmp_path / "publications" / "broker=hub%2F1" / "a.parquet", rows(3))
    assert events(read_traces(spark, tmp_path), "broker") == [
        ("e1", "007"),
        ("e2", "007"),
        ("e3", "hub/1"),
    ]


@pytest.mark.parametrize("other", ["a.parquet", "day=18/a.parquet"])
@pytest.mark.parametrize("name", ["2026-11-18", "day=2026-11-18"])
def test_files_that_spark_would_pass_over_are_refused(tmp_path, name, other):
    write(tmp_path / "publications" / other, rows(1))
    write(tmp_path / "publications" / name / "a.parquet", rows(2))
    if "=" in name and "=" in other:
        assert find_tables(tmp_path)["publications"].partitioned
        return
    with pytest.raises(InvalidTracesError, match=r"publications: got files in other folders"):
        table_names(tmp_path)


def test_folders_beside_the_tables_are_nobodys_business(tmp_path):
    """An import leaves what it set aside there, by table."""
    write(tmp_path / "publications" / "a.parquet", rows(1))
    write(tmp_path / "quarantine" / "hops" / "a.parquet", rows(1))
    assert table_names(tmp_path) == ("publications",)


# ---- Delta ---------------------------------------------------------------------------------------


def test_removed_files_of_a_delta_table_are_not_read(spark):
    traces = read_traces(spark, WRITTEN)
    assert events(traces, "lifetime_ns") == [  # as delta-rs reads them
        ("e0", None),
        ("e2", None),
        ("e3", None),
        ("e100", 5),
        ("e101", 5),
    ]
    place = traces.places["publications"]
    kept = open_table(spark, PUBLICATIONS, place, ORIGIN).where("event = 'e3'").collect()
    assert [(Path(row.file).parent.name, row.place) for row in kept] == [("day=2026-11-15", 1)]


def delta(folder, names, *, by=(), **settings):
    """A Delta table of files that are there already."""
    fields = {"event": "string", "publisher": "string", "broker": "string", "published_ns": "long"}
    schema = [
        {"name": name, "type": kind, "nullable": True, "metadata": {}}
        for name, kind in (fields | {"content": "string"}).items()
    ]
    table = {
        "schemaString": json.dumps({"type": "struct", "fields": schema}),
        "partitionColumns": list(by),
        "configuration": settings,
    }
    actions = [{"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}}, {"metaData": table}]
    actions += [{"add": {"path": name}} for name in names]
    (folder / "_delta_log").mkdir(parents=True)
    text = "\n".join(map(json.dumps, actions))
    (folder / "_delta_log" / f"{0:020}.json").write_text(text)


def test_our_columns_by_which_a_delta_table_is_partitioned(spark, tmp_path):
    table = tmp_path / "publications"
    delta(table, ["broker=007/a.parquet", "broker=hub%252F1/b%20c.parquet"], by=["broker"])
    write(table / "broker=007" / "a.parquet", rows(1))
    write(table / "broker=hub%2F1" / "b c.parquet", rows(2))
    assert events(read_traces(spark, tmp_path), "broker") == [("e1", "007"), ("e2", "hub/1")]


def test_our_columns_that_only_a_log_tells_are_not_read_as_missing(spark, tmp_path):
    table = tmp_path / "publications"
    delta(table, ["a.parquet"], by=["broker"])
    write(table / "a.parquet", rows(1))
    with pytest.raises(
        UnsupportedError, match=r"column broker stands only in its log.*no Delta here"
    ):
        read_traces(spark, tmp_path)


def test_a_delta_table_that_has_lost_all_its_rows(spark, tmp_path):
    delta(tmp_path / "publications", [])
    (tmp_path / "traces.json").write_text('{"version": 1, "from_ns": 0, "until_ns": 9}')
    assert events(read_traces(spark, tmp_path)) == []


# ---- by Spark's own means ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mark", "name"),
    [("metadata/v1.metadata.json", "Iceberg"), (".hoodie/hoodie.properties", "Hudi")],
)
def test_tables_of_other_formats_need_a_spark_that_has_them(spark, tmp_path, mark, name):
    write(tmp_path / "publications" / "data" / "a.parquet", rows(1))
    place = tmp_path / "publications" / mark
    place.parent.mkdir()
    place.touch()
    says = rf"a table of {name}, and Spark has no {name} here; hand it over"
    with pytest.raises(UnsupportedError, match=says):
        read_traces(spark, tmp_path)


def test_a_spark_that_has_a_format_reads_it(spark, tmp_path, monkeypatch):
    """Spark's own ORC stands for a format whose jar users bring along."""
    monkeypatch.setitem(places.LAKES, "orc", "made.by.orc")
    monkeypatch.setitem(lakes.NAMES, "orc", "ORC")
    table = tmp_path / "publications"
    spark.createDataFrame(pa.Table.from_pandas(rows(1, 2))).write.orc(f"file://{table}")
    (table / "made.by.orc").touch()
    write(table / "stale" / "a.parquet", rows(3))
    assert events(read_traces(spark, tmp_path)) == ["e1", "e2"]


@pytest.fixture
def elsewhere(spark, tmp_path):
    """A folder behind a URL of another file system, as Spark's settings say."""
    lake = tmp_path.name.replace("_", "-")  # of its own: Hadoop keeps what it has opened
    link = f"fs.viewfs.mounttable.{lake}.link./traces"
    spark.conf.set(link, f"file://{tmp_path}")
    yield f"viewfs://{lake}/traces"
    spark.conf.unset(link)


def test_tables_behind_a_url(spark, tmp_path, elsewhere):
    write(tmp_path / "publications" / "day=17" / "a.parquet", rows(1))
    write(tmp_path / "publications" / "day=18" / "a.parquet", rows(2))
    (tmp_path / "traces.json").write_text('{"version": 1, "from_ns": 0, "until_ns": 9}')
    traces = read_traces(spark, elsewhere)
    assert (events(traces), list(traces.tables)) == (["e1", "e2"], ["publications"])
    assert traces.window.until_ns == 9


def test_a_delta_table_behind_a_url_is_never_read_as_parquet(spark, tmp_path, elsewhere):
    shutil.copytree(WRITTEN / "publications", tmp_path / "publications")
    with pytest.raises(UnsupportedError, match="traces/publications is a table of Delta, and"):
        read_traces(spark, elsewhere)


def test_a_url_of_nothing(spark, elsewhere):
    with pytest.raises(InvalidTracesError, match=r"no trace tables here.*none of them is there"):
        read_traces(spark, elsewhere)


@pytest.fixture
def schema(spark, tmp_path):
    """A schema of Spark's catalog with one table, and a view beside it."""
    write(tmp_path / "p.parquet", rows(1, 2))
    spark.sql("CREATE SCHEMA lake")
    spark.sql(
        f"CREATE TABLE lake.publications USING parquet LOCATION 'file://{tmp_path}/p.parquet'"
    )
    spark.sql(
        "CREATE VIEW lake.raw_publications AS SELECT * FROM lake.publications WHERE event = 'e2'"
    )
    spark.range(1).createOrReplaceTempView("lake_hops")
    yield "lake"
    spark.sql("DROP SCHEMA lake CASCADE")
    spark.catalog.dropTempView("lake_hops")


def test_tables_of_a_catalog(spark, schema):
    traces = read_traces(spark, "catalog:spark_catalog.lake")
    assert events(traces) == ["e1", "e2"]
    assert list(traces.places) == ["publications"]
    place = TablePlace(kind="catalog", path="lake.raw_publications")
    kept = open_table(spark, PUBLICATIONS, place, ORIGIN).collect()
    assert [json.loads(row.text)["event"] for row in kept] == ["e2"]
    with pytest.raises(InvalidTracesError, match=r"lake_hops: wrong columns for hops"):
        read_traces(spark, "catalog:lake_*")
    with pytest.raises(InvalidTracesError, match=r"catalog:absent: there are no trace tables here"):
        read_traces(spark, "catalog:absent")
    assert table_names("catalog:lake") is None


def test_a_catalog_that_is_not_there_is_named(spark):
    with pytest.raises(InvalidTracesError, match="nowhere"):
        read_traces(spark, "catalog:nowhere.lake.traces")


def test_files_of_text_in_partitions_are_found(tmp_path):
    write(tmp_path / "hops" / "day=18" / "a.jsonl", rows(1))
    place = find_tables(tmp_path)["hops"]
    assert (place.kind, place.partitioned) == ("json", True)
    assert place.files == (str(tmp_path / "hops" / "day=18" / "a.jsonl"),)
