"""Lives of subscriptions: from a subscribe to the next unsubscribe of the same id and process.

Whoever looks for the lives that stood at a moment looks among those of its bucket of time, never
among all that there ever were.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from tidings.traces.actions import bring_here

LIVES = (
    "subscriber string, subscription string, filter string, "
    "subscribed_ns bigint, unsubscribed_ns bigint"
)
MOST_BUCKETS = 4_096
BUCKETS_OF_A_LIFE = 4  # on average: more would copy lives, fewer would meet the dead
END_OF_TIME = 2**63 - 1


def lives(subscriptions: DataFrame) -> DataFrame:
    """Make one row for every subscribe: who, what, from when, until when (null: to the end).

    It ends at the first *later* unsubscribe: of two steps at the same moment the unsubscribe
    belongs to the life before. A second subscribe of a living subscription begins a life of its
    own, which ends with the first.
    """
    # Backwards: Spark carries what lies before along, but would begin anew for what follows.
    mine = Window.partitionBy("subscriber", "subscription").orderBy(F.desc("at_ns"))
    later = mine.rangeBetween(Window.unboundedPreceding, -1)
    ended = F.when(F.col("action") == "unsubscribe", F.col("at_ns"))
    steps = subscriptions.where(F.col("action").isin("subscribe", "unsubscribe"))
    return (
        steps.withColumn("unsubscribed_ns", F.min(ended).over(later))
        .where((F.col("action") == "subscribe") & F.col("filter").isNotNull())
        .select(
            "subscriber",
            "subscription",
            "filter",
            F.col("at_ns").alias("subscribed_ns"),
            "unsubscribed_ns",
        )
    )


def end_of_life() -> Column:
    """Give when a subscription ends, in nanoseconds; at the end of time if nobody saw it end."""
    return F.coalesce(F.col("unsubscribed_ns"), F.lit(END_OF_TIME))


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeBuckets:
    """Equal pieces of time from ``start_ns`` on; the first and the last take what is outside."""

    start_ns: int
    width_ns: int
    count: int

    def of(self, moment_ns: Column) -> Column:
        """Compute which bucket a moment lies in, by number; later moments are in no earlier one."""
        number = F.call_function("div", moment_ns - F.lit(self.start_ns), F.lit(self.width_ns))
        inside = F.greatest(F.lit(0), F.least(F.lit(self.count - 1), number)).cast("int")
        return F.when(moment_ns.isNotNull(), inside)  # greatest and least pass over nulls

    def of_life(self) -> Column:
        """List all buckets that the life of a subscription touches."""
        return F.sequence(self.of(F.col("subscribed_ns")), self.of(end_of_life()))


def choose_buckets(lives: DataFrame, start_ns: int, end_ns: int, least: int = 1) -> TimeBuckets:
    """Choose buckets of which an average life covers a few, but no fewer than ``least`` in all."""
    span = max(1, end_ns - start_ns)
    first = F.greatest(F.col("subscribed_ns"), F.lit(start_ns))
    last = F.least(F.coalesce(F.col("unsubscribed_ns"), F.lit(end_ns)), F.lit(end_ns))
    length = F.greatest(F.lit(0), last - first)
    (mean,) = bring_here(lives.agg(F.avg(length).alias("mean")), "subscriptions")["mean"]
    typical = span if mean is None or mean != mean else float(mean)
    width = min(span / least, max(span / MOST_BUCKETS, typical / BUCKETS_OF_A_LIFE))
    width_ns = max(1, int(width))
    return TimeBuckets(start_ns=start_ns, width_ns=width_ns, count=span // width_ns + 1)
