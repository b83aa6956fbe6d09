"""Count rows in one pass into cells that merge: counts, sums and a histogram, by key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import pandas as pd
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from tidings.characterisation.statistics import WEEK_HOURS, merge_of
from tidings.model.delay_grid import BINS, BINS_PER_DECADE, LOWEST_S
from tidings.model.trace_tables import TraceTable
from tidings.traces.quarantine import REASON, with_reasons
from tidings.traces.window import HOUR_NS

# Rows by the reason why they cannot be used, null where they can; copies are among the good rows.
ROW_COUNTS = "reason string, rows bigint, duplicates bigint"
COPIES = "copies bigint"


def seconds(nanoseconds: Column) -> Column:
    """Convert integer nanoseconds to seconds."""
    return nanoseconds / F.lit(1e9)


def hour_of_week(at_ns: Column) -> Column:
    """Find the hour of the week, UTC, counted from the first one of 1970 on."""
    hours = F.call_function("div", at_ns, F.lit(HOUR_NS))
    return F.pmod(hours, F.lit(WEEK_HOURS)).cast("int")


def delay_bin(delay_s: Column, bins: int = BINS) -> Column:
    """Find the bin of a time on the delay grid, as :func:`tidings.model.delay_grid.bin_of` does."""
    position = F.ceil(F.log10(delay_s / LOWEST_S) * BINS_PER_DECADE - F.lit(1e-9))
    inside = F.least(F.greatest(position, F.lit(0)), F.lit(bins - 1))
    inside = F.when(delay_s <= LOWEST_S, F.lit(0)).otherwise(inside).cast("int")
    return F.when(delay_s.isNotNull(), inside)  # greatest and least pass over nulls


def sample_sums(value_s: Column) -> list[Column]:
    """Make the aggregates of :data:`SAMPLE`; rows whose value is null do not count."""
    log = F.when(value_s > 0, F.ln(value_s))
    return [
        F.count(value_s).alias("count"),
        F.sum(value_s).alias("total_s"),
        F.sum(value_s * value_s).alias("squares"),
        F.sum(log).alias("logs"),
        F.sum(log * log).alias("squared_logs"),
        F.min(value_s).alias("lowest_s"),
        F.max(value_s).alias("highest_s"),
    ]


def good_rows(rows: DataFrame, table: TraceTable) -> DataFrame:
    """Select the rows of a table with nothing wrong in them by themselves."""
    return with_reasons(rows, table).where(F.col(REASON).isNull()).drop(REASON)


def with_reason(rows: DataFrame, wrong: Column, reason: str) -> DataFrame:
    """Give ``reason`` to the rows that are ``wrong`` and have no reason yet."""
    return rows.withColumn(REASON, F.coalesce(F.col(REASON), F.when(wrong, F.lit(reason))))


def count_cells(
    rows: DataFrame,
    keys: Sequence[str],
    sums: Sequence[Column],
    sets: Mapping[str, Sequence[str]] | None = None,
) -> DataFrame:
    """Count rows that have reasons in one pass: ``sums`` by reason and ``keys``.

    Keys of bad rows are null, so that all of a reason are one cell. With ``sets``, the cells are
    summed up to several statistics by fewer keys (:func:`summed_up`).
    """
    good = F.col(REASON).isNull()
    keyed = rows.withColumns({name: F.when(good, F.col(name)) for name in keys})
    cells = keyed.groupBy(REASON, *keys).agg(*sums)
    return cells if sets is None else summed_up(cells, sets)


def small_frame(spark: SparkSession, texts: pd.DataFrame) -> DataFrame:
    """Make a small table of texts for Spark to join with; Arrow carries it: no Python is run."""
    columns = {str(name): pa.array(map(str, texts[name]), pa.string()) for name in texts.columns}
    return spark.createDataFrame(pa.table(columns))


def no_cells(ddl: str) -> pd.DataFrame:
    """Make a statistic without rows, its columns of the types that they would have from Spark."""
    columns = cast(StructType, StructType.fromDDL(ddl))
    return to_arrow_schema(columns).empty_table().to_pandas()


def summed_up(cells: DataFrame, sets: Mapping[str, Sequence[str]]) -> DataFrame:
    """Sum cells over all but the keys of each set: one long table, a row per set and key.

    The column ``statistic`` names the set; keys that are not in it are null. Columns named like
    extremes are merged as such, all others are added.
    """
    keys = list(dict.fromkeys(name for names in sets.values() for name in names))
    values = [name for name in cells.columns if name not in keys]
    merged = [getattr(F, merge_of(name))(name).alias(name) for name in values]
    grouped = cells.groupingSets(
        [[F.col(name) for name in names] for names in sets.values()], *(F.col(key) for key in keys)
    ).agg(*merged, F.grouping_id().alias("set"))
    statistic: Column = F.lit(None).cast("string")
    for name, kept in sets.items():
        # Spark sets a bit for every key that was summed over, the first key in the highest.
        mask = sum(1 << (len(keys) - 1 - i) for i, key in enumerate(keys) if key not in kept)
        statistic = F.when(F.col("set") == mask, F.lit(name)).otherwise(statistic)
    return grouped.select(statistic.alias("statistic"), *keys, *values)


def each_row_once(rows: DataFrame) -> DataFrame:
    """Keep every row once, however often it occurs."""
    return rows.dropDuplicates()


def row_counts(tagged: DataFrame, table: TraceTable) -> DataFrame:
    """Count the rows of a table by reason, and how many of the good ones are copies.

    Moves every row once: for tables that are small.
    """
    columns = [column.name for column in table.columns]
    alike = tagged.groupBy(REASON, *columns).agg(F.count(F.lit(1)).alias("rows"))
    return alike.groupBy(REASON).agg(F.sum("rows").alias("rows"), surplus().alias("duplicates"))


def surplus() -> Column:
    """Count the good rows beyond the first in groups of equal ones (``rows`` of each)."""
    return F.sum(F.when(F.col(REASON).isNull(), F.col("rows") - 1).otherwise(F.lit(0)))


def copies_among(rows: DataFrame, table: TraceTable) -> DataFrame:
    """Count the good rows of a table that are beyond the first of their kind, in one row.

    Only a number of eight bytes is moved for a row, for tables that are large.
    """
    good = good_rows(rows, table)
    names = [column.name for column in table.columns]
    alike = good.groupBy(whole_row(*names).alias("whole")).agg(F.count(F.lit(1)).alias("rows"))
    return alike.agg(F.coalesce(F.sum(F.col("rows") - 1), F.lit(0)).alias("copies"))


def whole_row(*columns: str) -> Column:
    """Hash all that some columns of a row say into a number of eight bytes."""
    known = [F.col(name) for name in columns]
    # The hash passes over nulls, so that where they are must be hashed too.
    return F.xxhash64(*known, *(each.isNull() for each in known))
