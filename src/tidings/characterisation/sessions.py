"""How long peers are connected and away: periods from changes, counted so that they merge.

A period begins with a change that was seen, and ends with the next one or, cut off, with the
observation. What was under way when observation began is older than anybody knows and left out.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import Window as Rows
from pyspark.sql import functions as F

from tidings.characterisation.cells import delay_bin, seconds
from tidings.characterisation.durations import Durations
from tidings.model.trace_tables import SESSIONS
from tidings.traces.quarantine import REASON, with_reasons

SESSION_PERIODS = "peer string, path string, connected boolean, length_s double, ended boolean"
# Per (path, connected or not, end seen or not, bin of the delay grid).
PERIOD_CELLS = (
    "path string, connected boolean, ended boolean, bin int, count bigint, total_s double"
)


def session_periods(sessions: DataFrame, observed: DataFrame) -> DataFrame:
    """Periods ON and OFF of every peer, from changes in the time in which it was observed.

    Rows that repeat a state, as copies do, change nothing. A row at the very beginning of the
    observation says what the state was, not that it changed.
    """
    in_order = Rows.partitionBy("peer").orderBy("at_ns", "state")
    good = with_reasons(sessions, SESSIONS).where(F.col(REASON).isNull())
    told = good.withColumn("before", F.lag("state").over(in_order))
    changes = told.where(F.col("before").isNull() | (F.col("before") != F.col("state")))
    rows = changes.withColumn("next_ns", F.lead("at_ns").over(in_order)).join(observed, "peer")
    ended = F.coalesce(F.col("next_ns") <= F.col("until_ns"), F.lit(False))
    end_ns = F.when(ended, F.col("next_ns")).otherwise(F.col("until_ns"))
    return rows.where((F.col("at_ns") > F.col("from_ns")) & (end_ns > F.col("at_ns"))).select(
        "peer",
        "path",
        (F.col("state") == "connected").alias("connected"),
        seconds(end_ns - F.col("at_ns")).alias("length_s"),
        ended.alias("ended"),
    )


def period_cells(periods: DataFrame) -> DataFrame:
    """How many periods of which length, by path: all that laws are fitted to."""
    return (
        periods.withColumn("bin", delay_bin(F.col("length_s")))
        .groupBy("path", "connected", "ended", "bin")
        .agg(F.count(F.lit(1)).alias("count"), F.sum("length_s").alias("total_s"))
    )


def durations_by_path(cells: pd.DataFrame) -> dict[str, dict[bool, Durations]]:
    """Collected cells as lengths: by path, and by whether peers are connected meanwhile.

    Lengths in one bin (they differ by less than 4.7 %) become their mean.
    """
    found: dict[str, dict[bool, Durations]] = {}
    for (path, connected), rows in cells.sort_values(["path", "bin"]).groupby(
        ["path", "connected"]
    ):
        found.setdefault(str(path), {})[bool(connected)] = durations_of(rows)
    return found


def durations_of(cells: pd.DataFrame) -> Durations:
    """Cells of one kind as lengths, each as long as the mean of its bin.

    Reads ``ended``, ``count`` (above 0) and ``total_s``.
    """
    counts = cells["count"].to_numpy(np.float64)
    return Durations(
        lengths_s=cells["total_s"].to_numpy(np.float64) / counts,
        ended=cells["ended"].to_numpy(np.bool_),
        counts=counts,
    )
