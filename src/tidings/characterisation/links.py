"""How long links take and how much they lose: from probes, or from what brokers saw."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidings.characterisation.cells import (
    SAMPLE,
    delay_bin,
    keys_of_good_rows,
    sample_sums,
    seconds,
)
from tidings.characterisation.clocks import APPARENT, apparent_sums
from tidings.model.trace_tables import DELIVERIES, PROBES
from tidings.traces.quarantine import REASON, with_reasons

# Per (source, target, bin) of the delay, or per reason; ``lost`` is null where nobody can tell.
LINK_STATISTICS = (
    f"reason string, source string, target string, bin int, rows bigint, lost bigint, {SAMPLE}"
)
# The same of what crossed links, with times by the clocks of both ends as they are.
CROSSING_STATISTICS = f"{LINK_STATISTICS}, {APPARENT}"


def probe_statistics(probes: DataFrame) -> DataFrame:
    """Delay and losses of every directed link that was probed, in one reading."""
    delay_s = seconds(F.col("received_ns") - F.col("sent_ns"))
    rows = with_reasons(probes, PROBES).select(
        REASON,
        "source",
        "target",
        F.when(F.col(REASON).isNull(), delay_s).alias("delay_s"),
    )
    rows = rows.withColumn("bin", delay_bin(F.col("delay_s")))
    keys = ("source", "target", "bin")
    return (
        keys_of_good_rows(rows, *keys)
        .groupBy(REASON, *keys)
        .agg(
            F.count(F.lit(1)).alias("rows"),
            F.count_if(F.col("delay_s").isNull() & F.col(REASON).isNull()).alias("lost"),
            *sample_sums(F.col("delay_s")),
        )
    )


def crossing_statistics(sent: DataFrame, arrived: DataFrame) -> DataFrame:
    """Delay and losses of links from what both of their ends recorded.

    Reads ``sent`` (event, source, target, at_ns) and ``arrived`` (event, source, target, at_ns).
    A row of ``sent`` that names its target and has no arrival was lost; one that names none (null)
    meets whatever arrived from its source, and tells delays only. Where clocks disagree, an event
    may seem to arrive before it left: that is no delay, counted as ``early``, and tells of clocks.
    """
    from_end, to_end = sent.alias("from_end"), arrived.alias("to_end")
    same = (
        (F.col("from_end.event") == F.col("to_end.event"))
        & (F.col("from_end.source") == F.col("to_end.source"))
        & (F.col("from_end.target").isNull() | (F.col("from_end.target") == F.col("to_end.target")))
    )
    rows = from_end.join(to_end, same, "left").select(
        F.lit(None).cast("string").alias(REASON),
        F.col("from_end.source").alias("source"),
        F.coalesce("from_end.target", "to_end.target").alias("target"),
        F.col("from_end.target").isNotNull().alias("named"),
        seconds(F.col("to_end.at_ns") - F.col("from_end.at_ns")).alias("delay_s"),
    )
    possible = F.when(F.col("delay_s") >= 0, F.col("delay_s"))
    lost = F.when(F.col("named"), F.col("delay_s").isNull().cast("bigint"))
    return (
        rows.where(F.col("target").isNotNull())
        .groupBy(REASON, "source", "target", delay_bin(possible).alias("bin"))
        .agg(
            F.count(F.lit(1)).alias("rows"),
            F.sum(lost).alias("lost"),
            *sample_sums(possible),
            *apparent_sums(F.col("delay_s")),
        )
    )


def sent_by_brokers(hops: DataFrame) -> DataFrame:
    """What good hops say was sent over links: one row per copy and neighbour, as ``sent`` above."""
    targets = F.explode_outer("sent_to").alias("target")
    return hops.select(
        "event", F.col("broker").alias("source"), targets, F.col("left_ns").alias("at_ns")
    )


def arrived_at_brokers(hops: DataFrame) -> DataFrame:
    """What good hops say arrived over links, as ``arrived`` above."""
    return hops.select(
        "event",
        F.col("came_from").alias("source"),
        F.col("broker").alias("target"),
        F.col("arrived_ns").alias("at_ns"),
    )


def arrived_at_subscribers(deliveries: DataFrame) -> DataFrame:
    """First arrivals at subscribers whose home is recorded, as ``arrived`` above."""
    return (
        with_reasons(deliveries, DELIVERIES)
        .where(F.col(REASON).isNull() & F.col("broker").isNotNull())
        .groupBy("event", F.col("broker").alias("source"), F.col("subscriber").alias("target"))
        .agg(F.min("received_ns").alias("at_ns"))
    )
