"""Counters that are the difference of two numbers which a broker does not write at one moment."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

_FELL, _RUN = "counted_fell", "counted_run"


def without_steps_back(levels: DataFrame, derived: str, counted: str) -> DataFrame:
    """Hold a derived counter where it steps back while the counted one does not.

    RabbitMQ refreshes what came in and what is there up to five seconds apart, so that their
    difference may fall by what came meanwhile. Where the counted one falls too, it began anew.
    """
    by_time = Window.partitionBy("queue", "part").orderBy("at_ns")
    in_run = Window.partitionBy("queue", "part", _RUN).orderBy("at_ns")
    before = F.lag(counted).over(by_time)
    fell = F.when(F.col(counted) < before, 1).otherwise(0)
    runs = levels.withColumn(_FELL, fell).withColumn(_RUN, F.sum(_FELL).over(by_time))
    held = F.max(derived).over(in_run)
    return runs.withColumn(derived, held).drop(_FELL, _RUN)
