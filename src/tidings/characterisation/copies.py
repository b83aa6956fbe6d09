"""Rows that stand in a table more than once, the same in every column: one of them counts.

Where a statistic puts rows in order or groups them by event, copies lie side by side and are seen
on the way. Only where they were seen is a table brought to one row each before it is used.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidings.model.trace_tables import TraceTable
from tidings.traces.quarantine import REASON, with_reasons

# Rows by the reason why they cannot be used, null where they can; copies are among the good rows.
ROW_COUNTS = "reason string, rows bigint, duplicates bigint"
COPIES = "copies bigint"


def each_row_once(rows: DataFrame) -> DataFrame:
    """Every row once, however often it stands there."""
    return rows.dropDuplicates()


def row_counts(tagged: DataFrame, table: TraceTable) -> DataFrame:
    """How many rows a table has by reason, and how many of the good ones are copies.

    Moves every row once: for tables that are small.
    """
    columns = [column.name for column in table.columns]
    alike = tagged.groupBy(REASON, *columns).agg(F.count(F.lit(1)).alias("rows"))
    return alike.groupBy(REASON).agg(F.sum("rows").alias("rows"), surplus().alias("duplicates"))


def surplus() -> Column:
    """How many of the good rows in groups of equal ones (``rows`` of each) are beyond the first."""
    return F.sum(F.when(F.col(REASON).isNull(), F.col("rows") - 1).otherwise(F.lit(0)))


def copies_among(rows: DataFrame, table: TraceTable) -> DataFrame:
    """How many good rows of a table are beyond the first of their kind, in one row.

    Only a number of eight bytes is moved for a row, for tables that are large.
    """
    good = with_reasons(rows, table).where(F.col(REASON).isNull())
    names = [column.name for column in table.columns]
    alike = good.groupBy(whole_row(*names).alias("whole")).agg(F.count(F.lit(1)).alias("rows"))
    return alike.agg(F.coalesce(F.sum(F.col("rows") - 1), F.lit(0)).alias("copies"))


def whole_row(*columns: str) -> Column:
    """A number of eight bytes for all that some columns of a row say."""
    known = [F.col(name) for name in columns]
    # The hash passes over nulls, so that where they are must be hashed too.
    return F.xxhash64(*known, *(each.isNull() for each in known))
