"""What reaches subscribers, how late, and how much of it in time."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidings.characterisation.count.cells import delay_bin, keys_of_good_rows, seconds, summed_up
from tidings.characterisation.count.churners import Churners
from tidings.characterisation.statistics import BATCHES, SETTLING, TOO_EARLY, UNASKED, UNPUBLISHED
from tidings.model.trace_tables import DELIVERIES
from tidings.traces.quarantine import REASON, with_reasons
from tidings.traces.window import TraceWindow

_OF_PUBLICATION = ("publisher", "published_ns", "lifetime_ns")
# Per reason, per (subscriber, publisher, batch) and per (subscriber, bin) of the delay. Wanted is
# told of pairs whose subscriber comes and goes: what was published while it was subscribed.
DELIVERY_STATISTICS = (
    "statistic string, reason string, subscriber string, publisher string, batch int, bin int, "
    "rows bigint, duplicates bigint, wanted bigint, delivered bigint, on_time bigint, "
    "delay_total_s double"
)
_SETS = {
    "quality": (REASON,),
    "pairs": ("subscriber", "publisher", "batch"),
    "delays": ("subscriber", "bin"),
}
_BAD = "\N{SYMBOL FOR SUBSTITUTE} "  # before what stands for the event of a bad row


def delivery_statistics(
    deliveries: DataFrame,
    publications: DataFrame,
    measured: TraceWindow,
    churners: Churners | None = None,
) -> DataFrame:
    """Events delivered and delivered in time, by pair and batch, and delays by subscriber.

    ``publications`` are the good ones, every event once. On time is a delay of at most the
    lifetime. An event that a subscriber received more than once counts once, by its first arrival.
    What one of the ``churners`` received counts if it was wanted, and came before that stay ended.
    """
    rows = _first_arrivals(deliveries, publications, measured, churners)
    good = F.col(REASON).isNull()
    delay_ns = F.col("received_ns") - F.col("published_ns")
    rows = rows.select(
        REASON,
        "subscriber",
        "publisher",
        measured.batch(F.col("published_ns"), BATCHES).alias("batch"),
        "rows",
        F.when(good, F.col("until_ns")).isNotNull().alias("wanted"),
        F.when(good & F.col("counts"), seconds(delay_ns)).alias("delay_s"),
        F.coalesce(delay_ns <= F.col("lifetime_ns"), F.lit(True)).alias("on_time"),
    )
    rows = rows.withColumn("bin", delay_bin(F.col("delay_s")))
    keys = ("subscriber", "publisher", "batch", "bin")
    cells = (
        keys_of_good_rows(rows, *keys)
        .groupBy(REASON, *keys)
        .agg(
            F.sum("rows").alias("rows"),
            F.sum(F.when(good, F.greatest(F.col("rows") - 1, F.lit(0)))).alias("duplicates"),
            F.count_if("wanted").alias("wanted"),
            F.count("delay_s").alias("delivered"),
            F.count_if(F.col("delay_s").isNotNull() & F.col("on_time")).alias("on_time"),
            F.sum("delay_s").alias("delay_total_s"),
        )
    )
    of_pairs = F.when(F.col("statistic") == "pairs", F.col("wanted"))
    return summed_up(cells, _SETS).withColumn("wanted", of_pairs)


def checked_deliveries(
    received: DataFrame, publications: DataFrame, measured: TraceWindow
) -> DataFrame:
    """Deliveries that have reasons, with their publication and what is wrong beside it.

    ``publications`` has each event that can be used once.
    """
    reason = F.coalesce(
        F.col(REASON),
        F.when(F.col("published_ns").isNull(), F.lit(UNPUBLISHED)),
        F.when(F.col("received_ns") < F.col("published_ns"), F.lit(TOO_EARLY)),
        F.when(~measured.holds(F.col("published_ns")), F.lit(SETTLING)),
    )
    published = publications.select("event", *_OF_PUBLICATION)
    return received.join(published, "event", "left").withColumn(REASON, reason)


def _first_arrivals(
    deliveries: DataFrame, publications: DataFrame, measured: TraceWindow, churners: Churners | None
) -> DataFrame:
    """One row per event and subscriber with its publication; what cannot be true is kept apart.

    Also for an event that a churner wanted and did not receive. ``until_ns`` is when the stay ended
    in which a churner wanted it, ``counts`` whether it was received by then.
    """
    tagged = with_reasons(deliveries, DELIVERIES)
    nothing = F.lit(None).cast("bigint")
    received = tagged.select(
        REASON, "event", "subscriber", "received_ns", nothing.alias("until_ns")
    )
    if churners is not None:
        wanted = churners.pairs.withColumns({REASON: F.lit(None), "received_ns": nothing})
        received = received.unionByName(wanted)
    # Rows that cannot be used meet nothing: all that have lost their ids would be one task's.
    anywhere = F.xxhash64("event", "subscriber", "received_ns").cast("string")
    met = F.when(F.col(REASON).isNull(), F.col("event")).otherwise(F.concat(F.lit(_BAD), anywhere))
    # Placed by event first: then neither the join nor the groupings move the rows again.
    received = received.withColumn("event", met).repartition("event")
    rows = (
        checked_deliveries(received, publications, measured)
        .groupBy("event", "subscriber", REASON, *_OF_PUBLICATION)
        .agg(
            F.min("received_ns").alias("received_ns"),
            F.max("until_ns").alias("until_ns"),
            F.count_if(F.col("until_ns").isNull()).alias("rows"),
        )
    )
    if churners is None:
        return rows.withColumn("counts", F.lit(True))
    known_churners = churners.names.withColumn("is_churner", F.lit(True))
    rows = rows.join(known_churners, "subscriber", "left")
    unasked = F.col("is_churner") & F.col("until_ns").isNull()
    in_stay = F.coalesce(F.col("received_ns") < F.col("until_ns"), F.col("is_churner").isNull())
    return rows.withColumns(
        {
            REASON: F.coalesce(F.col(REASON), F.when(unasked, F.lit(UNASKED))),
            "counts": in_stay,
        }
    )
