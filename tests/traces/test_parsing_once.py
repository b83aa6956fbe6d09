"""Text is parsed once while statistics are counted, and nothing of it stays afterwards."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark import StorageLevel
from pyspark.sql import SparkSession

from tidings.traces.parsing_once import parsed_once
from tidings.traces.reading import Traces, read_traces


@pytest.fixture
def traces(spark: SparkSession, tmp_path: Path) -> Traces:
    """Publications as text, deliveries as Parquet."""
    published = {
        "event": "e1", "publisher": "p", "broker": "b", "content": "{}", "published_ns": 5,
    }  # fmt: skip
    (tmp_path / "publications.jsonl").write_text(json.dumps(published) + "\n")
    spark.sql("select 'e1' event, 's' subscriber, 'b' broker, 6L received_ns").write.parquet(
        f"file://{tmp_path}/deliveries"
    )
    (tmp_path / "traces.json").write_text('{"version": 1, "from_ns": 0, "until_ns": 9}')
    return read_traces(spark, tmp_path)


def test_text_is_kept_parsed_as_long_as_it_is_read(traces: Traces) -> None:
    with parsed_once(traces) as kept:
        rows = kept.tables["publications"]
        assert [each.event for each in rows.collect()] == ["e1"]
        assert "InMemoryTableScan" in rows._jdf.queryExecution().executedPlan().toString()
        assert kept.tables["deliveries"].storageLevel == StorageLevel.NONE
    assert traces.tables["publications"].storageLevel == StorageLevel.NONE


def test_what_another_keeps_stays_kept(traces: Traces) -> None:
    with parsed_once(traces) as outer:
        with parsed_once(outer):
            pass
        assert outer.tables["publications"].storageLevel != StorageLevel.NONE


def test_nothing_stays_kept_after_an_error(traces: Traces) -> None:
    with pytest.raises(RuntimeError, match="half-way"), parsed_once(traces):
        raise RuntimeError("half-way")
    assert traces.tables["publications"].storageLevel == StorageLevel.NONE
