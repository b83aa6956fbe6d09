"""When peers were connected: session tables from what people record of connectivity.

Three kinds of tables are known, told apart by their columns:

- the canonical ``sessions``: a row per change;
- **connectivity tuples**: a row per report, of which most say nothing new (``journey``, ``path``,
  ``state`` ON or OFF, ``at_s``): what a phone notes down when its connection changes, and twice a
  minute besides;
- **throughput while travelling**: a row per second or so (``trip``, ``seq``, ``duration_ms``,
  ``bandwidth_kbps``, and ``mode`` or ``route`` for the path): connected above a threshold.

Of reports, the first of a journey is no change: nobody knows since when its state holds. The last
one tells until when the journey was observed. Rows that tell no state or no time are set aside and
counted; a row of a trip without a throughput still takes its time, in which nothing is known to
change.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import Window as Rows
from pyspark.sql import functions as F

from tidings.errors import InvalidTracesError
from tidings.model.trace_tables import MANIFEST, SESSIONS
from tidings.traces.canonical import canonical
from tidings.traces.places import table_kind
from tidings.traces.reading import read_frame, read_traces
from tidings.traces.window import NANOSECONDS, TraceWindow

# Until when and since when each peer was observed, and on which path (or of which kind) it was.
OBSERVED = "peer string, path string, from_ns bigint, until_ns bigint"
SET_ASIDE = "reason string, rows bigint"
REPORTS = "peer string, path string, connected boolean, at_ns bigint, until_ns bigint"
TUPLE_COLUMNS = ("journey", "path", "state", "at_s")
TRIP_COLUMNS = ("trip", "seq", "duration_ms", "bandwidth_kbps")
SESSION_COLUMNS = tuple(column.name for column in SESSIONS.columns)
_TIMED = ("seq", "duration_ms", "bandwidth_kbps")
OFF_KBPS = 20.0  # throughput up to which a peer counts as disconnected


@dataclass(frozen=True, slots=True, kw_only=True)
class Connections:
    """Changes of peers as the canonical table ``sessions``, and when each peer was observed."""

    sessions: DataFrame
    observed: DataFrame  # OBSERVED
    set_aside: DataFrame | None = None  # SET_ASIDE; None: nothing is looked for


def connections(
    frame: DataFrame, where: str, *, off_kbps: float = OFF_KBPS, window: TraceWindow | None = None
) -> Connections:
    """The connections in a table of any kind that is known; ``where`` names it in errors."""
    known: dict[tuple[str, ...], Callable[[], Connections]] = {
        SESSION_COLUMNS: lambda: _of_sessions(canonical(frame, SESSIONS, where), window),
        TUPLE_COLUMNS: lambda: _counted(from_reports(tuple_reports(frame)), frame, _tuple_reason()),
        TRIP_COLUMNS: lambda: _counted(
            from_reports(trip_reports(frame, off_kbps)), frame, _trip_reason()
        ),
    }
    for columns, read in known.items():
        if set(columns) <= set(frame.columns):
            return read()
    wanted = "; or ".join(", ".join(columns) for columns in known)
    raise InvalidTracesError(f"{where}: got the columns {', '.join(frame.columns)}; wants {wanted}")


def read_connections(
    spark: SparkSession, place: Path, *, off_kbps: float = OFF_KBPS
) -> Connections:
    """The connections in a file, in a folder of Parquet or CSV files, or in canonical traces."""
    table = sessions_place(place)
    if table != place and (place / MANIFEST).exists():
        traces = read_traces(spark, place)
        return connections(traces.tables["sessions"], str(place), window=traces.window)
    return connections(read_frame(spark, table), str(table), off_kbps=off_kbps)


def sessions_place(place: Path) -> Path:
    """Where the table is: the place itself, or ``sessions`` in a folder of traces."""
    inside = sorted(place.iterdir()) if place.is_dir() else []
    found = next((each for each in inside if each.name.split(".")[0] == "sessions"), place)
    table_kind(found)
    return found


def from_reports(reports: DataFrame) -> Connections:
    """Changes and times of observation from reports, ``REPORTS``."""
    in_order = Rows.partitionBy("peer").orderBy("at_ns")
    before = F.lag("connected").over(in_order)
    changes = reports.withColumn("before", before).where(F.col("before") != F.col("connected"))
    state = F.when(F.col("connected"), F.lit("connected")).otherwise(F.lit("disconnected"))
    return Connections(
        sessions=changes.select("peer", state.alias("state"), "at_ns"),
        observed=reports.groupBy("peer").agg(
            F.min("path").alias("path"),
            F.min("at_ns").alias("from_ns"),
            F.max("until_ns").alias("until_ns"),
        ),
    )


def tuple_reports(tuples: DataFrame) -> DataFrame:
    """Reports from connectivity tuples; those that say neither ON nor OFF are left out."""
    state = _told_state()
    at_ns = _nanoseconds(F.col("at_s").try_cast("double"))
    return tuples.select(
        F.col("journey").cast("string").alias("peer"),
        F.col("path").cast("string").alias("path"),
        (state == "ON").alias("connected"),
        at_ns.alias("at_ns"),
        at_ns.alias("until_ns"),
    ).where(state.isin("ON", "OFF") & at_ns.isNotNull())


def trip_reports(trips: DataFrame, off_kbps: float = OFF_KBPS) -> DataFrame:
    """Reports from throughputs: connected above ``off_kbps``; every trip begins at 0."""
    named = [name for name in ("net", "mode", "route") if name in trips.columns]
    kind = [name for name in ("net", "mode") if name in trips.columns]
    whose = F.concat_ws(" ", *named, F.col("trip").cast("string"))
    so_far = (
        Rows.partitionBy("peer")
        .orderBy("seq")
        .rowsBetween(Rows.unboundedPreceding, Rows.currentRow)
    )
    rows = trips.select(
        whose.alias("peer"),
        (F.concat_ws(" ", *kind) if kind else F.lit("all")).alias("path"),
        (_number("bandwidth_kbps") > off_kbps).alias("connected"),
        F.col("seq").try_cast("bigint").alias("seq"),
        (_number("duration_ms") * 1e6).cast("bigint").alias("length_ns"),
    ).where((F.col("length_ns") > 0) & F.col("seq").isNotNull())
    until_ns = F.sum("length_ns").over(so_far)
    timed = rows.withColumn("until_ns", until_ns).select(
        "peer", "path", "connected", (F.col("until_ns") - F.col("length_ns")).alias("at_ns"),
        "until_ns",
    )  # fmt: skip
    return timed.where(F.col("connected").isNotNull())


def _trip_reason() -> Column:
    """Why a row of a trip tells nothing, or null."""
    no_number = [F.when(_number(name).isNull(), F.lit(f"{name} is no number")) for name in _TIMED]
    short = F.when(_number("duration_ms") <= 0, F.lit("duration_ms is not above 0"))
    return F.coalesce(*no_number, short)


def _tuple_reason() -> Column:
    """Why a connectivity tuple tells nothing, or null."""
    unknown = ~F.coalesce(_told_state().isin("ON", "OFF"), F.lit(False))
    return F.coalesce(
        F.when(unknown, F.lit("state is neither ON nor OFF")),
        F.when(_number("at_s").isNull(), F.lit("at_s is no number")),
    )


def _counted(found: Connections, frame: DataFrame, reason: Column) -> Connections:
    rows = frame.select(reason.alias("reason")).where(F.col("reason").isNotNull())
    return replace(found, set_aside=rows.groupBy("reason").agg(F.count(F.lit(1)).alias("rows")))


def _told_state() -> Column:
    return F.upper(F.trim(F.col("state").cast("string")))


def _number(name: str) -> Column:
    """A column as numbers; NaN, as some write what is missing, is none."""
    value = F.col(name).try_cast("double")
    return F.when(~F.isnan(value), value)


def _of_sessions(sessions: DataFrame, window: TraceWindow | None) -> Connections:
    """Every peer is its own path, observed in the window, or else from its first to last change."""
    first, last = F.min("at_ns"), F.max("at_ns")
    if window is not None:
        first, last = F.lit(window.from_ns), F.lit(window.until_ns)
    observed = sessions.groupBy("peer").agg(first.alias("from_ns"), last.alias("until_ns"))
    return Connections(
        sessions=sessions,
        observed=observed.select("peer", F.col("peer").alias("path"), "from_ns", "until_ns"),
    )


def _nanoseconds(seconds: Column) -> Column:
    return F.round(seconds * F.lit(NANOSECONDS)).cast("bigint")
