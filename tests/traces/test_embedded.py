"""Spark inside one Java with us: functions looked up once, classes compiled once."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F

from tidings.characterisation.count.journeys import VantagePoints, sighting_statistics
from tidings.model.trace_tables import HOPS, PUBLICATIONS
from tidings.traces.embedded import KnownClass
from tidings.traces.window import TraceWindow

pytestmark = pytest.mark.spark


class Asked:
    """A class of Java that remembers what it was asked for."""

    def __init__(self):
        self.names = []

    def __getattr__(self, name):
        self.names.append(name)
        return len


def test_a_method_is_looked_up_once():
    asked = Asked()
    known = KnownClass(asked)
    assert [known.col("four"), known.col("seven"), known.lit("one")] == [4, 5, 3]
    assert asked.names == ["col", "lit"]


@pytest.fixture
def compiled(spark):
    """How many classes Spark compiles for a piece of work."""
    jvm = spark.sparkContext._jvm
    times = jvm.org.apache.spark.metrics.source.CodegenMetrics.METRIC_COMPILATION_TIME

    def count(work):
        before = times().getCount()
        work()
        return times().getCount() - before

    return count


def test_a_stage_is_compiled_once_and_not_by_its_first_task_again(spark, compiled):
    rows = spark.range(0, 4, 1, 2).select((F.col("id") * 73_939_133).alias("odd"))
    assert compiled(rows.collect) == 1


def test_journeys_followed_again_compile_nothing(frame, compiled):
    hops = frame(
        [("e", "hub", "pub", 2, 3, 4, ["east"]), ("e", "east", "hub", 5, 6, 7, [])], HOPS.ddl
    )
    published = frame([("e", "pub", "hub", 1, "{}", None, None)], PUBLICATIONS.ddl)
    window = TraceWindow(from_ns=0, until_ns=10)
    places = VantagePoints(brokers=("east", "hub"), links=(("hub", "east"),), publishers=("pub",))

    def follow():
        counted = sighting_statistics(hops, published, window, places).collect()
        assert {(r.statistic, r.target) for r in counted} == {
            ("published", None), ("reached", "hub"), ("reached", "east"),
        }  # fmt: skip

    assert compiled(follow) > 0
    assert compiled(follow) == 0
