"""How much was counted where and when: tables of activity by antenna and slot of time.

Two kinds are known, told apart by their columns: ``antenna``, ``at_s`` (any moment in the slot) and
``events``; and the activity of grid squares as Telecom Italia gave it out (``square_id``,
``time_interval`` in milliseconds, ``internet_total`` in a unit of its own).
"""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidings.errors import InvalidTracesError
from tidings.traces.reading import read_frame

ACTIVITY = "antenna string, at_s double, events double"
COLUMNS = ("antenna", "at_s", "events")
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
