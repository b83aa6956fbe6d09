"""The notification probability as it was: by how long subscriptions lasted, and by moment in them.

A *pair* is an ended life of a subscription and an event that it wanted, published while it lasted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidings.traces.actions import bring_here
from tidings.traces.lives import END_OF_TIME
from tidings.traces.window import NANOSECONDS

# Per bin of stays: lives, what was published while they lasted and notified, and sums of squares.
BY_STAY = (
    "bin int, lives bigint, stay_total_s double, wanted double, received double, "
    "wanted_squares double, products double, received_squares double"
)
# Per bin of the moment of publication: since the subscribe ("f"), until the unsubscribe ("g").
BY_MOMENT = "curve string, bin int, wanted bigint, received bigint"


@dataclass(frozen=True, slots=True, kw_only=True)
class Margins:
    """Within which times of its beginning and end a life may miss events, and how finely to look.

    T_sub and T_diff: whoever published later than the one and earlier than the other is heard.
    """

    subscription_s: float
    diffusion_s: float
    bins: int = 10


def pairs_of(met: DataFrame, after_ns: int) -> DataFrame:
    """Pair every event with its life, whether it was notified while it lasted, and its moment.

    Only of lives that began after a moment: of those that the recording found there it does not
    say since when.
    """
    at = F.col("published.published_ns")
    ended = F.filter(
        "audience",
        lambda life: (
            (life.subscribed_ns <= at)
            & (at <= life.unsubscribed_ns)
            & (life.subscribed_ns > F.lit(after_ns))
            & (life.unsubscribed_ns < F.lit(END_OF_TIME))
        ),
    )

    def notified(life: Column) -> Column:
        return F.exists(
            "notices",
            lambda notice: (
                (notice.subscriber == life.subscriber)
                & (notice.notified_ns > life.subscribed_ns)
                & (notice.notified_ns < life.unsubscribed_ns)
            ),
        )

    pair = F.transform(
        ended, lambda life: F.struct(life.alias("life"), notified(life).alias("told"))
    )
    exploded = met.where("at_home").select(at.alias("published_ns"), F.explode(pair).alias("pair"))
    return exploded.select("pair.life", "pair.told", "published_ns")


def stay_edges_s(pairs: DataFrame, bins: int = 5) -> list[float]:
    """Choose where bins of stays end so that about as many pairs are in each, in seconds."""
    shares = [number / bins for number in range(1, bins)]
    quantiles = F.percentile_approx(_stay_s(), F.array(*map(F.lit, shares)), F.lit(1_000))
    (edges,) = bring_here(pairs.agg(quantiles.alias("edges")), "the history")["edges"]
    return [] if edges is None else sorted({float(edge) for edge in edges})


def _stay_s() -> Column:
    return (F.col("life.unsubscribed_ns") - F.col("life.subscribed_ns")) / F.lit(NANOSECONDS)


def by_stay(pairs: DataFrame, edges_s: Sequence[float]) -> DataFrame:
    """Sum over lives during which anything wanted was published.

    Bin k holds the stays above ``edges_s[k − 1]`` up to ``edges_s[k]``.
    """
    each = pairs.groupBy("life").agg(
        F.count(F.lit(1)).cast("double").alias("w"),
        F.count_if("told").cast("double").alias("r"),
    )
    bins = [F.when(_stay_s() > F.lit(float(edge)), 1).otherwise(0) for edge in edges_s]
    w, r = F.col("w"), F.col("r")
    return each.groupBy(sum(bins, F.lit(0)).alias("bin")).agg(
        F.count(F.lit(1)).alias("lives"),
        F.sum(_stay_s()).alias("stay_total_s"),
        F.sum(w).alias("wanted"),
        F.sum(r).alias("received"),
        F.sum(w * w).alias("wanted_squares"),
        F.sum(w * r).alias("products"),
        F.sum(r * r).alias("received_squares"),
    )


def by_moment(pairs: DataFrame, margins: Margins) -> DataFrame:
    """Count who was notified by moment of publication: f near the beginning, g near the end.

    Only what is far enough from the other end of its life is counted, so that only the one
    margin matters.
    """
    age_s = (F.col("published_ns") - F.col("life.subscribed_ns")) / F.lit(NANOSECONDS)
    left_s = (F.col("life.unsubscribed_ns") - F.col("published_ns")) / F.lit(NANOSECONDS)
    young = (age_s < margins.subscription_s) & (left_s >= margins.diffusion_s)
    old = (left_s < margins.diffusion_s) & (age_s >= margins.subscription_s)
    since = F.floor(age_s / margins.subscription_s * margins.bins)
    until = F.lit(margins.bins - 1) - F.floor(left_s / margins.diffusion_s * margins.bins)
    placed = pairs.where(young | old).select(
        F.when(young, "f").otherwise("g").alias("curve"),
        F.when(young, since).otherwise(until).cast("int").alias("bin"),
        "told",
    )
    return placed.groupBy("curve", "bin").agg(
        F.count(F.lit(1)).alias("wanted"), F.count_if("told").alias("received")
    )


def measured_shares(rows: pd.DataFrame) -> pd.DataFrame:
    """Compute D with its standard error by bin of stays, from the rows of :func:`by_stay`.

    A ratio of sums over lives, which are taken as independent; events of one life need not be.
    """
    by_bin = rows.sort_values("bin", ignore_index=True)
    share = by_bin["received"] / by_bin["wanted"]
    squares = (
        by_bin["received_squares"]
        - 2.0 * share * by_bin["products"]
        + share**2 * by_bin["wanted_squares"]
    )
    lives = by_bin["lives"].to_numpy(dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        correction = np.where(lives > 1, lives / (lives - 1.0), math.nan)
        error = np.sqrt(np.maximum(squares, 0.0) * correction) / by_bin["wanted"]
    return pd.DataFrame(
        {
            "bin": by_bin["bin"],
            "stay_mean_s": by_bin["stay_total_s"] / by_bin["lives"],
            "lives": by_bin["lives"],
            "events": by_bin["wanted"],
            "notified": share,
            "notified_se": error,
        }
    )


def measured_curves(rows: pd.DataFrame, margins: Margins) -> pd.DataFrame:
    """Compute the curves f and g with their standard errors, from the rows of :func:`by_moment`.

    f(τ) of what was published τ after the subscribe, g(τ) of what was at T_ON − T_diff + τ; a bin
    that nothing was published in is left out. Events are taken as independent.
    """
    by_bin = rows.sort_values(["curve", "bin"], ignore_index=True)
    span = np.where(by_bin["curve"] == "f", margins.subscription_s, margins.diffusion_s)
    share = by_bin["received"] / by_bin["wanted"]
    return pd.DataFrame(
        {
            "curve": by_bin["curve"],
            "from_s": by_bin["bin"] / margins.bins * span,
            "to_s": (by_bin["bin"] + 1) / margins.bins * span,
            "events": by_bin["wanted"],
            "notified": share,
            "notified_se": np.sqrt(share * (1.0 - share) / by_bin["wanted"]),
        }
    )


def area_s(curves: pd.DataFrame) -> tuple[float, float]:
    """Compute ∫f + ∫g with its standard error, in seconds; NaN where a bin of either is empty."""
    width_s = curves["to_s"] - curves["from_s"]
    for _, curve in curves.groupby("curve"):
        if not np.allclose(curve["to_s"].iloc[:-1], curve["from_s"].iloc[1:]):
            return math.nan, math.nan
    if set(curves["curve"]) != {"f", "g"} or (curves.groupby("curve")["from_s"].min() > 0).any():
        return math.nan, math.nan
    error = math.sqrt(float(((width_s * curves["notified_se"]) ** 2).sum()))
    return float((width_s * curves["notified"]).sum()), error
