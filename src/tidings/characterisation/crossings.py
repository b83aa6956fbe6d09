"""Links that were hardly probed, from what was recorded at both of their ends."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidings.characterisation.cells import small_frame
from tidings.characterisation.hops import used_hops
from tidings.characterisation.links import (
    arrived_at_brokers,
    arrived_at_subscribers,
    crossing_statistics,
    sent_by_brokers,
)
from tidings.model.trace_tables import DELIVERIES, HOPS, TraceTable
from tidings.traces.actions import bring_here
from tidings.traces.quarantine import REASON, with_reasons
from tidings.traces.window import TraceWindow

ENOUGH = 2_000  # probes of a link, which tell its loss to a percentage point


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
    crossed, probed = _crossed(hops), well_probed(hops, probes)
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


def well_probed(hops: pd.DataFrame, probes: pd.DataFrame) -> set[tuple[str, str]]:
    """The links of which probes tell enough, so that what crossed them need not."""
    crossed, tried = _crossed(hops), _counts(probes, "source", "target")
    return {way for way, count in tried.items() if count >= min(ENOUGH, crossed.get(way, ENOUGH))}


def _crossed(hops: pd.DataFrame) -> dict[tuple[str, str], int]:
    """How many events crossed every link to a broker."""
    return _counts(hops[hops["statistic"] == "arrivals"], "came_from", "broker")


def _of_those_who_stay(rows: DataFrame, peer: str, tables: Mapping[str, DataFrame]) -> DataFrame:
    """The rows of peers that do not come and go."""
    if "sessions" not in tables:
        return rows
    others = tables["sessions"].select(F.col("peer").alias(peer)).distinct()
    return rows.join(F.broadcast(others), peer, "left_anti")


def _counts(rows: pd.DataFrame, source: str, target: str) -> dict[tuple[str, str], int]:
    """How many rows of a statistic there are of every directed link."""
    named = rows[rows[source].notna() & rows[target].notna()]
    sums = named.groupby([source, target])["rows"].sum()
    return {(str(way[0]), str(way[1])): int(count) for way, count in sums.items()}


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
