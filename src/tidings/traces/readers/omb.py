"""Results of the OpenMessaging Benchmark: rates and backlog, and quantiles of the whole delay.

A result is one run, of one topic's consumers together. It has no clock: its first sample is taken
to be at its file's time. Quantiles become a histogram, whose bounds are the delays at which they
lie; of how many events they are is known from the rates.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from tidings.traces.quarantine import REASON
from tidings.traces.readers import lines
from tidings.traces.readers.pages import NOTHING_SAID, SEPARATOR, read_pages
from tidings.traces.readers.reading import Reader, Reading, candidates

TABLES = ("levels", "histograms")
PAGE = (
    "workload string, driver string, sampleRateMillis bigint, publishRate array<double>, "
    "consumeRate array<double>, backlog array<bigint>, "
    "aggregatedEndToEndLatencyQuantiles map<string, double>"
)
_EVERY_MS = 10_000  # from one sample to the next, where the result does not say
_UNTIMED = "results of the benchmark have no clock: the time of their file is taken as their begin"


def read_omb(spark: SparkSession, files: Sequence[str]) -> Reading:
    """Read candidate levels and histograms; both are called driver and workload."""
    pages = read_pages(spark, files, PAGE)
    silent = F.coalesce(F.size("page.publishRate"), F.lit(-1)) <= 0
    known = pages.withColumn(REASON, F.coalesce(F.col(REASON), F.when(silent, F.lit(NOTHING_SAID))))
    every_s = F.coalesce("page.sampleRateMillis", F.lit(_EVERY_MS)) / 1000.0
    runs = known.where(F.col(REASON).isNull()).select(
        F.concat_ws(" ", "page.driver", "page.workload").alias("name"),
        "page.*",
        "written_ns",
        every_s.alias("every_s"),
        *lines.ORIGIN,
    )
    return Reading(
        tables={
            "levels": candidates(_levels(runs), "levels", files[0]),
            "histograms": candidates(_quantiles(runs), "histograms", files[0]),
        },
        records=known.select(REASON, *lines.ORIGIN),
        noun="pages",
        separator=SEPARATOR,
        passed_over=(NOTHING_SAID,),
        notes=(_UNTIMED,),
    )


def _levels(runs: DataFrame) -> DataFrame:
    """Compute counters from rates; a backlog below zero counts as zero.

    Such a one was read at two moments.
    """
    sampled = runs.select(
        "name", "written_ns", "every_s", "publishRate", "backlog", *lines.ORIGIN,
        F.posexplode("publishRate").alias("number", "rate"),
    )  # fmt: skip
    so_far = F.slice("publishRate", F.lit(1), F.col("number") + 1)
    entered = F.round(_sum(so_far) * F.col("every_s")).try_cast("bigint")
    there = F.greatest(F.coalesce(F.get("backlog", F.col("number")), F.lit(0)), F.lit(0))
    after_ns = ((F.col("number") + 1) * F.col("every_s") * 1e9).try_cast("bigint")
    return sampled.select(
        F.col("name").alias("queue"),
        F.col(lines.FILE).alias("part"),
        F.try_add("written_ns", after_ns).alias("at_ns"),
        entered.alias("entered"),
        F.greatest(F.try_subtract(entered, there), F.lit(0)).alias("done"),
        *lines.ORIGIN,
    )


def _quantiles(runs: DataFrame) -> DataFrame:
    events = _sum(F.coalesce("consumeRate", "publishRate")) * F.col("every_s")
    delays = runs.select(
        "name", "written_ns", events.alias("total"), *lines.ORIGIN,
        F.explode("aggregatedEndToEndLatencyQuantiles").alias("percent", "ms"),
    )  # fmt: skip
    share = F.col("percent").try_cast("double") / 100.0
    counted = delays.select(
        "name",
        F.col("written_ns").alias("at_ns"),
        (F.col("ms") / 1000.0).alias("up_to_s"),
        F.round(share * F.col("total")).try_cast("bigint").alias("events"),
        F.struct(*lines.ORIGIN).alias("origin"),
    )
    # Several quantiles may lie at one delay: the last of them says how many took at most so long.
    once = counted.groupBy("name", "at_ns", "up_to_s", "origin").agg(
        F.max("events").alias("events")
    )
    return once.select(
        "name",
        F.lit("delay").alias("what"),
        F.col(f"origin.{lines.FILE}").alias("series"),
        "at_ns",
        "up_to_s",
        "events",
        "origin.*",
    )


def _sum(numbers: Column) -> Column:
    return F.aggregate(
        numbers, F.lit(0.0), lambda total, each: total + F.coalesce(each, F.lit(0.0))
    )


READER = Reader(
    about="results of the OpenMessaging Benchmark",
    tables=TABLES,
    read=lambda spark, files, _: read_omb(spark, files),
)
