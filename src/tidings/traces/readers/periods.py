"""Periods of being up or down, or connected: lists of events with a beginning and an end.

- **up/down events** as in the Failure Trace Archive: a row per period of a node, ``event_type`` 1
  (up) or 0 (down), from ``event_start_time`` to ``event_stop_time``, become ``states``;
- **connectivity tuples**: a row per time that a peer was connected, become ``sessions``.

A change is told where a period begins, and where one ends and no other follows at once. A period
that ends when the whole list does was cut off there, and tells no change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import Window as Rows
from pyspark.sql import functions as F

from tidings.traces.quarantine import REASON
from tidings.traces.readers import lines
from tidings.traces.readers.known_columns import find, find_time, moment, not_a_time
from tidings.traces.readers.opening import Opened, open_flat
from tidings.traces.readers.reading import Reader, Reading, candidates

EMPTY = "a period without length"
BACKWARDS = "it ends before it begins"
OVERLAPPING = "the period before it ends later than it begins"


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodTable:
    """A kind of periods: the table, its columns, and the words for being in one and out of it."""

    table: str
    who: str
    inside: str
    outside: str
    who_columns: Sequence[str]
    state_columns: Sequence[str]  # where a row says which of both it is
    begins: Sequence[str]
    ends: Sequence[str]


UP_AND_DOWN = PeriodTable(
    table="states",
    who="component",
    inside="up",
    outside="down",
    who_columns=("component", "node_id", "node", "name"),
    state_columns=("event_type", "state", "status"),
    begins=("event_start_time", "start", "begin", "from"),
    ends=("event_stop_time", "stop", "end", "until"),
)
CONNECTIVITY = PeriodTable(
    table="sessions",
    who="peer",
    inside="connected",
    outside="disconnected",
    who_columns=("peer", "client", "device", "user"),
    state_columns=(),
    begins=("connected", "start", "begin", "from"),
    ends=("disconnected", "stop", "end", "until"),
)


def read_periods(
    spark: SparkSession, files: Sequence[str], kind: PeriodTable, unit: str = "s"
) -> Reading:
    """Read candidate rows from a list of periods.

    Times are in ``unit`` where their names tell none.
    """
    opened = open_flat(spark, files)
    rows = _with_neighbours(_periods(opened, kind, files[0], unit))
    good = rows.where(F.col(REASON).isNull())
    window = good.agg(
        F.min("begin_ns").alias("from_ns"),
        F.max(F.coalesce("end_ns", "begin_ns")).alias("final_ns"),
    )
    changes = _changes(good.crossJoin(F.broadcast(window.select("final_ns"))), kind)
    return Reading(
        tables={kind.table: candidates(changes, kind.table, files[0])},
        records=rows.select(REASON, *lines.ORIGIN),
        noun="periods",
        lines=opened.noun == "lines",
        window=window,
    )


def _periods(opened: Opened, kind: PeriodTable, file: str, unit: str) -> DataFrame:
    begin = find_time(opened, kind.begins, file, unit)
    end = find_time(opened, kind.ends, file, unit)
    who = opened.text(find(opened, kind.who_columns, file))
    inside: Column = F.lit(True)
    if kind.state_columns:
        word = F.lower(F.trim(opened.text(find(opened, kind.state_columns, file))))
        is_up, is_down = word.isin("1", kind.inside), word.isin("0", kind.outside)
        inside = F.when(is_up, F.lit(True)).when(is_down, F.lit(False))
    known = f"{kind.inside} (1) or {kind.outside} (0)"
    # Times are parsed in a step of their own: they are asked for more than once afterwards.
    parsed = opened.rows.withColumns(
        {
            "who": who,
            "inside": inside,
            "begin_ns": moment(opened, *begin),
            "end_ns": moment(opened, *end),
        }
    )
    wrong = F.coalesce(
        F.col(REASON),
        not_a_time(opened, *begin, "begin_ns"),
        not_a_time(opened, *end, "end_ns"),
        F.when(F.col("inside").isNull(), F.lit(f"its state is not {known}")),
        F.when(F.col("begin_ns").isNull(), F.lit("no beginning")),
        F.when(F.col("end_ns") < F.col("begin_ns"), F.lit(BACKWARDS)),
        F.when(F.col("end_ns") == F.col("begin_ns"), F.lit(EMPTY)),
    )
    return parsed.select("who", "inside", "begin_ns", "end_ns", wrong.alias(REASON), *lines.ORIGIN)


def _with_neighbours(periods: DataFrame) -> DataFrame:
    """Add to every period the end of the one before and the start of the next of the same owner."""
    good = F.col(REASON).isNull()
    ordered = Rows.partitionBy("who", good).orderBy("begin_ns", "end_ns")
    near = periods.withColumns(
        {
            "last_end_ns": F.when(good, F.lag("end_ns").over(ordered)),
            "last_inside": F.when(good, F.lag("inside").over(ordered)),
            "next_begin_ns": F.when(good, F.lead("begin_ns").over(ordered)),
        }
    )
    overlaps = F.when(F.col("last_end_ns") > F.col("begin_ns"), F.lit(OVERLAPPING))
    return near.withColumn(REASON, F.coalesce(F.col(REASON), overlaps))


def _changes(periods: DataFrame, kind: PeriodTable) -> DataFrame:
    """List when each component or peer changed, and to what."""

    def word(inside: Column) -> Column:
        return F.when(inside, F.lit(kind.inside)).otherwise(F.lit(kind.outside))

    goes_on = (F.col("last_end_ns") == F.col("begin_ns")) & (
        F.col("last_inside") == F.col("inside")
    )
    begins = periods.where(~F.coalesce(goes_on, F.lit(False))).select(
        F.col("who").alias(kind.who),
        word(F.col("inside")).alias("state"),
        F.col("begin_ns").alias("at_ns"),
        *lines.ORIGIN,
    )
    followed = F.coalesce(F.col("next_begin_ns") == F.col("end_ns"), F.lit(False))
    seen = ~followed & (F.col("end_ns") < F.col("final_ns"))
    ends = periods.where(seen).select(
        F.col("who").alias(kind.who),
        word(~F.col("inside")).alias("state"),
        F.col("end_ns").alias("at_ns"),
        *lines.ORIGIN,
    )
    return begins.unionByName(ends)


def _reader(about: str, kind: PeriodTable) -> Reader:
    return Reader(
        about=about,
        tables=(kind.table,),
        read=lambda spark, files, asked: read_periods(spark, files, kind, asked.unit),
        wants=("unit",),
    )


UP_DOWN_READER = _reader("periods up and down, as in the Failure Trace Archive", UP_AND_DOWN)
CONNECTIVITY_READER = _reader("times that peers were connected", CONNECTIVITY)
