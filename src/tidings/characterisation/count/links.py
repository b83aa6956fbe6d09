"""Count delays and losses of links: from probes, or from what both of their ends recorded.

Probes also count losses in a row, and by how much the clocks of two hosts differ.
"""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as Rows
from pyspark.sql import functions as F

from tidings.characterisation.count.cells import (
    delay_bin,
    good_rows,
    sample_sums,
    seconds,
    small_frame,
    with_reason,
)
from tidings.characterisation.count.hops import used_hops
from tidings.characterisation.count.link_hours import by_length_and_hour
from tidings.characterisation.count.outages import DURING, during_outages, without_outages
from tidings.characterisation.fit.channels import crossed_links, well_probed
from tidings.characterisation.statistics import (
    APPARENT,
    BATCHES,
    CLOCK_STATISTICS,
    LINK_STATISTICS,
    SENT_IN_OUTAGE,
    merge_rows,
)
from tidings.model.trace_tables import DELIVERIES, HOPS, PROBES
from tidings.traces.actions import bring_here
from tidings.traces.quarantine import REASON, with_reasons
from tidings.traces.window import TraceWindow

MOST_APART_S = 86_400.0  # clocks that are right but for their time zone are half a day apart
# As of links, and of all probes whose times can be: how many, and these by both clocks.
PROBE_STATISTICS = f"{LINK_STATISTICS}, timed bigint, {APPARENT}"
# Per (source, target, batch): probes that follow another one, losses among them, probes that follow
# a loss, losses among these; whether the first and the last of the batch were lost; and how many
# rows are copies, which count nowhere else.
LOSS_RUNS = (
    "source string, target string, batch int, following bigint, lost bigint, after_loss bigint, "
    "lost_after_loss bigint, first_lost boolean, last_lost boolean, duplicates bigint"
)


def crossing_statistics(sent: DataFrame, arrived: DataFrame, *, hours: bool = False) -> DataFrame:
    """Count delays, in seconds, and losses of links from what both of their ends recorded.

    Reads ``sent`` (event, source, target, at_ns) and ``arrived`` (event, source, target, at_ns).
    A row of ``sent`` that names its target and has no arrival was lost; one that names none (null)
    meets whatever arrived from its source, and tells delays only. Where clocks disagree, an event
    may seem to arrive before it left: that is no delay, counted as ``early``, and tells of clocks.
    With ``hours``, delays are also counted by hour of the week (:func:`split_hours`).
    """
    from_end, to_end = sent.alias("from_end"), arrived.alias("to_end")
    same = (
        (F.col("from_end.event") == F.col("to_end.event"))
        & (F.col("from_end.source") == F.col("to_end.source"))
        & (F.col("from_end.target").isNull() | (F.col("from_end.target") == F.col("to_end.target")))
    )
    rows = from_end.join(to_end, same, "left").select(
        F.lit(None).cast("string").alias(REASON),
        F.col("from_end.source").alias("source"),
        F.coalesce("from_end.target", "to_end.target").alias("target"),
        F.col("from_end.target").isNotNull().alias("named"),
        F.col("from_end.at_ns").alias("sent_ns"),
        seconds(F.col("to_end.at_ns") - F.col("from_end.at_ns")).alias("delay_s"),
    )
    possible = F.when(F.col("delay_s") >= 0, F.col("delay_s"))
    lost = F.when(F.col("named"), F.col("delay_s").isNull().cast("bigint"))
    sums = [
        F.count(F.lit(1)).alias("rows"),
        F.sum(lost).alias("lost"),
        *sample_sums(possible),
        *apparent_sums(F.col("delay_s")),
    ]
    told = rows.where(F.col("target").isNotNull())
    if hours:
        return by_length_and_hour(told, F.col("sent_ns"), delay_bin(possible), sums)
    return told.groupBy(REASON, "source", "target", delay_bin(possible).alias("bin")).agg(*sums)


def sent_by_brokers(hops: DataFrame) -> DataFrame:
    """List what good hops say was sent over links, as ``sent`` above.

    There is one row per copy and neighbour.
    """
    targets = F.explode_outer("sent_to").alias("target")
    return hops.select(
        "event", F.col("broker").alias("source"), targets, F.col("left_ns").alias("at_ns")
    )


def sent_by_publishers(publications: DataFrame) -> DataFrame:
    """List what good publications say was sent to brokers, as ``sent`` above."""
    return publications.select(
        "event",
        F.col("publisher").alias("source"),
        F.col("broker").alias("target"),
        F.col("published_ns").alias("at_ns"),
    )


def arrived_at_brokers(hops: DataFrame) -> DataFrame:
    """List what good hops say arrived over links, as ``arrived`` above."""
    return hops.select(
        "event",
        F.col("came_from").alias("source"),
        F.col("broker").alias("target"),
        F.col("arrived_ns").alias("at_ns"),
    )


def arrived_at_subscribers(deliveries: DataFrame) -> DataFrame:
    """Find first arrivals at subscribers whose home is recorded, as ``arrived`` above."""
    return (
        good_rows(deliveries, DELIVERIES)
        .where(F.col("broker").isNotNull())
        .groupBy("event", F.col("broker").alias("source"), F.col("subscriber").alias("target"))
        .agg(F.min("received_ns").alias("at_ns"))
    )


def crossings(
    tables: Mapping[str, DataFrame],
    publications: DataFrame,
    window: TraceWindow,
    hops: pd.DataFrame,
    probes: pd.DataFrame,
) -> DataFrame | None:
    """Count crossings of links that were used and not probed enough; None if there are no such.

    ``publications`` are the good ones; ``hops`` and ``probes`` are statistics. Delays are counted
    by hour, too (:func:`split_hours`). Needs a join of hops
    by event, so it is done only for links of which probes tell too little: fewer than ``ENOUGH``,
    and fewer than events that crossed. Counted is what brokers sent of the hops they used, whenever
    it arrived, but for what was sent during outages of the link or of its ends: that is theirs.
    :func:`well_probed` links may be among the answers. Events of peers in ``sessions``
    wait for these before they cross, so that they tell nothing of their links.
    """
    crossed, probed = crossed_links(hops), well_probed(hops, probes)
    brokers = {broker for _, broker in crossed}
    unprobed = crossed.keys() - probed
    parts = []
    used_here = used_hops(tables["hops"], window)
    if unprobed:
        senders = sorted({source for source, _ in unprobed})
        sent = sent_by_brokers(used_here).unionByName(
            sent_by_publishers(_of_those_who_stay(publications, "publisher", tables))
        )
        arrived = arrived_at_brokers(good_rows(tables["hops"], HOPS))
        chosen = F.col("source").isin(senders)
        tried = during_outages(sent.where(chosen), "at_ns", tables, window, unprobed)
        tried = without_outages(tried)
        parts.append(crossing_statistics(tried, arrived.where(chosen), hours=True))
    deliveries = _of_those_who_stay(tables["deliveries"], "subscriber", tables)
    received: DataFrame | None = arrived_at_subscribers(deliveries)
    probed_clients = {arc for arc in probed if arc[0] in brokers and arc[1] not in brokers}
    if probed_clients:
        received = _unprobed(deliveries, probed_clients)
    if received is not None:
        parts.append(crossing_statistics(_left(used_here), received, hours=True))
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else parts[0].unionByName(parts[1])


def _of_those_who_stay(rows: DataFrame, peer: str, tables: Mapping[str, DataFrame]) -> DataFrame:
    """Select the rows of peers that do not come and go."""
    if "sessions" not in tables:
        return rows
    others = tables["sessions"].select(F.col("peer").alias(peer)).distinct()
    return rows.join(F.broadcast(others), peer, "left_anti")


def _unprobed(deliveries: DataFrame, probed: set[tuple[str, str]]) -> DataFrame | None:
    """Select what was received over client links nobody probed; None if there is no such link."""
    pairs = bring_here(
        good_rows(deliveries, DELIVERIES)
        .where(F.col("broker").isNotNull())
        .select(F.col("broker").alias("source"), F.col("subscriber").alias("target"))
        .distinct(),
        "the table deliveries",
    )
    known = [arc in probed for arc in pairs.itertuples(index=False, name=None)]
    left = pairs[~pd.Series(known, index=pairs.index, dtype=bool)]
    if left.empty:
        return None
    chosen = small_frame(deliveries.sparkSession, left)
    arrived = arrived_at_subscribers(deliveries)
    return arrived.join(F.broadcast(chosen), ["source", "target"], "left_semi")


def _left(hops: DataFrame) -> DataFrame:
    """List copies as they left brokers, for whomever: brokers do not record to which clients."""
    return hops.select(
        "event",
        F.col("broker").alias("source"),
        F.lit(None).cast("string").alias("target"),
        F.col("left_ns").alias("at_ns"),
    )


def apparent_sums(apparent_s: Column) -> list[Column]:
    """Make the aggregates of :data:`APPARENT`; rows whose value is null do not count.

    Nor do those that ended more than a day before they began: no clock is that wrong, but a time
    may be damaged.
    """
    apparent_s = F.when(apparent_s >= -MOST_APART_S, apparent_s)
    return [
        F.count_if(apparent_s < 0).alias("early"),
        F.min(apparent_s).alias("least_s"),
        F.sum(apparent_s).alias("apparent_total_s"),
        F.sum(apparent_s * apparent_s).alias("apparent_squares"),
    ]


def probe_statistics(probes: DataFrame, *, hours: bool = False) -> DataFrame:
    """Count delays, losses and times by the clocks of both ends of every probed link, in one pass.

    Those sent during an outage are set aside, where it is known of them. Probes that ended before
    they began are bad rows, and the ones that tell of clocks: they keep the names of their link,
    which other bad rows lose. :func:`split_probes` parts both statistics. With ``hours``, delays
    are also counted by hour of the week (:func:`split_hours`).
    """
    delay_s = seconds(F.col("received_ns") - F.col("sent_ns"))
    named = (F.col("source") != "") & (F.col("target") != "") & (F.col("sent_ns") >= 0)
    timed = F.coalesce(
        named & (F.col("received_ns") >= 0) & (delay_s >= -MOST_APART_S), F.lit(False)
    )
    good = F.col(REASON).isNull()
    tagged = with_reasons(probes, PROBES)
    if DURING in probes.columns:
        tagged = with_reason(tagged, F.col(DURING), SENT_IN_OUTAGE)
    rows = tagged.select(
        REASON,
        *(F.when(good | timed, F.col(name)).alias(name) for name in ("source", "target")),
        F.when(good, delay_s).alias("delay_s"),
        F.when(timed, delay_s).alias("apparent_s"),
        "sent_ns",
    )
    sums = [
        F.count(F.lit(1)).alias("rows"),
        F.count_if(F.col("delay_s").isNull() & F.col(REASON).isNull()).alias("lost"),
        *sample_sums(F.col("delay_s")),
        F.count("apparent_s").alias("timed"),
        *apparent_sums(F.col("apparent_s")),
    ]
    length = delay_bin(F.col("delay_s"))
    if hours:
        return by_length_and_hour(rows, F.col("sent_ns"), length, sums)
    return rows.groupBy(REASON, "source", "target", length.alias("bin")).agg(*sums)


def split_probes(counts: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Split what was counted of probes into two statistics: delays and losses, and clocks."""
    names = {
        name: [column.split()[0] for column in ddl.split(", ")]
        for name, ddl in (("probes", LINK_STATISTICS), ("clocks", CLOCK_STATISTICS))
    }
    good = counts[REASON].isna()
    ends = {name: counts[name].where(good, None) for name in ("source", "target")}
    timed = counts[counts["timed"] > 0]
    rows = {"probes": counts.assign(**ends), "clocks": timed.assign(count=timed["timed"])}
    return {name: merge_rows(name, [rows[name][columns]]) for name, columns in names.items()}


def loss_run_statistics(probes: DataFrame, window: TraceWindow) -> DataFrame:
    """Count losses that follow a loss, by directed link, in order of sending.

    Probes are put in order within a link *and* a batch; whoever reads this adds the steps from one
    batch to the next from their first and last.
    """
    rows = good_rows(without_outages(probes), PROBES).select(
        "source",
        "target",
        window.piece(F.col("sent_ns"), BATCHES).alias("batch"),
        "sent_ns",
        "received_ns",
        F.col("received_ns").isNull().alias("is_lost"),
    )
    link = ("source", "target", "batch")
    ordered = Rows.partitionBy(*link).orderBy("sent_ns", "received_ns")
    times = F.struct("sent_ns", "received_ns")
    is_copy = times.eqNullSafe(F.lag(times).over(ordered))
    # What follows a copy follows the row itself as well: they were lost, or not, alike.
    after = F.when(~F.col("is_copy"), F.lag("is_lost").over(ordered))
    stepped = rows.withColumn("is_copy", is_copy).withColumn("after", after)
    return stepped.groupBy(*link).agg(
        F.count("after").alias("following"),
        F.count_if(F.col("after").isNotNull() & F.col("is_lost")).alias("lost"),
        F.count_if(F.col("after")).alias("after_loss"),
        F.count_if(F.col("after") & F.col("is_lost")).alias("lost_after_loss"),
        F.min_by("is_lost", "sent_ns").alias("first_lost"),
        F.max_by("is_lost", "sent_ns").alias("last_lost"),
        F.count_if("is_copy").alias("duplicates"),
    )
