"""The exact notification probability d from measured delays, couple by couple.

A couple is a broker where subscriptions began and another where publications did. What is published
there is notified if its subscription has come there, after D_sub, and if it comes back, after
D_diff, before the stay T is over: d = E[(T − D_sub − D_diff)⁺]/T.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidings.characterisation.cells import delay_bin
from tidings.characterisation.spreading import whole_delays
from tidings.traces.window import TraceWindow

# One row: how many couples there are, and the mean of d over them for every length of stay.
COUPLE_SHARES = "couples bigint, notified array<double>"


def couple_shares(
    subscriptions: DataFrame, publications: DataFrame, window: TraceWindow, stays_s: Sequence[float]
) -> DataFrame:
    """E[(T − X)⁺]/T for stays T, over couples of equal weight; ``COUPLE_SHARES``.

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
    found = each.agg(F.count(F.lit(1)), *(column.alias(name) for name, column in named.items()))
    means = F.array(*(F.avg(name) for name in named)).cast("array<double>")
    return found.agg(F.count(F.lit(1)).alias("couples"), means.alias("notified"))


def read_couples(rows: pd.DataFrame) -> tuple[int, list[float | None]]:
    """How many couples there are, and d for every stay; None where there is no couple."""
    couples, notified = rows.iloc[0]
    return int(couples), [None if value is None or value != value else value for value in notified]


def _laws(spreads: DataFrame, window: TraceWindow) -> DataFrame:
    """The law of delays from each origin to each broker: bins, their means and shares."""
    binned = whole_delays(spreads, window).groupBy(
        "origin", "broker", delay_bin(F.col("delay_s")).alias("bin")
    )
    counted = binned.agg(F.count(F.lit(1)).alias("count"), F.avg("delay_s").alias("mean_s"))
    total = counted.groupBy("origin", "broker").agg(F.sum("count").alias("total"))
    share = (F.col("count") / F.col("total")).alias("share")
    return counted.join(total, ["origin", "broker"]).select("origin", "broker", "mean_s", share)
