"""The notification probability as it was: by how long subscriptions lasted."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidings.histories.audiences import END_OF_TIME
from tidings.traces.window import NANOSECONDS

# Per bin of stays: lives, what was published while they lasted and notified, and sums of squares.
BY_STAY = (
    "bin int, lives bigint, stay_total_s double, wanted double, received double, "
    "wanted_squares double, products double, received_squares double"
)


def by_stay(met: DataFrame, edges_s: Sequence[float]) -> DataFrame:
    """Sums over lives that ended and during which anything wanted was published.

    Bin k holds the stays above ``edges_s[k − 1]`` up to ``edges_s[k]``.
    """
    at = F.col("published.published_ns")
    ended = F.filter(
        "audience",
        lambda life: (
            (life.subscribed_ns <= at)
            & (at <= life.unsubscribed_ns)
            & (life.unsubscribed_ns < F.lit(END_OF_TIME))
        ),
    )

    def told(life: Column) -> Column:
        return F.exists(
            "notices",
            lambda notice: (
                (notice.subscriber == life.subscriber)
                & (notice.notified_ns > life.subscribed_ns)
                & (notice.notified_ns < life.unsubscribed_ns)
            ),
        )

    pairs = met.where("at_home").select(
        F.explode(
            F.transform(ended, lambda life: F.struct(life.alias("life"), told(life).alias("told")))
        ).alias("pair")
    )
    each = pairs.groupBy("pair.life").agg(
        F.count(F.lit(1)).cast("double").alias("w"),
        F.count_if("pair.told").cast("double").alias("r"),
    )
    stay_s = (F.col("life.unsubscribed_ns") - F.col("life.subscribed_ns")) / F.lit(NANOSECONDS)
    bins = [F.when(stay_s > F.lit(float(edge)), 1).otherwise(0) for edge in edges_s]
    w, r = F.col("w"), F.col("r")
    return each.groupBy(sum(bins, F.lit(0)).alias("bin")).agg(
        F.count(F.lit(1)).alias("lives"),
        F.sum(stay_s).alias("stay_total_s"),
        F.sum(w).alias("wanted"),
        F.sum(r).alias("received"),
        F.sum(w * w).alias("wanted_squares"),
        F.sum(w * r).alias("products"),
        F.sum(r * r).alias("received_squares"),
    )


def measured_shares(rows: pd.DataFrame) -> pd.DataFrame:
    """D with its standard error by bin of stays, from the rows of :func:`by_stay`.

    A ratio of sums over lives, which are taken as independent; events of one life need not be.
    """
    found = rows.sort_values("bin", ignore_index=True)
    share = found["received"] / found["wanted"]
    squares = (
        found["received_squares"]
        - 2.0 * share * found["products"]
        + share**2 * found["wanted_squares"]
    )
    lives = found["lives"].to_numpy(dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        correction = np.where(lives > 1, lives / (lives - 1.0), math.nan)
        error = np.sqrt(np.maximum(squares, 0.0) * correction) / found["wanted"]
    return pd.DataFrame(
        {
            "bin": found["bin"],
            "stay_mean_s": found["stay_total_s"] / found["lives"],
            "lives": found["lives"],
            "events": found["wanted"],
            "notified": share,
            "notified_se": error,
        }
    )
