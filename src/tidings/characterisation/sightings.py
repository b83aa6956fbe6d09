"""Where events were last seen on their way: what reached which broker, and what got lost between.

Every event is looked at once, with all brokers that saw it: this is also where publications that
stand in the traces more than once are found out.
"""

from __future__ import annotations

from collections.abc import Collection

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidings.characterisation.publications import CONFLICT, by_event, content_key
from tidings.traces.quarantine import REASON
from tidings.traces.window import TraceWindow

# How many events and rows of publications there are (per reason); how many events of a content each
# broker (``target``) has seen; how many were sent from a source to a target and not seen there. One
# that no broker has seen was sent by its publisher to null.
SIGHTING_STATISTICS = (
    "statistic string, reason string, publisher string, content_key bigint, source string, "
    "target string, events bigint, rows bigint"
)
PUBLISHED, REACHED, LOST = "published", "reached", "lost"
_KEYS = ("statistic", REASON, "publisher", "content_key", "source", "target")


def sighting_statistics(
    hops: DataFrame, publications: DataFrame, measured: TraceWindow, brokers: Collection[str]
) -> DataFrame:
    """How far events came, by publisher and content: broker by broker and link by link.

    ``publications`` are the good ones, ``brokers`` those that record hops: nobody can tell whether
    anything reached the others. A copy that a broker says it has sent to another one, which has
    never seen the event, is lost between them. How far events came is told of those published in
    ``measured``.
    """
    published = by_event(
        publications.withColumn("content_key", content_key()),
        "publisher",
        "content_key",
        "published_ns",
    )
    rows = published.join(_seen(hops), "event", "left").select(
        F.when(F.col("differ"), F.lit(CONFLICT)).alias(REASON),
        "publisher",
        "content_key",
        "copies",
        F.inline(_cells(measured.holds(F.col("published_ns")) & ~F.col("differ"))),
    )
    of_content = F.col("statistic") != PUBLISHED
    return (
        rows.where(F.col("target").isNull() | F.col("target").isin(*brokers))
        .withColumn("publisher", F.when(of_content, F.col("publisher")))
        .withColumn("content_key", F.when(of_content, F.col("content_key")).otherwise(F.lit(0)))
        .groupBy(*_KEYS)
        .agg(F.count(F.lit(1)).alias("events"), F.sum("copies").alias("rows"))
    )


def _seen(hops: DataFrame) -> DataFrame:
    """Per event, the brokers that saw it and the links it was sent over: sets, so as to be bounded.

    For this a row need only name event and broker; its times may be wrong.
    """
    named = (F.col("event") != "") & (F.col("broker") != "")
    known = F.filter("sent_to", lambda name: name.isNotNull())
    sent = F.transform(known, lambda name: _way(F.col("broker"), name))
    return (
        hops.where(named)
        .select("event", "broker", sent.alias("sent"))
        .repartition("event")
        .groupBy("event")
        .agg(
            F.collect_set("broker").alias("brokers"),
            F.array_distinct(F.flatten(F.collect_set("sent"))).alias("sent"),
        )
    )


def _way(source: Column, target: Column) -> Column:
    return F.struct(source.alias("source"), target.alias("target"))


def _cells(counts: Column) -> Column:
    """What is known of one event: that it was published, what it reached, where it got lost."""
    nobody = F.lit(None).cast("string")

    def cell(statistic: str, source: Column, target: Column) -> Column:
        return F.struct(
            F.lit(statistic).alias("statistic"), source.alias("source"), target.alias("target")
        )

    reached = F.transform("brokers", lambda broker: cell(REACHED, nobody, broker))
    missed = F.filter("sent", lambda way: ~F.array_contains("brokers", way["target"]))
    lost = F.transform(missed, lambda way: cell(LOST, way["source"], way["target"]))
    nowhere = F.array(cell(LOST, F.col("publisher"), nobody))
    journey = F.when(F.col("brokers").isNull(), nowhere).otherwise(F.concat(reached, lost))
    published = F.array(cell(PUBLISHED, nobody, nobody))
    return F.concat(published, F.when(counts, journey).otherwise(F.slice(published, 1, 0)))
