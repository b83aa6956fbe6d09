"""How much was counted where and when: tables of activity by antenna and slot of time.

Two kinds are known, told apart by their columns: ``antenna``, ``at_s`` (any moment in the slot) and
``events``; and the activity of grid squares as Telecom Italia gave it out (``square_id``,
``time_interval`` in milliseconds, ``internet_total`` in a unit of its own).
By the published mapping, N events in a slot of length |t| are a Poisson stream of rate N/|t| in it.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidings.errors import InvalidTracesError
from tidings.model.behaviour import DailyRates
from tidings.traces.reading import read_frame

ACTIVITY = "antenna string, at_s double, events double"
COLUMNS = ("antenna", "at_s", "events")
ACTIVITY_RATES = "antenna string, slot bigint, per_s double"
SQUARE_COLUMNS = ("square_id", "time_interval", "internet_total")


def activity(frame: DataFrame, where: str) -> DataFrame:
    """A table of either kind with the columns of ``ACTIVITY``; ``where`` names it in errors.

    Rows without a number of events, with a negative one or with none that is finite are left out.
    """
    if set(COLUMNS) <= set(frame.columns):
        names, per_second = COLUMNS, 1.0
    elif set(SQUARE_COLUMNS) <= set(frame.columns):
        names, per_second = SQUARE_COLUMNS, 1e3
    else:
        raise InvalidTracesError(
            f"{where}: got the columns {', '.join(frame.columns)}; wants {', '.join(COLUMNS)}; "
            f"or {', '.join(SQUARE_COLUMNS)}"
        )
    antenna, at, events = (F.col(name) for name in names)
    return frame.select(
        antenna.cast("string").alias("antenna"),
        (at.try_cast("double") / F.lit(per_second)).alias("at_s"),
        events.try_cast("double").alias("events"),
    ).where(F.col("at_s").isNotNull() & F.col("events").between(0.0, sys.float_info.max))


def read_activity(spark: SparkSession, place: Path) -> DataFrame:
    """The activity in a file, or in a folder of Parquet or CSV files."""
    return activity(read_frame(spark, place), str(place))


def activity_rates(activity: DataFrame, slot_s: float) -> DataFrame:
    """Events per second by antenna and slot, λ = N/|t|; slots are numbered from the first one.

    Reads ``antenna``, ``at_s`` (any moment in the slot) and ``events``. Slots in which nothing was
    counted are not there.
    """
    slot = F.floor(F.col("at_s") / F.lit(slot_s)).cast("bigint")
    counted = activity.groupBy("antenna", slot.alias("slot")).agg(F.sum("events").alias("events"))
    first = counted.agg(F.min("slot").alias("first"))
    return counted.join(F.broadcast(first)).select(
        "antenna",
        (F.col("slot") - F.col("first")).alias("slot"),
        (F.col("events") / F.lit(slot_s)).alias("per_s"),
    )


def daily_rates(rates: pd.DataFrame, slot_s: float) -> dict[str, DailyRates]:
    """Collected rates by antenna, slot after slot; 0 where nothing was counted.

    An antenna at which nothing ever was is left out. Raises :class:`InvalidTracesError` where no
    antenna is left.

    >>> rows = [("a", 0, 0.5), ("a", 2, 0.25)]
    >>> daily_rates(pd.DataFrame(rows, columns=["antenna", "slot", "per_s"]), 600.0)["a"].per_s
    (0.5, 0.0, 0.25)
    """
    busy = rates[rates.groupby("antenna")["per_s"].transform("sum") > 0.0]
    if busy.empty:
        raise InvalidTracesError("no activity: no antenna counted an event; wants one that did")
    count = int(rates["slot"].max()) + 1
    by_antenna = {}
    for antenna, rows in busy.groupby("antenna"):
        per_s = np.zeros(count)
        per_s[rows["slot"].to_numpy(np.int64)] = rows["per_s"].to_numpy(np.float64)
        by_antenna[str(antenna)] = DailyRates(slot_s=slot_s, per_s=tuple(per_s.tolist()))
    return by_antenna
