"""Count delays, losses, losses in a row and clock differences from probes."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as Rows
from pyspark.sql import functions as F

from tidings.characterisation.count.cells import delay_bin, keys_of_good_rows, sample_sums, seconds
from tidings.characterisation.statistics import BATCHES
from tidings.model.trace_tables import PROBES
from tidings.traces.quarantine import REASON, with_reasons
from tidings.traces.window import TraceWindow

MOST_APART_S = 86_400.0  # clocks that are right but for their time zone are half a day apart


def clock_statistics(crossings: DataFrame) -> DataFrame:
    """Apparent delays of every direction, in seconds; below 0 where clocks disagree.

    Reads ``source``, ``target``, ``sent_ns`` and ``received_ns``, by the clocks of either end; bad
    rows too, for it is the impossible ones that tell of clocks.
    """
    apparent_s = seconds(F.col("received_ns") - F.col("sent_ns"))
    named = (F.col("source") != "") & (F.col("target") != "") & (F.col("sent_ns") >= 0)
    possible = (F.col("received_ns") >= 0) & (apparent_s >= -MOST_APART_S)
    return (
        crossings.where(named & possible)
        .groupBy("source", "target")
        .agg(F.count(F.lit(1)).alias("count"), *apparent_sums(apparent_s))
    )


def apparent_sums(apparent_s: Column) -> list[Column]:
    """The aggregates of :data:`APPARENT`; rows whose value is null do not count.

    Nor do those that ended more than a day before they began: no clock is that wrong, but a time
    may be damaged.
    """
    apparent_s = F.when(apparent_s >= -MOST_APART_S, apparent_s)
    return [
        F.count_if(apparent_s < 0).alias("early"),
        F.min(apparent_s).alias("least_s"),
        F.sum(apparent_s).alias("apparent_total_s"),
        F.sum(apparent_s * apparent_s).alias("apparent_squares"),
    ]


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


# Per (source, target, batch): probes that follow another one, losses among them, probes that follow
# a loss, losses among these; whether the first and the last of the batch were lost; and how many
# rows are copies, which count nowhere else.
LOSS_RUNS = (
    "source string, target string, batch int, following bigint, lost bigint, after_loss bigint, "
    "lost_after_loss bigint, first_lost boolean, last_lost boolean, duplicates bigint"
)


def loss_run_statistics(probes: DataFrame, window: TraceWindow) -> DataFrame:
    """How often a loss follows a loss, by directed link, in the order in which probes were sent.

    Probes are put in order within a link *and* a batch; whoever reads this adds the steps from one
    batch to the next from their first and last.
    """
    good = with_reasons(probes, PROBES).where(F.col(REASON).isNull())
    rows = good.select(
        "source",
        "target",
        window.piece(F.col("sent_ns"), BATCHES).alias("batch"),
        "sent_ns",
        "received_ns",
        F.col("received_ns").isNull().alias("is_lost"),
    )
    link = ("source", "target", "batch")
    ordered = Rows.partitionBy(*link).orderBy("sent_ns", "received_ns")
    times = F.struct("sent_ns", "received_ns")
    is_copy = times.eqNullSafe(F.lag(times).over(ordered))
    # What follows a copy follows the row itself as well: they were lost, or not, alike.
    after = F.when(~F.col("is_copy"), F.lag("is_lost").over(ordered))
    stepped = rows.withColumn("is_copy", is_copy).withColumn("after", after)
    return stepped.groupBy(*link).agg(
        F.count("after").alias("following"),
        F.count_if(F.col("after").isNotNull() & F.col("is_lost")).alias("lost"),
        F.count_if(F.col("after")).alias("after_loss"),
        F.count_if(F.col("after") & F.col("is_lost")).alias("lost_after_loss"),
        F.min_by("is_lost", "sent_ns").alias("first_lost"),
        F.max_by("is_lost", "sent_ns").alias("last_lost"),
        F.count_if("is_copy").alias("duplicates"),
    )
