"""Polls of brokers' counters and histograms: every page and line has a fate."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from tidings.errors import InvalidTracesError
from tidings.traces.importing import Imported, import_traces
from tidings.traces.readers import pages
from tidings.traces.readers.jsz import read_jsz
from tidings.traces.readers.opening import NOT_JSON
from tidings.traces.reading import read_traces

S = 10**9
EPOCH = 1_700_000_000 * S
USED, ASIDE, PASSED = "used", "set aside", "passed over"


@pytest.fixture(scope="module", autouse=True)
def _quick(few_rows: None) -> None:
    """All rows of this module are a handful."""


def account_of(imported: Imported) -> dict[tuple[str, str, str], int]:
    rows = imported.account.itertuples(index=False, name=None)
    return {(table, fate, reason): number for table, fate, reason, number in rows}


def rows_of(frame: DataFrame, *columns: str) -> set[tuple[Any, ...]]:
    return {tuple(row) for row in frame.select(*columns).collect()}


def jsz(second: int, handed: int, pending: int, waiting: int, **more: Any) -> dict[str, Any]:
    consumer = {
        "stream_name": "ORDERS",
        "name": "billing",
        "delivered": {"consumer_seq": handed, "stream_seq": handed},
        "ack_floor": {"consumer_seq": 0, "stream_seq": 0},
        "num_ack_pending": waiting,
        "num_redelivered": 0,
        "num_pending": pending,
        **more,
    }
    streams = [{"name": "ORDERS", "consumer_detail": [consumer]}]
    now = f"2023-11-14T22:13:{20 + second:02d}.5Z"
    return {"now": now, "account_details": [{"name": "$G", "stream_detail": streams}]}


def test_pages_of_jetstream_are_read_indented_in_lines_and_gzipped(
    spark: SparkSession, tmp_path: Path
) -> None:
    whole = "\n".join(json.dumps(jsz(each, 10 * each, 5, 2), indent=2) for each in (1, 2))
    (tmp_path / "indented.json").write_text(f"\ufeff{whole}\n", encoding="utf-8")
    torn = json.dumps(jsz(4, 40, 5, 2))[:-20]
    led = jsz(6, 60, 5, 2, cluster={"leader": "b"}) | {"server_name": "a"}
    named = jsz(6, 61, 5, 2, cluster={"leader": "a"}) | {"server_name": "a", "polled_ns": EPOCH}
    some = [json.dumps(jsz(3, 30, 5, 2)), torn, '{"now": 1}', "what is this", json.dumps(led)]
    with gzip.open(tmp_path / "lines.jsonl.gz", "wt") as file:
        file.write("\n".join([*some, json.dumps(named), json.dumps(jsz(7, 1, 0, 5)), "{}"]))
    (tmp_path / "empty.json").write_text("")
    files = [str(each) for each in sorted(tmp_path.iterdir())]
    found = import_traces(spark, lambda _: read_jsz(spark, files), files, tmp_path / "traces")
    assert account_of(found) == {
        ("pages", USED, ""): 5,
        # A line that begins with no brace belongs to the page before it, and spoils it.
        ("pages", ASIDE, NOT_JSON): 2,
        ("pages", PASSED, pages.NOTHING_SAID): 2,
        ("levels", USED, ""): 4,
        ("levels", ASIDE, "done is negative"): 1,
    }
    levels = read_traces(spark, tmp_path / "traces").tables["levels"]
    half = S // 2
    assert rows_of(levels, "queue", "at_ns", "entered", "done", "in_flight") == {
        ("ORDERS-billing", EPOCH + S + half, 15, 8, 2),
        ("ORDERS-billing", EPOCH + 2 * S + half, 25, 18, 2),
        ("ORDERS-billing", EPOCH + 3 * S + half, 35, 28, 2),
        ("ORDERS-billing", EPOCH, 66, 59, 2),
    }
    aside = spark.read.parquet(str(tmp_path / "traces" / "quarantine" / "pages-levels"))
    assert {(Path(row.file).name, row.line) for row in aside.collect()} == {
        ("lines.jsonl.gz", 2),
        ("lines.jsonl.gz", 3),
    }


def test_nothing_of_use_is_told_and_nothing_written(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "jsz.json"
    path.write_text("\0\0\n{{{{\n" + "[" * 2000)
    files = [str(path)]
    with pytest.raises(InvalidTracesError, match="not one row"):
        import_traces(spark, lambda _: read_jsz(spark, files), files, tmp_path / "traces")
    assert not (tmp_path / "traces" / "levels").exists()
