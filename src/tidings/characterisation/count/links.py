"""Count delays and losses of links from what was recorded at both of their ends."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidings.characterisation.count.cells import delay_bin, sample_sums, seconds, small_frame
from tidings.characterisation.count.hops import used_hops
from tidings.characterisation.count.probes import apparent_sums
from tidings.characterisation.fit.channels import crossed_links, well_probed
from tidings.model.trace_tables import DELIVERIES, HOPS, TraceTable
from tidings.traces.actions import bring_here
from tidings.traces.quarantine import REASON, with_reasons
from tidings.traces.window import TraceWindow


def crossing_statistics(sent: DataFrame, arrived: DataFrame) -> DataFrame:
    """Delay and losses of links from what both of their ends recorded.

    Reads ``sent`` (event, source, target, at_ns) and ``arrived`` (event, source, target, at_ns).
    A row of ``sent`` that names its target and has no arrival was lost; one that names none (null)
    meets whatever arrived from its source, and tells delays only. Where clocks disagree, an event
    may seem to arrive before it left: that is no delay, counted as ``early``, and tells of clocks.
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
        seconds(F.col("to_end.at_ns") - F.col("from_end.at_ns")).alias("delay_s"),
    )
    possible = F.when(F.col("delay_s") >= 0, F.col("delay_s"))
    lost = F.when(F.col("named"), F.col("delay_s").isNull().cast("bigint"))
    return (
        rows.where(F.col("target").isNotNull())
        .groupBy(REASON, "source", "target", delay_bin(possible).alias("bin"))
        .agg(
            F.count(F.lit(1)).alias("rows"),
            F.sum(lost).alias("lost"),
            *sample_sums(possible),
            *apparent_sums(F.col("delay_s")),
        )
    )


def sent_by_brokers(hops: DataFrame) -> DataFrame:
    """What good hops say was sent over links: one row per copy and neighbour, as ``sent`` above."""
    targets = F.explode_outer("sent_to").alias("target")
    return hops.select(
        "event", F.col("broker").alias("source"), targets, F.col("left_ns").alias("at_ns")
    )


def arrived_at_brokers(hops: DataFrame) -> DataFrame:
    """What good hops say arrived over links, as ``arrived`` above."""
    return hops.select(
        "event",
        F.col("came_from").alias("source"),
        F.col("broker").alias("target"),
        F.col("arrived_ns").alias("at_ns"),
    )


def arrived_at_subscribers(deliveries: DataFrame) -> DataFrame:
    """First arrivals at subscribers whose home is recorded, as ``arrived`` above."""
    return (
        with_reasons(deliveries, DELIVERIES)
        .where(F.col(REASON).isNull() & F.col("broker").isNotNull())
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
    """The link statistic of all that was used and not probed enough, or None if there is no such.

    ``publications`` are the good ones; ``hops`` and ``probes`` are statistics. Needs a join of hops
    by event, so it is done only for links of which probes tell too little: fewer than ``ENOUGH``,
    and fewer than events that crossed. Counted is what brokers sent of the hops they used, whenever
    it arrived. :func:`well_probed` links may be among the answers. Events of peers in ``sessions``
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
            _of_those_who_stay(publications, "publisher", tables).select(
                "event",
                F.col("publisher").alias("source"),
                F.col("broker").alias("target"),
                F.col("published_ns").alias("at_ns"),
            )
        )
        arrived = arrived_at_brokers(_good(tables["hops"], HOPS))
        chosen = F.col("source").isin(senders)
        parts.append(crossing_statistics(sent.where(chosen), arrived.where(chosen)))
    deliveries = _of_those_who_stay(tables["deliveries"], "subscriber", tables)
    received: DataFrame | None = arrived_at_subscribers(deliveries)
    probed_clients = {way for way in probed if way[0] in brokers and way[1] not in brokers}
    if probed_clients:
        received = _unprobed(deliveries, probed_clients)
    if received is not None:
        parts.append(crossing_statistics(_left(used_here), received))
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else parts[0].unionByName(parts[1])


def _of_those_who_stay(rows: DataFrame, peer: str, tables: Mapping[str, DataFrame]) -> DataFrame:
    """The rows of peers that do not come and go."""
    if "sessions" not in tables:
        return rows
    others = tables["sessions"].select(F.col("peer").alias(peer)).distinct()
    return rows.join(F.broadcast(others), peer, "left_anti")


def _good(frame: DataFrame, table: TraceTable) -> DataFrame:
    return with_reasons(frame, table).where(F.col(REASON).isNull())


def _unprobed(deliveries: DataFrame, probed: set[tuple[str, str]]) -> DataFrame | None:
    """What was received over client links that nobody probed, or None if there is no such link."""
    pairs = bring_here(
        _good(deliveries, DELIVERIES)
        .where(F.col("broker").isNotNull())
        .select(F.col("broker").alias("source"), F.col("subscriber").alias("target"))
        .distinct(),
        "the table deliveries",
    )
    known = [way in probed for way in pairs.itertuples(index=False, name=None)]
    left = pairs[~pd.Series(known, index=pairs.index, dtype=bool)]
    if left.empty:
        return None
    chosen = small_frame(deliveries.sparkSession, left)
    found = arrived_at_subscribers(deliveries)
    return found.join(F.broadcast(chosen), ["source", "target"], "left_semi")


def _left(hops: DataFrame) -> DataFrame:
    """Copies as they left brokers, for whomever: brokers do not record to which clients."""
    return hops.select(
        "event",
        F.col("broker").alias("source"),
        F.lit(None).cast("string").alias("target"),
        F.col("left_ns").alias("at_ns"),
    )
