"""One pass over the rows, into cells that merge: counts, sums and a histogram, by key.

Rows are grouped once into fine cells (key × batch × bin). Every statistic of a table is then a sum
of cells, so that the statistics of one grouping share one reading of the data, and only cells are
moved between machines.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from tidings.model.delay_grid import BINS, BINS_PER_DECADE, LOWEST_S
from tidings.traces.quarantine import REASON

BATCHES = 32  # parts of the window whose differences tell the standard errors

# A sample of times in sums, per bin of the delay grid; empty where nothing was measured.
SAMPLE = (
    "count bigint, total_s double, squares double, logs double, squared_logs double, "
    "lowest_s double, highest_s double"
)
_LEAST, _MOST = ("lowest_s", "first_ns", "least_"), ("highest_s", "last_ns", "most_")


def seconds(nanoseconds: Column) -> Column:
    """Integer nanoseconds as seconds."""
    return nanoseconds / F.lit(1e9)


def delay_bin(delay_s: Column) -> Column:
    """The bin of a time on the delay grid; the same as :func:`tidings.model.delay_grid.bin_of`."""
    position = F.ceil(F.log10(delay_s / LOWEST_S) * BINS_PER_DECADE - F.lit(1e-9))
    inside = F.least(F.greatest(position, F.lit(0)), F.lit(BINS - 1))
    inside = F.when(delay_s <= LOWEST_S, F.lit(0)).otherwise(inside).cast("int")
    return F.when(delay_s.isNotNull(), inside)  # greatest and least pass over nulls


def sample_sums(value_s: Column) -> list[Column]:
    """The aggregates of :data:`SAMPLE`; rows whose value is null do not count."""
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


def keys_of_good_rows(frame: DataFrame, *names: str) -> DataFrame:
    """The frame with these columns null in bad rows: all bad rows of a reason are one cell."""
    good = F.col(REASON).isNull()
    return frame.withColumns({name: F.when(good, F.col(name)) for name in names})


def small_frame(spark: SparkSession, texts: pd.DataFrame) -> DataFrame:
    """A small table of texts for Spark to join with; Arrow carries it, so that no Python is run."""
    columns = {str(name): pa.array(map(str, texts[name]), pa.string()) for name in texts.columns}
    return spark.createDataFrame(pa.table(columns))


def summed_up(cells: DataFrame, sets: Mapping[str, Sequence[str]]) -> DataFrame:
    """Cells summed over all but the keys of each set: one long table, a row per set and key.

    The column ``statistic`` names the set; keys that are not in it are null. Columns named like
    extremes are merged as such, all others are added.
    """
    keys = list(dict.fromkeys(name for names in sets.values() for name in names))
    merged = [_merge(name) for name in cells.columns if name not in keys]
    grouped = cells.groupingSets(
        [[F.col(name) for name in names] for names in sets.values()], *(F.col(key) for key in keys)
    ).agg(*merged, F.grouping_id().alias("set"))
    statistic: Column = F.lit(None).cast("string")
    for name, kept in sets.items():
        # Spark sets a bit for every key that was summed over, the first key in the highest.
        mask = sum(1 << (len(keys) - 1 - i) for i, key in enumerate(keys) if key not in kept)
        statistic = F.when(F.col("set") == mask, F.lit(name)).otherwise(statistic)
    values = [name for name in cells.columns if name not in keys]
    return grouped.select(statistic.alias("statistic"), *keys, *values)


def _merge(name: str) -> Column:
    if name.startswith(_LEAST):
        return F.min(name).alias(name)
    if name.startswith(_MOST):
        return F.max(name).alias(name)
    return F.sum(name).alias(name)
