"""Count what subscribers want and what reaches them, how late, and how much of it in time.

Filters meet each distinct content once, here; events then meet the lives of subscriptions that
come and go by the number of a filter and by bucket of time, so that no event is compared with all
lives.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidings.characterisation.count.cells import (
    count_cells,
    delay_bin,
    good_rows,
    seconds,
    small_frame,
    surplus,
    with_reason,
)
from tidings.characterisation.count.handlings import is_handling
from tidings.characterisation.count.publications import content_key
from tidings.characterisation.fit.contents import read_contents
from tidings.characterisation.fit.subscribers import changed_subscribers, parse_filter
from tidings.characterisation.statistics import BATCHES, SETTLING, TOO_EARLY, UNASKED, UNPUBLISHED
from tidings.model.matching import match_matrix
from tidings.model.trace_tables import DELIVERIES, SUBSCRIPTIONS
from tidings.traces.lives import BUCKETS_OF_A_LIFE, TimeBuckets, choose_buckets, end_of_life, lives
from tidings.traces.quarantine import REASON, with_reasons
from tidings.traces.window import TraceWindow

_OF_PUBLICATION = ("publisher", "published_ns", "lifetime_ns")
# Per reason, per (subscriber, publisher, batch) and per (subscriber, bin) of the delay. Wanted is
# counted of pairs whose subscriber comes and goes: what was published while it was subscribed.
DELIVERY_STATISTICS = (
    "statistic string, reason string, subscriber string, publisher string, batch int, bin int, "
    "rows bigint, duplicates bigint, handled bigint, wanted bigint, delivered bigint, "
    "on_time bigint, delay_total_s double"
)
_SETS = {
    "quality": (REASON,),
    "pairs": ("subscriber", "publisher", "batch"),
    "delays": ("subscriber", "bin"),
}
_BAD = "\N{SYMBOL FOR SUBSTITUTE} "  # before what stands for the event of a bad row
SUBSCRIPTION_STATISTICS = (
    "reason string, subscriber string, broker string, action string, filter string, "
    "rows bigint, duplicates bigint, first_ns bigint, last_ns bigint"
)
# One row for an event and a life that wants it and stood when it was published; until when it did.
STANDING = "event string, subscriber string, until_ns bigint"
MOST_BROADCAST = 300_000  # rows that are sent to every machine


def delivery_statistics(
    deliveries: DataFrame,
    publications: DataFrame,
    measured: TraceWindow,
    churners: Churners | None = None,
) -> DataFrame:
    """Count events delivered and delivered in time, by pair and batch, and delays by subscriber.

    ``publications`` are the good ones, every event once. On time is a delay of at most the
    lifetime. An event that a subscriber received more than once counts once, by its first arrival.
    What one of the ``churners`` received counts if it was wanted, and came before that stay ended.
    Of rows that say who ``handled`` an event, or when that began, copies are counted elsewhere
    (:mod:`tidings.characterisation.count.handlings`): an event may be handled again.
    """
    rows = _first_arrivals(deliveries, publications, measured, churners)
    good = F.col(REASON).isNull()
    delay_ns = F.col("received_ns") - F.col("published_ns")
    rows = rows.select(
        REASON,
        "subscriber",
        "publisher",
        measured.batch(F.col("published_ns"), BATCHES).alias("batch"),
        "rows",
        "handled",
        F.when(good, F.col("until_ns")).isNotNull().alias("wanted"),
        F.when(good & F.col("counts"), seconds(delay_ns)).alias("delay_s"),
        F.coalesce(delay_ns <= F.col("lifetime_ns"), F.lit(True)).alias("on_time"),
    )
    rows = rows.withColumn("bin", delay_bin(F.col("delay_s")))
    sums = [
        F.sum("rows").alias("rows"),
        F.sum(
            F.when(good, F.greatest(F.col("rows") - F.greatest("handled", F.lit(1)), F.lit(0)))
        ).alias("duplicates"),
        F.sum(F.when(good, F.col("handled"))).alias("handled"),
        F.count_if("wanted").alias("wanted"),
        F.count("delay_s").alias("delivered"),
        F.count_if(F.col("delay_s").isNotNull() & F.col("on_time")).alias("on_time"),
        F.sum("delay_s").alias("delay_total_s"),
    ]
    of_pairs = F.when(F.col("statistic") == "pairs", F.col("wanted"))
    keys = ("subscriber", "publisher", "batch", "bin")
    return count_cells(rows, keys, sums, _SETS).withColumn("wanted", of_pairs)


def checked_deliveries(
    received: DataFrame, publications: DataFrame, measured: TraceWindow
) -> DataFrame:
    """Join deliveries that have reasons to their publications, and add what is wrong beside these.

    ``publications`` has each event that can be used once.
    """
    reason = F.coalesce(
        F.col(REASON),
        F.when(F.col("published_ns").isNull(), F.lit(UNPUBLISHED)),
        F.when(F.col("received_ns") < F.col("published_ns"), F.lit(TOO_EARLY)),
        F.when(~measured.holds(F.col("published_ns")), F.lit(SETTLING)),
    )
    published = publications.select("event", *_OF_PUBLICATION)
    return received.join(published, "event", "left").withColumn(REASON, reason)


def _first_arrivals(
    deliveries: DataFrame, publications: DataFrame, measured: TraceWindow, churners: Churners | None
) -> DataFrame:
    """Make one row per event and subscriber with its publication; keep apart what cannot be true.

    Also for an event that a churner wanted and did not receive. ``until_ns`` is when the stay ended
    in which a churner wanted it, ``counts`` whether it was received by then.
    """
    tagged = with_reasons(deliveries, DELIVERIES)
    nothing = F.lit(None).cast("bigint")
    received = tagged.select(
        REASON,
        "event",
        "subscriber",
        "received_ns",
        nothing.alias("until_ns"),
        is_handling().alias("is_handling"),
    )
    if churners is not None:
        wanted = churners.pairs.withColumns(
            {REASON: F.lit(None), "received_ns": nothing, "is_handling": F.lit(False)}
        )
        received = received.unionByName(wanted)
    # Rows that cannot be used meet nothing: all that have lost their ids would be one task's.
    anywhere = F.xxhash64("event", "subscriber", "received_ns").cast("string")
    met = F.when(F.col(REASON).isNull(), F.col("event")).otherwise(F.concat(F.lit(_BAD), anywhere))
    # Placed by event first: then neither the join nor the groupings move the rows again.
    received = received.withColumn("event", met).repartition("event")
    rows = (
        checked_deliveries(received, publications, measured)
        .groupBy("event", "subscriber", REASON, *_OF_PUBLICATION)
        .agg(
            F.min("received_ns").alias("received_ns"),
            F.max("until_ns").alias("until_ns"),
            F.count_if(F.col("until_ns").isNull()).alias("rows"),
            F.count_if("is_handling").alias("handled"),
        )
    )
    if churners is None:
        return rows.withColumn("counts", F.lit(True))
    known_churners = churners.names.withColumn("is_churner", F.lit(True))
    rows = rows.join(known_churners, "subscriber", "left")
    unasked = F.col("is_churner") & F.col("until_ns").isNull()
    in_stay = F.coalesce(F.col("received_ns") < F.col("until_ns"), F.col("is_churner").isNull())
    return with_reason(rows.withColumn("counts", in_stay), unasked, UNASKED)


def subscription_statistics(subscriptions: DataFrame) -> DataFrame:
    """Find every filter that anybody subscribed with, and when first and last; count the steps.

    Copies of a step change nothing else, and are counted.
    """
    columns = [column.name for column in SUBSCRIPTIONS.columns]
    tagged = with_reasons(subscriptions, SUBSCRIPTIONS)
    alike = tagged.groupBy(REASON, *columns).agg(F.count(F.lit(1)).alias("rows"))
    sums = [
        F.sum("rows").alias("rows"),
        surplus().alias("duplicates"),
        F.min("at_ns").alias("first_ns"),
        F.max("at_ns").alias("last_ns"),
    ]
    return count_cells(alike, ("subscriber", "broker", "action", "filter"), sums)


@dataclass(frozen=True, slots=True, kw_only=True)
class Churners:
    """Subscribers that came or went while we watched, and the events that they wanted."""

    names: DataFrame  # subscriber
    pairs: DataFrame  # STANDING


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionSteps:
    """The steps of subscriptions: as rows, and as the statistic that counts them."""

    rows: DataFrame
    counted: pd.DataFrame


def find_churners(
    steps: SubscriptionSteps, publications: DataFrame, contents: pd.DataFrame, window: TraceWindow
) -> Churners | None:
    """Find who came or went, and what each of them wanted of good ``publications``; None: nobody.

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
    good = good_rows(steps.rows, SUBSCRIPTIONS)
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
    publications: DataFrame, wanted: DataFrame, alive: DataFrame, buckets: TimeBuckets, *, few: bool
) -> DataFrame:
    """Join each event to the lives of subscriptions that wanted it then: s ≤ t < u; ``STANDING``.

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
    """Match filters, by number, to contents they want, by key; what is no filter wants nothing."""
    parsed = [(number, parse_filter(text)) for number, text in enumerate(filters)]
    good = [(number, each) for number, each in parsed if each is not None]
    known = read_contents(map(str, contents["content"].unique()))
    rows = contents[contents["content"].isin(list(known.number_of))].drop_duplicates("content")
    place = rows["content"].map(known.number_of).to_numpy(dtype=np.int64)
    matrix = match_matrix([each for _, each in good], known.events)[place]
    content, chosen = matrix.nonzero()
    pairs = pa.table(
        {
            "content_key": pa.array(rows["content_key"].to_numpy(dtype=np.int64)[content]),
            "number": pa.array(np.array([n for n, _ in good], dtype=np.int32)[chosen]),
        }
    )
    frame = spark.createDataFrame(pairs)
    return F.broadcast(frame) if pairs.num_rows <= MOST_BROADCAST else frame
