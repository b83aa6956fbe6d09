"""Who may be notified of an event at a moment: lives by what they want and by a bucket of time.

An event does not meet every subscription there ever was, but those that were alive in its bucket.
Buckets also cut a content that a third of all events have into pieces that many tasks can share,
and shards cut the audience of a content that everybody wants.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidings.traces.lives import TimeBuckets, end_of_life

BUCKETS = 64  # at least so many where tasks must share a content that most events have
LARGEST_AUDIENCE = 200  # of one event in one shard
LIFE = "struct<subscriber:string,subscription:string,subscribed_ns:bigint,unsubscribed_ns:bigint>"


def members(groups: DataFrame, lives: DataFrame, buckets: TimeBuckets) -> DataFrame:
    """List everybody who may be notified: for what is wanted alike and each bucket, a row per life.

    ``groups`` has the distinct ``wanted`` arrays; ``lives`` the number of each filter.
    """
    interested = groups.select("wanted", F.explode("wanted").alias("number"))
    life = F.struct(
        "subscriber", "subscription", "subscribed_ns", end_of_life().alias("unsubscribed_ns")
    )
    return interested.join(lives, "number").select(
        "wanted", F.explode(buckets.of_life()).alias("bucket"), life.alias("life")
    )


def shards_of_groups(everybody: DataFrame) -> DataFrame:
    """Compute in how many parts the audiences of each group are cut, so that none is large."""
    sizes = everybody.groupBy("wanted", "bucket").agg(F.count(F.lit(1)).alias("lives"))
    shards = 1 + F.call_function("div", F.max("lives"), F.lit(LARGEST_AUDIENCE))
    return sizes.groupBy("wanted").agg(
        shards.cast("int").alias("shards"), F.sum("lives").alias("lives")
    )


def shard_of(subscriber: Column, shards: Column) -> Column:
    """Compute the part that a subscriber belongs to."""
    return F.pmod(F.xxhash64(subscriber), shards).cast("int")


def audiences(everybody: DataFrame, shards: DataFrame) -> DataFrame:
    """Gather lives of subscriptions: one row for what is wanted alike, bucket and shard."""
    shard = shard_of(F.col("life.subscriber"), F.col("shards"))
    return (
        everybody.join(shards.select("wanted", "shards"), "wanted")
        .groupBy("wanted", "bucket", shard.alias("shard"))
        .agg(F.collect_list("life").alias("audience"))
    )
