"""Counters of queues in flat files, columns found by name: time, queue, what came and what left.

Either the count of what left, or how many are there, may stand beside what came in.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from tidings.traces.quarantine import REASON, UNREADABLE
from tidings.traces.readers import lines
from tidings.traces.readers.known_columns import find, find_time, moment, not_a_time
from tidings.traces.readers.opening import Opened, open_flat
from tidings.traces.readers.pages import COUNT
from tidings.traces.readers.reading import Reader, Reading, candidates

_TIMES = ("at", "time", "timestamp", "polled")
_NAMES = ("queue", "consumer", "group", "subscription", "name")
_ENTERED = ("entered", "published", "produced", "log_end_offset", "in")
_DONE = ("done", "acknowledged", "acked", "committed", "consumed", "current_offset", "out")
_THERE = ("there", "lag", "backlog", "messages", "depth")
_MORE = {
    "part": ("part", "partition"),
    "in_flight": ("in_flight", "unacked", "unacknowledged"),
    "redelivered": ("redelivered", "redeliveries"),
    "dropped": ("dropped",),
}


def read_level_columns(spark: SparkSession, files: Sequence[str], unit: str = "s") -> Reading:
    """Read candidate levels; times are in ``unit`` where their column's name tells none."""
    opened = open_flat(spark, files)
    time = find_time(opened, _TIMES, files[0], unit)
    there = [name for name in _THERE if name in opened.names]
    has_done = any(name in opened.names for name in _DONE)
    has_entered = any(name in opened.names for name in _ENTERED)
    done = _whole(opened, find(opened, _DONE, files[0])) if has_done or not there else None
    entered = (
        _whole(opened, find(opened, _ENTERED, files[0])) if has_entered or done is None else None
    )
    if entered is None and done is not None and there:
        entered = done + _whole(opened, there[0])
    elif done is None and entered is not None:
        done = entered - _whole(opened, there[0])
    assert entered is not None  # else a column was missing, which has been told
    assert done is not None
    more = [
        opened.text(known).alias(name)
        for name, stems in _MORE.items()
        if (known := next((each for each in stems if each in opened.names), None)) is not None
    ]
    rows = opened.rows.where(F.col(REASON).isNull()).select(
        opened.text(find(opened, _NAMES, files[0])).alias("queue"),
        moment(opened, *time).alias("at_ns"),
        entered.alias("entered"),
        done.alias("done"),
        *more,
        "row",
        *lines.ORIGIN,
    )
    levels = rows.withColumn(UNREADABLE, not_a_time(opened, *time, "at_ns"))
    return Reading(
        tables={"levels": candidates(levels, "levels", files[0])},
        records=opened.rows.select(REASON, *lines.ORIGIN),
        noun=opened.noun,
        lines=opened.noun == "lines",
    )


def _whole(opened: Opened, column: str) -> Column:
    return F.trim(opened.text(column)).try_cast("bigint").cast(COUNT)


READER = Reader(
    about="counters in columns, by name",
    tables=("levels",),
    read=lambda spark, files, asked: read_level_columns(spark, files, asked.unit),
    wants=("unit",),
)
