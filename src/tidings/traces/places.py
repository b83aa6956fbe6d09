"""Where trace tables are and in which format, told by names alone: without Spark."""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from tidings.errors import InvalidTracesError
from tidings.model.plain_files import check_below, open_plain
from tidings.model.trace_tables import TRACE_TABLES
from tidings.traces.placing import check_finished

FORMATS = {".parquet": "parquet", ".csv": "csv", ".jsonl": "json", ".ndjson": "json"}
TEXT_KINDS = ("csv", "json")
# Folders in which a log says which files hold the rows, by Spark's names, and what tells them.
LAKES = {
    "delta": "_delta_log/*",
    "hudi": ".hoodie/hoodie.properties",
    "iceberg": "metadata/*.metadata.json",
}
CATALOG = "catalog"
URL = "url"  # of a folder elsewhere: Parquet, or one of these
_COMPRESSED = (".gz", ".bz2", ".zst")


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePlace:
    """One table: its format, the file, folder or URL it is in, and the files that this has here.

    Of a table in Spark's catalog, the name that it has there.
    """

    kind: str
    path: str
    files: tuple[str, ...] = ()  # unknown where it is elsewhere, or where a log tells them
    partitioned: bool = False  # whether files are in folders such as day=2026-11-18


def find_tables(folder: str | os.PathLike[str]) -> dict[str, TablePlace]:
    """Find where each table of a folder is; refuse where an import was stopped at its last step.

    Object stores and catalogs cannot be listed from here: each table may be there by its canonical
    name, behind a URL as a Parquet folder or what :data:`LAKES` says, or not be there.
    """
    name, remote = place_of(folder)
    if name.startswith(f"{CATALOG}:"):
        return {
            each: TablePlace(kind=CATALOG, path=_in_catalog(name, each)) for each in TRACE_TABLES
        }
    if remote:
        url = name.rstrip("/")
        return {each: TablePlace(kind=URL, path=f"{url}/{each}") for each in TRACE_TABLES}
    return _local_tables(Path(name))


def table_names(folder: str | os.PathLike[str]) -> tuple[str, ...] | None:
    """List the trace tables of a folder; None for a URL or a catalog, which cannot be listed."""
    if place_of(folder)[1]:
        return None
    names = tuple(find_tables(folder))
    if not names:
        raise no_tables(folder)
    return names


def require_tables(
    source: str, wanted: Collection[str], present: Collection[str], *, instead: str = ""
) -> None:
    """Raise :class:`InvalidTracesError` unless all these tables are there; tells all at once."""
    missing = [name for name in wanted if name not in present]
    if missing:
        noun = "table" if len(missing) == 1 else "tables"
        raise InvalidTracesError(
            f"{source} has no {noun} {_listed(missing)}; wants {_listed(wanted)}"
            f"{f' ({instead})' if instead else ''}, found {_listed(present) or 'none'}"
        )


def no_tables(folder: str | os.PathLike[str]) -> InvalidTracesError:
    """Make the error that a folder has no trace tables, with what it has instead."""
    name, remote = place_of(folder)
    return InvalidTracesError(
        f"{name}: there are no trace tables here; wants {_listed(TRACE_TABLES)}, "
        f"{_found(name, remote)}"
    )


def place_of(folder: str | os.PathLike[str]) -> tuple[str, bool]:
    """Give the folder, URL or names in a catalog, and whether it is remote.

    >>> place_of("file:///traces"), place_of("s3a://bucket/traces")
    (('/traces', False), ('s3a://bucket/traces', True))
    """
    name = os.fspath(folder)
    if name.startswith("file:"):
        name = "/" + name.removeprefix("file:").lstrip("/")
    return name, "://" in name or name.startswith(f"{CATALOG}:")


def _in_catalog(names: str, table: str) -> str:
    """Name one table among those of a catalog.

    >>> _in_catalog("catalog:lake.traces", "hops"), _in_catalog("catalog:lake.raw.mq_*", "hops")
    ('lake.traces.hops', 'lake.raw.mq_hops')
    """
    pattern = names.removeprefix(f"{CATALOG}:")
    return pattern.replace("*", table) if "*" in pattern else f"{pattern}.{table}"


def table_kind(path: Path) -> str:
    """Find the format in which a file or folder is a table."""
    kind = _kind(path) if path.exists() else None
    if kind not in FORMATS.values():
        saw = "no table" if path.exists() else "nothing"
        wanted = f"a file ending in {_listed(FORMATS)}, or a folder of such files"
        raise InvalidTracesError(f"{path}: got {saw}; wants {wanted}")
    _check_plain(path)
    return str(kind)


def kind_of_name(name: str) -> str | None:
    """Give the format of a file by its name, compressed or not.

    >>> kind_of_name("hops.csv.gz"), kind_of_name("notes.txt")
    ('csv', None)
    """
    return FORMATS.get(Path(uncompressed(name)).suffix)


def uncompressed(name: str) -> str:
    """Remove from a file's name what says how it is compressed.

    >>> uncompressed("hops.csv.gz")
    'hops.csv'
    """
    for suffix in _COMPRESSED:
        name = name.removesuffix(suffix)
    return name


def _local_tables(folder: Path) -> dict[str, TablePlace]:
    if not folder.is_dir():
        what = "a file" if folder.exists() else "nothing"
        raise InvalidTracesError(f"{folder}: got {what}; wants a folder of trace tables")
    check_finished(folder)
    places: dict[str, TablePlace] = {}
    for path in sorted(folder.iterdir()):
        table = path.name.split(".")[0]
        kind = _kind(path) if table in TRACE_TABLES else None  # whatever else is there
        if kind is None:
            continue
        if table in places:
            raise InvalidTracesError(
                f"{folder}: the table {table} is there twice "
                f"({Path(places[table].path).name} and {path.name}); wants one"
            )
        _check_plain(path)
        # With the scheme, a cluster whose default is another file system reads it here too.
        url = f"file://{path.resolve()}"
        files = () if kind in LAKES else tuple(map(str, _files_of(path.absolute())))
        partitioned = any(Path(each).parent != path.absolute() for each in files if path.is_dir())
        places[table] = TablePlace(kind=kind, path=url, files=files, partitioned=partitioned)
    return places


def lake_of(folder: Path) -> str | None:
    """Find the log that says which files of a folder hold its rows.

    It is one of :data:`LAKES`; mostly None.
    """
    return next((kind for kind, mark in LAKES.items() if any(folder.glob(mark))), None)


def _kind(path: Path) -> str | None:
    """Find the format of a file by its name, of a folder by its log or the files in it."""
    if not path.is_dir():
        return kind_of_name(path.name)
    if lake := lake_of(path):
        return lake
    kinds = {str(kind_of_name(each.name)) for each in _files_of(path)}
    if len(kinds) > 1:
        raise InvalidTracesError(
            f"{path}: holds files of several formats ({_listed(sorted(kinds))}); wants one"
        )
    return kinds.pop() if kinds else None


def _check_plain(path: Path) -> None:
    """Refuse a table that is, or has in it, a pipe or a device; links to files are followed."""
    try:
        if path.is_dir():
            check_below(path.resolve(), follow=True)
        else:
            open_plain(path, follow=True).close()
    except OSError as problem:
        saw = (problem.strerror or str(problem)).lower()
        raise InvalidTracesError(
            f"{problem.filename or path}: got {saw}; wants a table of plain files"
        ) from problem


def _files_of(path: Path) -> list[Path]:
    """List the files of a table: of a folder those in it, or in folders such as ``day=2026-11-18``.

    What Spark would pass over is refused: files in other folders, or both here and in folders.
    """
    if not path.is_dir():
        return [path]
    here: list[Path] = []
    below: list[Path] = []
    passed_over = False
    for each in sorted(path.iterdir()):
        if each.name[0] in "._":
            continue
        if not each.is_dir():
            here += [each] if kind_of_name(each.name) is not None else []
        elif inside := _files_of(each):
            below += inside
            passed_over |= "=" not in each.name
    if passed_over or (here and below):
        raise InvalidTracesError(
            f"{path}: got files in other folders, such as {below[0]}; wants all in the folder "
            "itself, or all in folders with names such as day=2026-11-18"
        )
    return here or below


def _found(name: str, remote: bool) -> str:
    if remote:
        return "none of them is there"
    names = sorted(path.name for path in Path(name).iterdir())
    shown = _listed(names[:8]) + (" …" if len(names) > 8 else "")
    return f"found {shown}" if names else "the folder is empty"


def _listed(names: Collection[str]) -> str:
    return ", ".join(names)
