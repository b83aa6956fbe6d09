"""Count subscriptions, and what subscribers that come and go wanted while subscribed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidings.characterisation.count.cells import keys_of_good_rows, small_frame, surplus
from tidings.characterisation.count.publications import content_key
from tidings.characterisation.fit.contents import read_contents
from tidings.characterisation.fit.subscribers import changed_subscribers, parse_filter
from tidings.model.matching import match_matrix
from tidings.model.trace_tables import SUBSCRIPTIONS
from tidings.traces.lives import BUCKETS_OF_A_LIFE, Buckets, choose_buckets, end_of_life, lives
from tidings.traces.quarantine import REASON, with_reasons
from tidings.traces.window import TraceWindow

SUBSCRIPTION_STATISTICS = (
    "reason string, subscriber string, broker string, action string, filter string, "
    "rows bigint, duplicates bigint, first_ns bigint, last_ns bigint"
)


def subscription_statistics(subscriptions: DataFrame) -> DataFrame:
    """Every filter that anybody subscribed with, and when first and last; steps are counted.

    Copies of a step change nothing else, and are counted.
    """
    keys = ("subscriber", "broker", "action", "filter")
    columns = [column.name for column in SUBSCRIPTIONS.columns]
    tagged = with_reasons(subscriptions, SUBSCRIPTIONS)
    alike = tagged.groupBy(REASON, *columns).agg(F.count(F.lit(1)).alias("rows"))
    return (
        keys_of_good_rows(alike, *keys)
        .groupBy(REASON, *keys)
        .agg(
            F.sum("rows").alias("rows"),
            surplus().alias("duplicates"),
            F.min("at_ns").alias("first_ns"),
            F.max("at_ns").alias("last_ns"),
        )
    )


# One row for an event and a life that wants it and stood when it was published; until when it did.
STANDING = "event string, subscriber string, until_ns bigint"
MOST_BROADCAST = 300_000  # rows that are sent to every machine


@dataclass(frozen=True, slots=True, kw_only=True)
class Churners:
    """Subscribers that came or went while we watched, and the events that they wanted."""

    names: DataFrame  # subscriber
    pairs: DataFrame  # STANDING


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """The steps of subscriptions: as rows, and as the statistic that counts them."""

    rows: DataFrame
    counted: pd.DataFrame


def find_churners(
    steps: Steps, publications: DataFrame, contents: pd.DataFrame, window: TraceWindow
) -> Churners | None:
    """Who came or went, with what each of them wanted of good ``publications``; None: nobody did.

    ``contents`` has the distinct texts (``content``), each with its ``content_key``.
    """
    changed = changed_subscribers(steps.counted, window)
    if not changed:
        return None
    spark = publications.sparkSession
    begun = steps.counted[
        steps.counted["subscriber"].isin(changed) & (steps.counted["action"] == "subscribe")
    ]
    few = int(begun["rows"].sum()) * (BUCKETS_OF_A_LIFE + 1) <= MOST_BROADCAST
    names = small_frame(spark, pd.DataFrame({"subscriber": changed}))
    names = F.broadcast(names) if len(changed) <= MOST_BROADCAST else names
    good = with_reasons(steps.rows, SUBSCRIPTIONS).where(F.col(REASON).isNull())
    stood = lives(good.join(names, "subscriber", "left_semi")).where(
        (F.col("subscribed_ns") < F.lit(window.until_ns)) & (end_of_life() > F.lit(window.from_ns))
    )
    buckets = choose_buckets(stood, window.from_ns, window.until_ns)
    filters = sorted({str(text) for text in begun["filter"].dropna()})
    numbers = pa.table({"filter": filters, "number": pa.array(range(len(filters)), pa.int32())})
    numbered = stood.join(F.broadcast(spark.createDataFrame(numbers)), "filter")
    wanted = _wanted(spark, contents, filters)
    return Churners(names=names, pairs=standing(publications, wanted, numbered, buckets, few=few))


def standing(
    publications: DataFrame, wanted: DataFrame, alive: DataFrame, buckets: Buckets, *, few: bool
) -> DataFrame:
    """Every event with every life that wanted it and stood then: s ≤ t < u; ``STANDING``.

    ``wanted`` has the ``number`` of every filter that wants a ``content_key``, ``alive`` the lives
    with the numbers of their filters: ``few``, so that they may be sent to every machine, or not.
    """
    spread = alive.select(
        "number",
        "subscriber",
        "subscribed_ns",
        end_of_life().alias("until_ns"),
        F.explode(buckets.of_life()).alias("bucket"),
    )
    at = F.col("published_ns")
    events = publications.select(
        "event", at, content_key().alias("content_key"), buckets.of(at).alias("bucket")
    )
    return (
        events.join(wanted, "content_key")
        .join(F.broadcast(spread) if few else spread, ["number", "bucket"])
        .where((F.col("subscribed_ns") <= at) & (at < F.col("until_ns")))
        .select("event", "subscriber", "until_ns")
    )


def _wanted(spark: SparkSession, contents: pd.DataFrame, filters: Sequence[str]) -> DataFrame:
    """Which filters, by number, want which contents, by key; what is no filter wants nothing."""
    parsed = [(number, parse_filter(text)) for number, text in enumerate(filters)]
    good = [(number, each) for number, each in parsed if each is not None]
    known = read_contents(map(str, contents["content"].unique()))
    rows = contents[contents["content"].isin(list(known.number_of))].drop_duplicates("content")
    place = rows["content"].map(known.number_of).to_numpy(dtype=np.int64)
    matrix = match_matrix([each for _, each in good], known.events)[place]
    content, chosen = matrix.nonzero()
    found = pa.table(
        {
            "content_key": pa.array(rows["content_key"].to_numpy(dtype=np.int64)[content]),
            "number": pa.array(np.array([n for n, _ in good], dtype=np.int32)[chosen]),
        }
    )
    frame = spark.createDataFrame(found)
    return F.broadcast(frame) if found.num_rows <= MOST_BROADCAST else frame
