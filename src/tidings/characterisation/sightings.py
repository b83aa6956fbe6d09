"""Where events were last seen on their way: what reached which broker, and what got lost between.

Every event is looked at once, with all brokers that saw it: this is also where publications that
stand in the traces more than once are found out.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidings.characterisation.journeys import Places, journeys
from tidings.characterisation.publications import CONFLICT
from tidings.traces.quarantine import REASON
from tidings.traces.window import TraceWindow

# How many events and rows of publications there are (per reason); how many events of a content each
# broker (``target``) has seen; how many were sent from a source to a target and not seen there. One
# that no broker has seen was sent by its publisher to null. How many events have more than one row
# at some broker: copies, or that came there again.
SIGHTING_STATISTICS = (
    "statistic string, reason string, publisher string, content_key bigint, source string, "
    "target string, events bigint, rows bigint"
)
PUBLISHED, REACHED, LOST, UNTOLD = "published", "reached", "lost", "untold"
REPEATED = "repeated"
_KEYS = ("statistic", REASON, "publisher", "content_key", "source", "target")


def sighting_statistics(
    hops: DataFrame, publications: DataFrame, measured: TraceWindow, places: Places
) -> DataFrame:
    """How far events came, by publisher and content: broker by broker and link by link.

    ``publications`` are the good ones, ``places`` says which brokers record hops: nobody can tell
    whether anything reached the others. A copy that a broker says it has sent to another one, which
    has never seen the event, is lost between them. How far events came is told of those published
    in ``measured``. Where events were sent over ways that ``places`` does not foresee, rows of the
    statistic ``untold`` say so: they have to be followed again, without any foreseen.
    """
    rows = journeys(hops, publications, measured, places).select(
        F.when(F.col("differ"), F.lit(CONFLICT)).alias(REASON),
        "publisher",
        "content_key",
        "events",
        "rows",
        F.inline(_cells()),
    )
    of_content = F.col("statistic").isin(REACHED, LOST)
    return (
        rows.where(F.col("target").isNull() | F.col("target").isin(*places.brokers))
        .withColumn("publisher", F.when(of_content, F.col("publisher")))
        .withColumn("content_key", F.when(of_content, F.col("content_key")).otherwise(F.lit(0)))
        .groupBy(*_KEYS)
        .agg(F.sum("events").alias("events"), F.sum("rows").alias("rows"))
    )


def _cells() -> Column:
    """What is known of a journey: that it was published, what it reached, where it got lost."""
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
    nothing = F.slice(published, 1, 0)
    return F.concat(
        F.when(F.col("rows").isNotNull(), published).otherwise(nothing),
        F.when(F.col("told"), journey).otherwise(nothing),
        F.when(F.col("untold"), F.array(cell(UNTOLD, nobody, nobody))).otherwise(nothing),
        F.when(F.col("repeated"), F.array(cell(REPEATED, nobody, nobody))).otherwise(nothing),
    )
