"""Who may be told of an event at a moment: lives by what they want and by a bucket of time.

An event does not meet every subscription there ever was, but those that were alive in its bucket.
Buckets also cut a content that a third of all events have into pieces that many tasks can share,
and shards cut the audience of a content that everybody wants.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidings.traces.actions import bring_here

BUCKETS = 64  # at least so many where tasks must share a content that most events have
MOST_BUCKETS = 4_096
BUCKETS_OF_A_LIFE = 4  # on average: more would copy lives, fewer would meet the dead
LARGEST_AUDIENCE = 200  # of one event in one shard
END_OF_TIME = 2**63 - 1
LIFE = "struct<subscriber:string,subscription:string,subscribed_ns:bigint,unsubscribed_ns:bigint>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Buckets:
    """Equal pieces of time from ``start_ns`` on; the first and the last take what is outside."""

    start_ns: int
    width_ns: int
    count: int

    def of(self, moment_ns: Column) -> Column:
        """The number of the bucket that a moment lies in; later moments are in no earlier one."""
        number = F.call_function("div", moment_ns - F.lit(self.start_ns), F.lit(self.width_ns))
        inside = F.greatest(F.lit(0), F.least(F.lit(self.count - 1), number)).cast("int")
        return F.when(moment_ns.isNotNull(), inside)  # greatest and least pass over nulls


def choose_buckets(lives: DataFrame, start_ns: int, end_ns: int, least: int = 1) -> Buckets:
    """Buckets of which an average life covers a few, but no fewer than ``least`` altogether."""
    span = max(1, end_ns - start_ns)
    first = F.greatest(F.col("subscribed_ns"), F.lit(start_ns))
    last = F.least(F.coalesce(F.col("unsubscribed_ns"), F.lit(end_ns)), F.lit(end_ns))
    length = F.greatest(F.lit(0), last - first)
    (mean,) = bring_here(lives.agg(F.avg(length).alias("mean")), "subscriptions")["mean"]
    typical = span if mean is None or mean != mean else float(mean)
    width = min(span / least, max(span / MOST_BUCKETS, typical / BUCKETS_OF_A_LIFE))
    width_ns = max(1, int(width))
    return Buckets(start_ns=start_ns, width_ns=width_ns, count=span // width_ns + 1)


def members(groups: DataFrame, lives: DataFrame, buckets: Buckets) -> DataFrame:
    """Everybody who may be told: for what is wanted alike and each bucket, one row a life.

    ``groups`` has the distinct ``wanted`` arrays; ``lives`` the number of each filter.
    """
    ends = F.coalesce(F.col("unsubscribed_ns"), F.lit(END_OF_TIME))
    alive = F.sequence(buckets.of(F.col("subscribed_ns")), buckets.of(ends))
    interested = groups.select("wanted", F.explode("wanted").alias("number"))
    life = F.struct("subscriber", "subscription", "subscribed_ns", ends.alias("unsubscribed_ns"))
    return interested.join(lives, "number").select(
        "wanted", F.explode(alive).alias("bucket"), life.alias("life")
    )


def shards_of_groups(everybody: DataFrame) -> DataFrame:
    """In how many parts the audiences of each group are cut, so that none is large."""
    sizes = everybody.groupBy("wanted", "bucket").agg(F.count(F.lit(1)).alias("lives"))
    shards = 1 + F.call_function("div", F.max("lives"), F.lit(LARGEST_AUDIENCE))
    return sizes.groupBy("wanted").agg(
        shards.cast("int").alias("shards"), F.sum("lives").alias("lives")
    )


def shard_of(subscriber: Column, shards: Column) -> Column:
    """The part that a subscriber belongs to."""
    return F.pmod(F.xxhash64(subscriber), shards).cast("int")


def audiences(everybody: DataFrame, shards: DataFrame) -> DataFrame:
    """Lives gathered: one row for what is wanted alike, bucket and shard."""
    shard = shard_of(F.col("life.subscriber"), F.col("shards"))
    return (
        everybody.join(shards.select("wanted", "shards"), "wanted")
        .groupBy("wanted", "bucket", shard.alias("shard"))
        .agg(F.collect_list("life").alias("audience"))
    )
