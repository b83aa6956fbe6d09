"""Rows that cannot be true, set aside with the reason, never lost."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidings.model.trace_tables import TraceTable

REASON = "reason"
# What a reader could not make out of a row, where it could not; readers add this column.
UNREADABLE = "unreadable"

SUBSCRIPTION_ACTIONS = ("subscribe", "unsubscribe", "learnt", "forgotten")


def with_reasons(frame: DataFrame, table: TraceTable) -> DataFrame:
    """Add a column ``reason`` to every row: why it cannot be used, null where it can.

    The first reason that applies is given. Contents are not looked into: to parse them costs more
    than all the rest, so that statistics look at each distinct one instead.
    """
    reason = F.expr(_reason(table))
    if UNREADABLE in frame.columns:
        reason = F.coalesce(F.col(UNREADABLE), reason)
    return frame.withColumn(REASON, reason)


@cache
def _reason(table: TraceTable) -> str:
    """Write the reason in SQL: one text to hand to Spark, instead of a hundred calls to build."""
    cases = [f"when {condition} then '{text}'" for condition, text in _conditions(table)]
    return f"case {' '.join(cases)} end"


def _conditions(table: TraceTable) -> Iterator[tuple[str, str]]:
    for column in table.columns:
        value = f"`{column.name}`"
        if not column.nullable:
            empty = f" or trim({value}) = ''" if column.type == "string" else ""
            yield f"{value} is null{empty}", f"no {column.name}"
        if column.name == "broker":
            yield f"{value} like '%--%'", "-- in the name of its broker"
        if column.type == "bigint":
            yield f"{value} < 0", f"{column.name} is negative"
    yield from _contradictions(table.name)


def _contradictions(table: str) -> Iterator[tuple[str, str]]:
    """Yield what cannot be true between the columns of one row: the condition and the reason."""
    match table:
        case "hops":
            yield "started_ns < arrived_ns", "it started before it arrived"
            yield "left_ns < started_ns", "it left before it started"
            yield "left_ns < arrived_ns", "it left before it arrived"
        case "deliveries":
            yield "received_ns < started_ns", "it was handled before that began"
        case "probes":
            yield "received_ns < sent_ns", "it was received before it was sent"
        case "states":
            yield "state not in ('up', 'down')", "state is not up or down"
        case "sessions":
            known = "'connected', 'disconnected'"
            yield f"state not in ({known})", "state is not connected or disconnected"
        case "subscriptions":
            known = ", ".join(f"'{action}'" for action in SUBSCRIPTION_ACTIONS)
            yield f"action not in ({known})", "action is unknown"
            yield "action = 'subscribe' and `filter` is null", "it subscribes without a filter"
        case "utilisation":
            yield "busy not between 0d and 1d", "busy is not a share"
            yield "interval_ns = 0", "its interval has no length"
        case "levels":
            yield "done > entered", "more are done than have entered"
            no_object = "dropped is not null and json_object_keys(dropped) is null"
            yield no_object, "dropped is not an object in JSON"
        case "histograms":
            yield "what not in ('delay', 'service')", "what is not delay or service"
            yield "up_to_s < 0d", "up_to_s is negative"
