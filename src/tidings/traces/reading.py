"""Trace tables from a folder, as DataFrames with the canonical columns.

Each table is a Parquet folder or file, or CSV or JSON Lines (plain or gzipped) with the same
column names: ``publications/``, ``hops.parquet``, ``deliveries.csv.gz`` and so on; or a table of
Delta, Iceberg or Hudi, or of a catalog. ``traces.json`` gives the observed window; without it the
window is that of the publications.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidings.errors import InvalidTracesError, TidingsError
from tidings.model import json_text
from tidings.model.plain_files import open_plain
from tidings.model.trace_tables import FORMAT_VERSION, MANIFEST, TRACE_TABLES, TraceTable
from tidings.traces.actions import reason_of, run_action
from tidings.traces.canonical import canonical
from tidings.traces.lakes import is_absent, open_logged
from tidings.traces.places import (
    CATALOG,
    FORMATS,
    TEXT_KINDS,
    TablePlace,
    find_tables,
    no_tables,
    place_of,
    table_kind,
)
from tidings.traces.quarantine import REASON, UNREADABLE, with_reasons
from tidings.traces.readers.lines import BLOCK, FILE, ORIGIN, PLACE, TEXT, origin_of_rows
from tidings.traces.readers.opening import open_flat
from tidings.traces.window import TraceWindow


@dataclass(frozen=True, slots=True, kw_only=True)
class Traces:
    """What was recorded of a system: canonical tables by name, and the window they cover.

    The tables still hold their bad rows (see :mod:`tidings.traces.quarantine`), and a column
    ``unreadable`` with what a reader could not make out. Where they were read from files, their
    ``places`` are known.
    """

    tables: Mapping[str, DataFrame]
    window: TraceWindow
    source: str = "traces"
    notes: tuple[str, ...] = ()
    sampled: float = 1.0  # share of all events that were recorded, chosen at random
    places: Mapping[str, TablePlace] = field(default_factory=dict)


def read_traces(spark: SparkSession, folder: str | os.PathLike[str]) -> Traces:
    """Open the trace tables in a folder, behind a URL or in a catalog.

    A URL is for instance ``s3a://bucket/traces``. ``catalog:lake.traces`` are the tables
    ``lake.traces.hops`` and so on, ``catalog:lake.raw.mq_*`` the tables ``lake.raw.mq_hops`` and so
    on.

    Reads only schemas, unless ``traces.json`` is missing: then the publications are read once for
    their first and last moment.
    """
    name, remote = place_of(folder)
    tables, places = {}, {}
    for table, place in find_tables(folder).items():
        frame = open_table(spark, TRACE_TABLES[table], place, optional=remote)
        if frame is not None:
            tables[table], places[table] = frame, place
    if not tables:
        raise no_tables(folder)
    text = _manifest(spark, name, remote=remote)
    sampled = 1.0 if text is None else parse_sampled(text, f"{name}/{MANIFEST}")
    if text is not None:
        window, notes = parse_manifest(text, f"{name}/{MANIFEST}"), _incomplete(text)
    else:
        window = _window_of(tables, name)
        notes = (
            f"there is no {MANIFEST}: the recorded time is taken from the first to the last "
            f"{'publication' if 'publications' in tables else 'poll'}",
        )
    return Traces(
        tables=tables,
        window=window,
        source=name,
        notes=(*notes, *sampling_notes(sampled)),
        sampled=sampled,
        places=places,
    )


def sampling_notes(sampled: float) -> tuple[str, ...]:
    """Say what a share of all events tells and what it cannot; nothing of all of them."""
    if sampled == 1:
        return ()
    return (
        f"{sampled:.3g} of all events were recorded, chosen at random: rates are scaled up to "
        "all events; bursts and synchronised publishers cannot be detected in a sample",
    )


def open_table(
    spark: SparkSession,
    table: TraceTable,
    place: TablePlace,
    keep: Sequence[str] = (),
    *,
    optional: bool = False,
) -> DataFrame | None:
    """Open a table: its canonical columns and ``unreadable``; None where there is no such table.

    Text is read line by line, so that what is no row of the table is told as such. ``keep`` may ask
    for where rows stand: columns of :data:`~tidings.traces.readers.lines.ORIGIN`.
    """
    if place.kind in TEXT_KINDS:
        frame: DataFrame | None = _open_text(spark, table, place, keep)
    elif place.kind == "parquet":
        # Days that were written by different releases may have different columns.
        reader = spark.read.option("mergeSchema", "true") if place.partitioned else spark.read
        frame = _open(lambda: reader.parquet(place.path), place, optional=optional)
    else:
        frame = _open(lambda: open_logged(spark, table, place), place, optional=optional)
    if frame is not None and keep and place.kind not in TEXT_KINDS:
        frame = _with_origin(frame, place)
    return None if frame is None else canonical(frame, table, place.path, keep)


def read_rows(frame: DataFrame, table: TraceTable) -> DataFrame:
    """Read a caller's own frame as a canonical table: check columns, make types canonical."""
    return canonical(frame, table, f"the given {table.name}")


def read_frame(spark: SparkSession, path: Path) -> DataFrame:
    """Read a table that is not canonical, as it is: Parquet, CSV or JSON Lines, file or folder."""
    kind = table_kind(path)
    endings = [ending for ending, each in FORMATS.items() if each == kind]
    reader, place = spark.read, TablePlace(kind=kind, path=f"file://{path.resolve()}")
    if path.is_dir():  # beside the tables there may be notes about them
        reader = reader.option("pathGlobFilter", f"*{{{','.join(endings)}}}*")
    openers: dict[str, Callable[[], DataFrame]] = {
        "parquet": lambda: reader.parquet(place.path),
        # Quotes are doubled in CSV, not escaped with a backslash.
        "csv": lambda: reader.csv(place.path, header=True, escape='"', enforceSchema=False),
        # Deeper lines are set aside: to find out the type of one could exhaust Java's stack.
        "json": lambda: reader.option("maxNestingDepth", json_text.MOST_DEPTH).json(place.path),
    }
    frame = _open(openers[kind], place, optional=False)
    assert frame is not None  # only what is optional may be missing
    return frame


# ---- opening -------------------------------------------------------------------------------------


def _open(
    opener: Callable[[], DataFrame], place: TablePlace, *, optional: bool
) -> DataFrame | None:
    try:
        return opener()
    except TidingsError:
        raise
    except AnalysisException as problem:
        if optional and is_absent(problem):
            return None
        why = str(problem).strip().splitlines()[0]
        raise InvalidTracesError(f"{place.path}: {why}") from problem
    except Exception as problem:  # whatever a broken file makes the reader throw
        why = reason_of(problem)
        raise InvalidTracesError(
            f"{place.path}: cannot be read as {place.kind}: {why}"
        ) from problem


def _with_origin(frame: DataFrame, place: TablePlace) -> DataFrame:
    """Add to a frame where each row comes from; of what is no file, the table."""
    text = F.to_json(F.struct("*")).alias(TEXT)
    try:
        return frame.select("*", *origin_of_rows(), text)
    except AnalysisException:  # views, and formats without such columns
        nowhere = F.lit(None).cast("bigint")
        table = F.lit(place.path).alias(FILE)
        return frame.select("*", table, nowhere.alias(BLOCK), nowhere.alias(PLACE), text)


def _open_text(
    spark: SparkSession, table: TraceTable, place: TablePlace, keep: Sequence[str]
) -> DataFrame:
    opened = open_flat(spark, place.files, whole=True)
    known = [column.name for column in table.columns]
    names = opened.names if opened.fixed else known
    cells = [opened.text(name).alias(name) for name in names if name not in (UNREADABLE, *ORIGIN)]
    return opened.rows.select(*cells, F.col(REASON).alias(UNREADABLE), *keep)


def _manifest(spark: SparkSession, name: str, *, remote: bool) -> str | None:
    if name.startswith(f"{CATALOG}:"):
        return None
    if remote:
        try:
            rows = spark.read.text(f"{name.rstrip('/')}/{MANIFEST}", wholetext=True).collect()
        except AnalysisException:
            return None
        return str(rows[0][0]) if rows else ""
    path = Path(name) / MANIFEST
    if not path.is_file():
        return None
    with open_plain(path, follow=True) as file:
        return file.read().decode("utf-8", errors="replace")


def parse_sampled(manifest: str, where: str = MANIFEST) -> float:
    """Read the share of all events that a manifest says were recorded; 1 where it does not say.

    >>> parse_sampled('{"version": 1, "from_ns": 5, "until_ns": 8, "sampled": 0.25}')
    0.25
    """
    parse_manifest(manifest, where)  # whether it is one at all
    share = json_text.parse(manifest).get("sampled", 1.0)
    if type(share) not in (int, float) or not 0 < share <= 1:
        raise InvalidTracesError(
            f"{where}: got sampled {share!r}; wants a share above 0, at most 1"
        )
    return float(share)


def _incomplete(manifest: str) -> tuple[str, ...]:
    """Warn that recording ended early, where whoever recorded says so.

    >>> _incomplete('{"incomplete": "a server died"}')[0].partition(";")[0]
    'the traces are incomplete: a server died'
    """
    why = json_text.parse(manifest).get("incomplete")
    if why is None:
        return ()
    return (
        f"the traces are incomplete: {why}; events in transit at their end count as lost "
        "(--settle leaves the last events out)",
    )


def parse_manifest(text: str, where: str = MANIFEST) -> TraceWindow:
    """Read the observed window that a manifest names.

    >>> parse_manifest('{"version": 1, "from_ns": 5, "until_ns": 8}')
    TraceWindow(from_ns=5, until_ns=8)
    """
    want = '{"version": 1, "from_ns": ..., "until_ns": ...} with whole nanoseconds'
    try:
        document = json_text.parse(text)
    except ValueError as problem:
        raise InvalidTracesError(f"{where}: not JSON ({problem}); wants {want}") from problem
    if not isinstance(document, dict) or document.get("version") != FORMAT_VERSION:
        saw = document.get("version") if isinstance(document, dict) else document
        raise InvalidTracesError(f"{where}: got version {saw!r}; wants {want}")
    ends = [document.get(key) for key in ("from_ns", "until_ns")]
    if not all(type(end) is int for end in ends):
        raise InvalidTracesError(f"{where}: got from {ends[0]!r} until {ends[1]!r}; wants {want}")
    return TraceWindow(from_ns=int(str(ends[0])), until_ns=int(str(ends[1])))


def _window_of(tables: Mapping[str, DataFrame], name: str) -> TraceWindow:
    """Find the window from the first to the last publication; without any, of brokers' reports."""
    moments = {"publications": "published_ns", "levels": "at_ns", "histograms": "at_ns"}
    table = next((each for each in moments if each in tables), None)
    if table is None:
        raise InvalidTracesError(
            f"{name}: neither {MANIFEST} nor publications; wants one of them for the window"
        )
    good = with_reasons(tables[table], TRACE_TABLES[table]).where(F.col(REASON).isNull())
    times = good.agg(F.min(moments[table]), F.max(moments[table]))
    first, last = run_action(times.collect, f"{name}: the table {table}")[0]
    if first is None or first == last:
        what = "publication times" if table == "publications" else f"times of {table}"
        raise InvalidTracesError(
            f"{name}: no {MANIFEST}, and fewer than two {what} to take the recorded time from"
        )
    return TraceWindow(from_ns=first, until_ns=last + 1)
