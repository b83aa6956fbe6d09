"""Links that nobody probed, from what was recorded at both of their ends."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidings.characterisation.links import (
    arrived_at_brokers,
    crossing_statistics,
    sent_by_brokers,
)
from tidings.model.trace_tables import DELIVERIES, HOPS, TraceTable
from tidings.traces.quarantine import REASON, with_reasons


def crossings(
    tables: Mapping[str, DataFrame],
    publications: DataFrame,
    hops: pd.DataFrame,
    probes: pd.DataFrame,
) -> DataFrame | None:
    """The link statistic of everything that was used and not probed, or None if there is no such.

    ``publications`` are the good ones; ``hops`` and ``probes`` are statistics. Needs a join of hops
    by event, so it is done only where there is no other way. Links that were probed may be among
    the answers; what the probes say of them is better.
    """
    probed = {(str(row.source), str(row.target)) for row in probes.itertuples()}
    arrivals = hops[(hops["statistic"] == "arrivals") & hops["broker"].notna()]
    used = {(str(row.came_from), str(row.broker)) for row in arrivals.itertuples()}
    brokers = {broker for _, broker in used}
    unprobed = used - probed
    parts = []
    good = _good(tables["hops"], HOPS)
    if unprobed:
        senders = sorted({source for source, _ in unprobed})
        sent = sent_by_brokers(good).unionByName(
            publications.select(
                "event",
                F.col("publisher").alias("source"),
                F.col("broker").alias("target"),
                F.col("published_ns").alias("at_ns"),
            )
        )
        arrived = arrived_at_brokers(good)
        chosen = F.col("source").isin(senders)
        parts.append(crossing_statistics(sent.where(chosen), arrived.where(chosen)))
    if not any(source in brokers and target not in brokers for source, target in probed):
        parts.append(crossing_statistics(_left(good), _received(tables["deliveries"])))
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else parts[0].unionByName(parts[1])


def _good(frame: DataFrame, table: TraceTable) -> DataFrame:
    return with_reasons(frame, table).where(F.col(REASON).isNull())


def _left(hops: DataFrame) -> DataFrame:
    """Copies as they left brokers, for whomever: brokers do not record to which clients."""
    return hops.select(
        "event",
        F.col("broker").alias("source"),
        F.lit(None).cast("string").alias("target"),
        F.col("left_ns").alias("at_ns"),
    )


def _received(deliveries: DataFrame) -> DataFrame:
    """First arrivals at subscribers whose home is recorded."""
    return (
        _good(deliveries, DELIVERIES)
        .where(F.col("broker").isNotNull())
        .groupBy("event", F.col("broker").alias("source"), F.col("subscriber").alias("target"))
        .agg(F.min("received_ns").alias("at_ns"))
    )
