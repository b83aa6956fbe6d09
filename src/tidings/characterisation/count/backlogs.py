"""What waits in each queue when the recorded time ends: by its counters, or by what came later."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidings.characterisation.count.cells import each_row_once, good_rows
from tidings.errors import InvalidInputError
from tidings.model.record_tables import names
from tidings.model.system import System
from tidings.model.trace_tables import DELIVERIES, HOPS, LEVELS
from tidings.traces.window import TraceWindow

BACKLOGS = "queue string, waiting bigint, source string"


def backlogs(tables: Mapping[str, DataFrame], window: TraceWindow) -> DataFrame:
    """Count the events that are in each queue as the window ends, and say which table tells.

    ``levels`` tell it of subscribers, by their last poll: entered and not done, over all parts.
    ``hops`` tell it of brokers, of copies that came before the end and left after it; ``hops`` with
    ``deliveries`` of subscribers, of events that left their broker before and were received after.
    These need rows of what happened after the end; what is never done leaves no row.
    """
    frames = []
    if "levels" in tables:
        frames.append(_by_levels(tables["levels"], window))
    if "hops" in tables:
        hops = each_row_once(good_rows(tables["hops"], HOPS))
        frames.append(_by_hops(hops, window))
        if "deliveries" in tables:
            frames.append(_by_deliveries(hops, tables["deliveries"], window))
    counted = reduce(DataFrame.unionByName, frames)
    return counted.where(F.col("waiting") > 0)


def choose_backlog(rows: pd.DataFrame, system: System, queue: str | None) -> tuple[str, int]:
    """Give the queue of a system that holds events, the one named if several do, and how many."""
    own = [*names(system.brokers), *names(system.subscribers)]
    held = rows[rows["queue"].isin(own if queue is None else [queue])]
    events = held.groupby("queue")["waiting"].max()
    if events.empty:
        of = "any queue of the system" if queue is None else f"'{queue}'"
        raise InvalidInputError(f"nothing was in {of} when the traces end")
    if len(events) > 1:
        each = ", ".join(f"{name} ({number:,})" for name, number in events.items())
        raise InvalidInputError(f"the traces end with events in {each}; name one with --queue")
    return str(events.index[0]), int(events.iloc[0])


def _by_levels(levels: DataFrame, window: TraceWindow) -> DataFrame:
    polled = good_rows(levels, LEVELS).where(F.col("at_ns") <= window.until_ns)
    there = F.max_by(F.col("entered") - F.col("done"), F.struct("at_ns", "entered", "done"))
    last = polled.groupBy("queue", "part").agg(there.alias("there"))
    return last.groupBy("queue").agg(
        F.sum("there").alias("waiting"), F.lit("levels").alias("source")
    )


def _by_hops(hops: DataFrame, window: TraceWindow) -> DataFrame:
    end = F.lit(window.until_ns)
    there = hops.where((F.col("arrived_ns") <= end) & (F.col("left_ns") > end))
    return there.groupBy(F.col("broker").alias("queue")).agg(
        F.count(F.lit(1)).alias("waiting"), F.lit("hops").alias("source")
    )


def _by_deliveries(hops: DataFrame, deliveries: DataFrame, window: TraceWindow) -> DataFrame:
    end = F.lit(window.until_ns)
    later = each_row_once(good_rows(deliveries, DELIVERIES)).where(F.col("received_ns") > end)
    before = hops.where(F.col("left_ns") <= end).select("event", "broker").distinct()
    there = later.join(before, ["event", "broker"], "left_semi")
    return there.groupBy(F.col("subscriber").alias("queue")).agg(
        F.count(F.lit(1)).alias("waiting"), F.lit("deliveries").alias("source")
    )
