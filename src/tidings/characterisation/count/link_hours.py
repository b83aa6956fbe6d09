"""Delays of links by hour of the week, counted in the pass that counts them by length."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidings.characterisation.count.cells import hour_of_week, summed_up
from tidings.characterisation.statistics import HOUR_STATISTICS
from tidings.traces.quarantine import REASON

_BY_HOUR = ("source", "target", "hour")
_SETS = {"delays": (REASON, "source", "target", "bin"), "hours": _BY_HOUR}


def by_length_and_hour(
    rows: DataFrame, at_ns: Column, length: Column, sums: Sequence[Column]
) -> DataFrame:
    """Sum rows up by reason, link and bin of their delay; and by link and hour of the week.

    They are read once; :func:`split_hours` parts what comes of it.
    """
    keyed = rows.withColumns({"bin": length, "hour": hour_of_week(at_ns)})
    cells = keyed.groupBy(REASON, "source", "target", "bin", "hour").agg(*sums)
    summed = summed_up(cells, _SETS)
    seen = F.col("source").isNotNull() & F.col("target").isNotNull() & (F.col("count") > 0)
    return summed.where((F.col("statistic") == "delays") | seen)


def split_hours(counts: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Split what was counted into delays by their length, and samples of them by hour."""
    is_hour = counts["statistic"] == "hours"
    names = [column.split()[0] for column in HOUR_STATISTICS.split(", ")]
    delays = counts[~is_hour].drop(columns=["statistic", "hour"])
    return delays.reset_index(drop=True), counts.loc[is_hour, names].reset_index(drop=True)
