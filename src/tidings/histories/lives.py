"""Lives of subscriptions: from a subscribe to the next unsubscribe of the same id and process."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

LIVES = (
    "subscriber string, subscription string, filter string, "
    "subscribed_ns bigint, unsubscribed_ns bigint"
)


def lives(subscriptions: DataFrame) -> DataFrame:
    """One row for every subscribe: who, what, from when, until when (null: to the end).

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
