"""Queries run side by side, and end with whoever started them."""

from __future__ import annotations

import threading

import pytest
from pyspark.sql import SparkSession

from tidings.traces.actions import concurrent_queries


def test_queries_run_at_the_same_time(spark: SparkSession) -> None:
    both = threading.Barrier(2, timeout=60)

    def count(rows: int) -> int:
        both.wait()  # neither goes on before the other one has begun
        return spark.range(rows).count()

    with concurrent_queries(spark) as start:
        jobs = [start(count, 3), start(count, 4)]
        assert [job.result() for job in jobs] == [3, 4]


def test_an_error_is_raised_where_the_result_is_asked_for(spark: SparkSession) -> None:
    with concurrent_queries(spark) as start, pytest.raises(ZeroDivisionError):
        start(lambda: 1 // 0).result()


def test_what_has_not_begun_when_another_fails_never_begins(spark: SparkSession) -> None:
    begun = []
    go_on = threading.Event()

    def fail_half_way() -> None:
        with concurrent_queries(spark) as start:
            for _ in range(200):  # more than run at once
                start(lambda: (begun.append(1), go_on.wait(60)))
            threading.Timer(0.2, go_on.set).start()
            raise RuntimeError("half-way")

    with pytest.raises(RuntimeError, match="half-way"):
        fail_half_way()
    assert 0 < len(begun) < 200
