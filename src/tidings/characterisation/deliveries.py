"""What reaches subscribers, how late, and how much of it in time."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidings.characterisation.cells import (
    BATCHES,
    delay_bin,
    keys_of_good_rows,
    seconds,
    summed_up,
)
from tidings.model.trace_tables import DELIVERIES
from tidings.traces.quarantine import REASON, with_reasons
from tidings.traces.window import TraceWindow

UNPUBLISHED = "its publication is not among those used"
TOO_EARLY = "it was received before it was published"
SETTLING = "published while the window settles"

# Per reason, per (subscriber, publisher, batch) and per (subscriber, bin) of the delay.
DELIVERY_STATISTICS = (
    "statistic string, reason string, subscriber string, publisher string, batch int, bin int, "
    "rows bigint, duplicates bigint, delivered bigint, on_time bigint, delay_total_s double"
)
_SETS = {
    "quality": (REASON,),
    "pairs": ("subscriber", "publisher", "batch"),
    "delays": ("subscriber", "bin"),
}


def delivery_statistics(
    deliveries: DataFrame, publications: DataFrame, measured: TraceWindow
) -> DataFrame:
    """Events delivered and delivered in time, by pair and batch, and delays by subscriber.

    ``publications`` are the good ones, every event once. On time is a delay of at most the
    lifetime. An event that a subscriber received more than once counts once, by its first arrival.
    """
    rows = _first_arrivals(deliveries, publications, measured)
    good = F.col(REASON).isNull()
    delay_ns = F.col("received_ns") - F.col("published_ns")
    rows = rows.select(
        REASON,
        "subscriber",
        "publisher",
        measured.batch(F.col("published_ns"), BATCHES).alias("batch"),
        "rows",
        F.when(good, seconds(delay_ns)).alias("delay_s"),
        F.coalesce(delay_ns <= F.col("lifetime_ns"), F.lit(True)).alias("on_time"),
    )
    rows = rows.withColumn("bin", delay_bin(F.col("delay_s")))
    keys = ("subscriber", "publisher", "batch", "bin")
    cells = (
        keys_of_good_rows(rows, *keys)
        .groupBy(REASON, *keys)
        .agg(
            F.sum("rows").alias("rows"),
            F.sum(F.when(good, F.col("rows") - 1)).alias("duplicates"),
            F.count("delay_s").alias("delivered"),
            F.count_if(good & F.col("on_time")).alias("on_time"),
            F.sum("delay_s").alias("delay_total_s"),
        )
    )
    return summed_up(cells, _SETS)


def _first_arrivals(
    deliveries: DataFrame, publications: DataFrame, measured: TraceWindow
) -> DataFrame:
    """One row per event and subscriber with its publication; what cannot be true is kept apart."""
    # Placed by event first: then neither the join nor the groupings move the rows again.
    tagged = with_reasons(deliveries, DELIVERIES)
    received = tagged.select(REASON, "event", "subscriber", "received_ns").repartition("event")
    known = ("publisher", "published_ns", "lifetime_ns")
    published = publications.select("event", *known)
    reason = F.coalesce(
        F.col(REASON),
        F.when(F.col("published_ns").isNull(), F.lit(UNPUBLISHED)),
        F.when(F.col("received_ns") < F.col("published_ns"), F.lit(TOO_EARLY)),
        F.when(~measured.holds(F.col("published_ns")), F.lit(SETTLING)),
    )
    return (
        received.join(published, "event", "left")
        .withColumn(REASON, reason)
        .groupBy("event", "subscriber", REASON, *known)
        .agg(F.min("received_ns").alias("received_ns"), F.count(F.lit(1)).alias("rows"))
    )
