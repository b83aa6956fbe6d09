"""Trace tables from a folder, as DataFrames with the canonical columns.

Each table is a Parquet folder or file, or CSV or JSON Lines (plain or gzipped) with the same
column names: ``publications/``, ``hops.parquet``, ``deliveries.csv.gz`` and so on. ``traces.json``
gives the observed window; without it the window is that of the publications.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as F

from tidings.errors import InvalidTracesError
from tidings.model.trace_tables import FORMAT_VERSION, MANIFEST, TRACE_TABLES, TraceTable
from tidings.traces.actions import reason_of, run_action
from tidings.traces.canonical import CORRUPT, canonical
from tidings.traces.quarantine import REASON, with_reasons
from tidings.traces.window import TraceWindow

_FORMATS = {".parquet": "parquet", ".csv": "csv", ".jsonl": "json", ".ndjson": "json"}
_COMPRESSED = (".gz", ".bz2", ".zst")


@dataclass(frozen=True, slots=True, kw_only=True)
class Traces:
    """What was recorded of a system: canonical tables by name, and the window they cover.

    The tables still hold their bad rows (see :mod:`tidings.traces.quarantine`), and a column
    ``unreadable`` with what a reader could not make out.
    """

    tables: Mapping[str, DataFrame]
    window: TraceWindow
    source: str = "traces"
    notes: tuple[str, ...] = ()


def read_traces(spark: SparkSession, folder: str | os.PathLike[str]) -> Traces:
    """The canonical tables in a folder, or behind a URL such as ``s3a://bucket/traces``.

    Reads only schemas, unless ``traces.json`` is missing: then the publications are read once for
    their first and last moment.
    """
    name, remote = _place(folder)
    places = _remote_tables(name) if remote else _local_tables(Path(name))
    tables = {}
    for table, (kind, path) in places.items():
        frame = _open(spark.read, kind, path, TRACE_TABLES[table], optional=remote)
        if frame is not None:
            tables[table] = canonical(frame, TRACE_TABLES[table], path)
    if not tables:
        raise _no_tables(name, remote)
    text = _manifest(spark, name, remote=remote)
    if text is not None:
        window = parse_manifest(text, f"{name}/{MANIFEST}")
        return Traces(tables=tables, window=window, source=name, notes=_incomplete(text))
    note = f"no {MANIFEST}: the window is from the first to the last publication"
    return Traces(tables=tables, window=_window_of(tables, name), source=name, notes=(note,))


def read_rows(frame: DataFrame, table: TraceTable) -> DataFrame:
    """A frame of one's own as a canonical table: columns checked, types made canonical."""
    return canonical(frame, table, f"the given {table.name}")


def read_frame(spark: SparkSession, path: Path) -> DataFrame:
    """A table that is not canonical, as it is: Parquet, CSV or JSON Lines, a file or a folder."""
    kind = table_kind(path)
    endings = [ending for ending, each in _FORMATS.items() if each == kind]
    reader = spark.read
    if path.is_dir():  # beside the tables there may be notes about them
        reader = reader.option("pathGlobFilter", f"*{{{','.join(endings)}}}*")
    frame = _open(reader, kind, f"file://{path.resolve()}", None, optional=False)
    assert frame is not None  # only what is optional may be missing
    return frame


def table_kind(path: Path) -> str:
    """In which format a file or folder is a table, told without Spark."""
    kind = _kind(path) if path.exists() else None
    if kind is None:
        saw = "no table" if path.exists() else "nothing"
        wanted = f"a file ending in {_listed(_FORMATS)}, or a folder of such files"
        raise InvalidTracesError(f"{path}: got {saw}; wants {wanted}")
    return kind


# ---- where tables are ----------------------------------------------------------------------------


def table_names(folder: str | os.PathLike[str]) -> tuple[str, ...] | None:
    """Which trace tables a folder has, told without Spark; None for a URL, which it cannot list."""
    name, remote = _place(folder)
    if remote:
        return None
    names = tuple(_local_tables(Path(name)))
    if not names:
        raise _no_tables(name, remote)
    return names


def require_tables(
    source: str, wanted: Collection[str], found: Collection[str], *, instead: str = ""
) -> None:
    """Raise :class:`InvalidTracesError` unless all these tables are there; tells all at once."""
    missing = [name for name in wanted if name not in found]
    if missing:
        noun = "table" if len(missing) == 1 else "tables"
        raise InvalidTracesError(
            f"{source} has no {noun} {_listed(missing)}; wants {_listed(wanted)}"
            f"{f' ({instead})' if instead else ''}, found {_listed(found) or 'none'}"
        )


def _place(folder: str | os.PathLike[str]) -> tuple[str, bool]:
    """The folder or URL, and whether it is elsewhere."""
    name = os.fspath(folder)
    if name.startswith("file:"):
        name = "/" + name.removeprefix("file:").lstrip("/")
    return name, "://" in name


def _no_tables(name: str, remote: bool) -> InvalidTracesError:
    return InvalidTracesError(
        f"{name}: no trace tables here; wants {_listed(TRACE_TABLES)}, {_found(name, remote)}"
    )


def _local_tables(folder: Path) -> dict[str, tuple[str, str]]:
    if not folder.is_dir():
        what = "a file" if folder.exists() else "nothing"
        raise InvalidTracesError(f"{folder}: got {what}; wants a folder of trace tables")
    found: dict[str, tuple[str, str]] = {}
    for path in sorted(folder.iterdir()):
        table = path.name.split(".")[0]
        kind = _kind(path)
        if table not in TRACE_TABLES or kind is None:
            continue
        if table in found:
            raise InvalidTracesError(
                f"{folder}: the table {table} is there twice "
                f"({Path(found[table][1]).name} and {path.name}); wants one"
            )
        # With the scheme, a cluster whose default is another file system reads it here too.
        found[table] = (kind, f"file://{path.resolve()}")
    return found


def _kind(path: Path) -> str | None:
    """The format of a file by its name, of a folder by the files in it."""
    if path.is_dir():
        kinds = {kind_of_name(each.name) for each in path.iterdir() if each.name[0] not in "._"}
        kinds.discard(None)
        if len(kinds) > 1:
            raise InvalidTracesError(
                f"{path}: holds files of several formats ({_listed(sorted(map(str, kinds)))}); "
                "wants one"
            )
        return kinds.pop() if kinds else None
    return kind_of_name(path.name)


def kind_of_name(name: str) -> str | None:
    """The format of a file by its name, compressed or not.

    >>> kind_of_name("hops.csv.gz"), kind_of_name("notes.txt")
    ('csv', None)
    """
    for suffix in _COMPRESSED:
        name = name.removesuffix(suffix)
    return _FORMATS.get(Path(name).suffix)


def _remote_tables(url: str) -> dict[str, tuple[str, str]]:
    """Object stores cannot be listed from here: only Parquet folders by their canonical names."""
    return {name: ("parquet", f"{url.rstrip('/')}/{name}") for name in TRACE_TABLES}


def _found(name: str, remote: bool) -> str:
    if remote:
        return "none could be opened as Parquet"
    names = sorted(path.name for path in Path(name).iterdir())
    shown = _listed(names[:8]) + (" …" if len(names) > 8 else "")
    return f"found {shown}" if names else "the folder is empty"


def _listed(names: Any) -> str:
    return ", ".join(names)


# ---- opening -------------------------------------------------------------------------------------


def _open(
    reader: DataFrameReader, kind: str, path: str, table: TraceTable | None, *, optional: bool
) -> DataFrame | None:
    try:
        if kind == "parquet":
            return reader.parquet(path)
        if kind == "csv":
            # Contents are JSON: their quotes are doubled in CSV, not escaped with a backslash.
            return reader.csv(path, header=True, escape='"', enforceSchema=False)
        if table is None:
            return reader.json(path)
        texts = ", ".join(f"{column.name} string" for column in table.columns)
        return reader.json(
            path, schema=f"{texts}, {CORRUPT} string", columnNameOfCorruptRecord=CORRUPT
        )
    except AnalysisException as problem:
        if optional and problem.getCondition() == "PATH_NOT_FOUND":
            return None
        raise InvalidTracesError(f"{path}: {str(problem).strip().splitlines()[0]}") from problem
    except Exception as problem:  # whatever a broken file makes the reader throw
        why = reason_of(problem)
        raise InvalidTracesError(f"{path}: cannot be read as {kind}: {why}") from problem


def _manifest(spark: SparkSession, name: str, *, remote: bool) -> str | None:
    if remote:
        try:
            rows = spark.read.text(f"{name.rstrip('/')}/{MANIFEST}", wholetext=True).collect()
        except AnalysisException:
            return None
        return str(rows[0][0]) if rows else ""
    path = Path(name) / MANIFEST
    return path.read_text(encoding="utf-8", errors="replace") if path.exists() else None


def _incomplete(manifest: str) -> tuple[str, ...]:
    """That recording ended early, where whoever recorded says so.

    >>> _incomplete('{"incomplete": "a server died"}')[0].partition(";")[0]
    'the traces are incomplete: a server died'
    """
    why = json.loads(manifest).get("incomplete")
    if why is None:
        return ()
    return (
        f"the traces are incomplete: {why}; what was on its way at their end counts as lost "
        "(--settle leaves the last events out)",
    )


def parse_manifest(text: str, where: str = MANIFEST) -> TraceWindow:
    """The observed window that a manifest names.

    >>> parse_manifest('{"version": 1, "from_ns": 5, "until_ns": 8}')
    TraceWindow(from_ns=5, until_ns=8)
    """
    want = '{"version": 1, "from_ns": ..., "until_ns": ...} with whole nanoseconds'
    try:
        document = json.loads(text)
    except ValueError as problem:
        raise InvalidTracesError(f"{where}: not JSON; wants {want}") from problem
    if not isinstance(document, dict) or document.get("version") != FORMAT_VERSION:
        saw = document.get("version") if isinstance(document, dict) else document
        raise InvalidTracesError(f"{where}: got version {saw!r}; wants {want}")
    ends = [document.get(key) for key in ("from_ns", "until_ns")]
    if not all(type(end) is int for end in ends):
        raise InvalidTracesError(f"{where}: got from {ends[0]!r} until {ends[1]!r}; wants {want}")
    return TraceWindow(from_ns=int(str(ends[0])), until_ns=int(str(ends[1])))


def _window_of(tables: Mapping[str, DataFrame], name: str) -> TraceWindow:
    if "publications" not in tables:
        raise InvalidTracesError(
            f"{name}: neither {MANIFEST} nor publications; wants one of them for the window"
        )
    good = with_reasons(tables["publications"], TRACE_TABLES["publications"])
    times = good.where(F.col(REASON).isNull()).agg(F.min("published_ns"), F.max("published_ns"))
    first, last = run_action(times.collect, f"{name}: the table publications")[0]
    if first is None or first == last:
        raise InvalidTracesError(
            f"{name}: no {MANIFEST}, and fewer than two moments of publication to tell the window"
        )
    return TraceWindow(from_ns=first, until_ns=last + 1)
