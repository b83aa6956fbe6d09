"""How subscriptions and publications spread over the brokers: when each broker had which."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from tidings.characterisation.count.cells import delay_bin, seconds
from tidings.traces.window import TraceWindow

# One row for each broker that something reached: what it was, where and when it began, how long it
# took.
SPREADS = "spread string, origin string, begun_ns bigint, broker string, delay_s double"
# Per origin, and per origin and bin of the delay grid, of spreads that reached all that any from
# there did: of each the mean and the longest delay to other brokers. Others are merely counted.
# Per part of the recording ("parts", by ``bin``) the longest of all: how the worst may scatter.
SPREAD_STATISTICS = (
    "statistic string, origin string, bin int, spreads bigint, reached bigint, partial bigint, "
    "nowhere bigint, cut_off bigint, mean_total_s double, mean_squares double, "
    "longest_total_s double, longest_squares double, most_longest_s double"
)
# Per origin and moment after the beginning: the share of its brokers that spreads had reached.
REACHED_BY = "origin string, place int, spreads bigint, total double, squares double"
PARTS = 200  # of a recording: what waited in the same crowd is mostly in the same one
_ROUNDING = 1e-9  # of a moment: bins of the delay grid are as kind to what lies on their edges
# One row: how many couples there are, and the mean of d over them for every length of stay.
COUPLE_SHARES = "couples bigint, notified array<double>"


def subscription_spreads(subscriptions: DataFrame) -> DataFrame:
    """Find when each broker first learnt of a subscription, after its subscribe; good rows only.

    A broker that learns again of a subscription that was renewed counts from the last subscribe.
    """
    mine = Window.partitionBy("subscriber", "subscription").orderBy("at_ns", "turn")
    so_far = mine.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    begins = F.col("action") == "subscribe"
    steps = (
        subscriptions.where(F.col("action").isin("subscribe", "learnt"))
        .withColumn("turn", F.when(begins, 0).otherwise(1))
        .withColumn("begun_ns", F.last(F.when(begins, F.col("at_ns")), True).over(so_far))
        .withColumn("origin", F.last(F.when(begins, F.col("broker")), True).over(so_far))
    )
    spread = F.to_json(F.array("subscriber", "subscription", F.col("begun_ns").cast("string")))
    learnt = steps.where((F.col("action") == "learnt") & F.col("begun_ns").isNotNull())
    return _first(
        learnt.select(
            spread.alias("spread"),
            "origin",
            "begun_ns",
            "broker",
            (F.col("at_ns") - F.col("begun_ns")).alias("delay_ns"),
        )
    )


def publication_spreads(hops: DataFrame, publications: DataFrame) -> DataFrame:
    """Find when each broker first had an event, after its first publication; good rows only.

    Events go only where they are wanted: all brokers are reached only by those that somebody behind
    each of them wants.
    """
    first = publications.groupBy("event").agg(F.min(F.struct("published_ns", "broker")).alias("it"))
    published = first.select(
        "event", F.col("it.broker").alias("origin"), F.col("it.published_ns").alias("begun_ns")
    )
    delay = (F.col("arrived_ns") - F.col("begun_ns")).alias("delay_ns")
    arrived = hops.select("event", "broker", "arrived_ns").join(published, "event")
    spread = F.col("event").alias("spread")
    return _first(arrived.select(spread, "origin", "begun_ns", "broker", delay))


def _first(rows: DataFrame) -> DataFrame:
    first = rows.where(F.col("delay_ns") >= 0).groupBy("spread", "origin", "begun_ns", "broker")
    delay_s = seconds(F.min("delay_ns")).alias("delay_s")
    return first.agg(delay_s)


def spread_statistics(spreads: DataFrame, window: TraceWindow) -> DataFrame:
    """Sum up spreads by origin, count the brokers reached by delay, and find the slowest.

    The origin itself is not reached. What comes less far than other spreads from there (wanted by
    fewer, covered, or ended on the way) says nothing of the time until all have it: it is counted
    as ``partial``, or as ``nowhere`` if no other broker had it. What begins so late that recording
    would miss some of the slowest from there is ``cut_off``: to count those of it that were fast
    enough would make all seem faster.
    """
    each = _each(spreads, window.until_ns)
    by_origin = _by_origin(each).withColumn("statistic", F.lit("origins"))
    whole = each.where("whole")
    delays = whole.select("origin", F.explode("delays_s").alias("delay_s"))
    by_delay = delays.groupBy("origin", delay_bin(F.col("delay_s")).alias("bin")).agg(
        F.count(F.lit(1)).alias("reached")
    )
    by_part = whole.groupBy(window.batch(F.col("begun_ns"), PARTS).cast("int").alias("bin")).agg(
        F.max(F.array_max("delays_s")).alias("most_longest_s")
    )
    together = by_origin
    for name, rows in (("reach", by_delay), ("parts", by_part)):
        labelled = rows.withColumn("statistic", F.lit(name))
        together = together.unionByName(labelled, allowMissingColumns=True)
    return together.select(*(part.split()[0] for part in SPREAD_STATISTICS.split(", ")))


def reached_by(spreads: DataFrame, window: TraceWindow, times_s: Sequence[float]) -> DataFrame:
    """Sum up shares of brokers that spreads had reached at times since they began; ``REACHED_BY``.

    Over the spreads that :func:`spread_statistics` counts whole.
    """
    moments = F.array(*(F.lit(float(time_s) * (1.0 + _ROUNDING)) for time_s in times_s))

    def share(moment: Column) -> Column:
        return F.size(F.filter("delays_s", lambda delay: delay <= moment)) / F.col("reached")

    shares = F.posexplode(F.transform(moments, share)).alias("place", "share")
    each = _each(spreads, window.until_ns).where("whole").select("origin", shares)
    return each.groupBy("origin", "place").agg(
        F.count(F.lit(1)).alias("spreads"),
        F.sum("share").alias("total"),
        F.sum(F.col("share") ** 2).alias("squares"),
    )


def whole_delays(spreads: DataFrame, window: TraceWindow) -> DataFrame:
    """List origin, broker and delay_s, for every other broker that whole spreads reached."""
    elsewhere = spreads.where(F.col("broker") != F.col("origin"))
    whole = _each(spreads, window.until_ns).where("whole").select("spread", "origin")
    return elsewhere.join(whole, ["spread", "origin"]).select("origin", "broker", "delay_s")


def _each(spreads: DataFrame, until_ns: int) -> DataFrame:
    """Make one row a spread: its delays to other brokers, whether it came in time and was whole."""
    elsewhere = F.when(F.col("broker") != F.col("origin"), F.col("delay_s"))
    each = spreads.groupBy("spread", "origin").agg(
        F.min("begun_ns").alias("begun_ns"), F.collect_list(elsewhere).alias("delays_s")
    )
    each = each.withColumn("reached", F.size("delays_s"))
    # The greatest struct is the slowest of those that came furthest.
    furthest = F.max(F.struct("reached", F.array_max("delays_s").alias("longest_s")))
    each = each.join(F.broadcast(each.groupBy("origin").agg(furthest.alias("furthest"))), "origin")
    left_s = seconds(F.lit(until_ns) - F.col("begun_ns"))
    seen = F.coalesce(left_s >= F.col("furthest.longest_s"), F.lit(True))
    came = (F.col("reached") > 0) & (F.col("reached") == F.col("furthest.reached"))
    return each.withColumns({"seen": seen, "whole": seen & came})


def _by_origin(each: DataFrame) -> DataFrame:
    whole, seen = F.col("whole"), F.col("seen")
    total = F.aggregate("delays_s", F.lit(0.0), lambda sum_s, delay_s: sum_s + delay_s)
    mean_s = F.when(whole, total / F.col("reached"))
    longest_s = F.when(whole, F.array_max("delays_s"))
    return each.groupBy("origin").agg(
        F.count_if(whole).alias("spreads"),
        F.sum(F.when(whole, F.col("reached")).otherwise(0)).alias("reached"),
        F.count_if((F.col("reached") > 0) & seen & ~whole).alias("partial"),
        F.count_if((F.col("reached") == 0) & seen).alias("nowhere"),
        F.count_if(~seen).alias("cut_off"),
        F.sum(mean_s).alias("mean_total_s"),
        F.sum(mean_s**2).alias("mean_squares"),
        F.sum(longest_s).alias("longest_total_s"),
        F.sum(longest_s**2).alias("longest_squares"),
        F.max(longest_s).alias("most_longest_s"),
    )


def couple_shares(
    subscriptions: DataFrame, publications: DataFrame, window: TraceWindow, stays_s: Sequence[float]
) -> DataFrame:
    """Compute E[(T − X)⁺]/T for stays T, over couples of equal weight; ``COUPLE_SHARES``.

    Both delays of a couple are taken as independent, each with its law as it was seen, in bins of
    the delay grid of which each counts by its mean: exact but for what lies within a bin of T.
    """
    there = _laws(subscriptions, window)
    back = _laws(publications, window).select(
        F.col("origin").alias("broker"),
        F.col("broker").alias("origin"),
        F.col("mean_s").alias("back_s"),
        F.col("share").alias("back_share"),
    )
    delay_s = F.col("mean_s") + F.col("back_s")
    share = F.col("share") * F.col("back_share")
    left = [
        F.sum(share * F.greatest(F.lit(float(stay_s)) - delay_s, F.lit(0.0))) / F.lit(float(stay_s))
        for stay_s in stays_s
    ]
    each = there.join(back, ["origin", "broker"]).groupBy("origin", "broker")
    named = {f"at{place}": column for place, column in enumerate(left)}
    shares = each.agg(F.count(F.lit(1)), *(column.alias(name) for name, column in named.items()))
    means = F.array(*(F.avg(name) for name in named)).cast("array<double>")
    return shares.agg(F.count(F.lit(1)).alias("couples"), means.alias("notified"))


def _laws(spreads: DataFrame, window: TraceWindow) -> DataFrame:
    """Find the distribution of delays from each origin to each broker: means and shares of bins."""
    binned = whole_delays(spreads, window).groupBy(
        "origin", "broker", delay_bin(F.col("delay_s")).alias("bin")
    )
    counted = binned.agg(F.count(F.lit(1)).alias("count"), F.avg("delay_s").alias("mean_s"))
    total = counted.groupBy("origin", "broker").agg(F.sum("count").alias("total"))
    share = (F.col("count") / F.col("total")).alias("share")
    return counted.join(total, ["origin", "broker"]).select("origin", "broker", "mean_s", share)
