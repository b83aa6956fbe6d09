"""Rows that cannot be true, set aside with the reason, never lost."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidings.model.trace_tables import TraceTable

REASON = "reason"
# What a reader could not make out of a row, where it could not; readers add this column.
UNREADABLE = "unreadable"

SUBSCRIPTION_ACTIONS = ("subscribe", "unsubscribe", "learnt", "forgotten")


def with_reasons(frame: DataFrame, table: TraceTable) -> DataFrame:
    """Every row, with why it cannot be used in a column ``reason``: null where it can.

    The first reason that applies is given. Contents are not looked into: to parse them costs more
    than all the rest, so that statistics look at each distinct one instead.
    """
    reason: Column = F.lit(None).cast("string")
    for condition, text in reversed(list(_conditions(table))):
        reason = F.when(condition, F.lit(text)).otherwise(reason)
    if UNREADABLE in frame.columns:
        reason = F.coalesce(F.col(UNREADABLE), reason)
    return frame.withColumn(REASON, reason)


def _conditions(table: TraceTable) -> Iterator[tuple[Column, str]]:
    for column in table.columns:
        value = F.col(column.name)
        if not column.nullable:
            empty = value.isNull() | (value == "") if column.type == "string" else value.isNull()
            yield empty, f"no {column.name}"
        if column.type == "bigint":
            yield value < 0, f"{column.name} is negative"
    yield from _contradictions(table.name)


def _contradictions(table: str) -> Iterator[tuple[Column, str]]:
    """What cannot be true between the columns of one row."""

    def before(early: str, late: str) -> Column:
        return F.col(early) < F.col(late)

    match table:
        case "hops":
            yield before("started_ns", "arrived_ns"), "it started before it arrived"
            yield before("left_ns", "started_ns"), "it left before it started"
            yield before("left_ns", "arrived_ns"), "it left before it arrived"
        case "probes":
            yield before("received_ns", "sent_ns"), "it was received before it was sent"
        case "states":
            yield ~F.col("state").isin("up", "down"), "state is not up or down"
        case "sessions":
            known = F.col("state").isin("connected", "disconnected")
            yield ~known, "state is not connected or disconnected"
        case "subscriptions":
            yield ~F.col("action").isin(*SUBSCRIPTION_ACTIONS), "action is none that is known"
            lacks = (F.col("action") == "subscribe") & F.col("filter").isNull()
            yield lacks, "it subscribes without a filter"
        case "utilisation":
            yield ~F.col("busy").between(0.0, 1.0), "busy is not a share"
