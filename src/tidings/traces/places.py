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
_COMPRESSED = (".gz", ".bz2", ".zst")


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePlace:
    """One table: its format, the file, folder or URL it is in, and the files that this has here."""

    kind: str
    path: str
    files: tuple[str, ...] = ()  # unknown where it is elsewhere


def find_tables(folder: str | os.PathLike[str]) -> dict[str, TablePlace]:
    """Where each table of a folder is; refused where an import was stopped at its last step.

    Object stores cannot be listed from here: behind a URL, each may be a Parquet folder by its
    canonical name, or not be there.
    """
    name, remote = place_of(folder)
    if remote:
        url = name.rstrip("/")
        return {each: TablePlace(kind="parquet", path=f"{url}/{each}") for each in TRACE_TABLES}
    return _local_tables(Path(name))


def table_names(folder: str | os.PathLike[str]) -> tuple[str, ...] | None:
    """Which trace tables a folder has; None for a URL, which cannot be listed."""
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
    """That a folder has none, with what it has instead."""
    name, remote = place_of(folder)
    return InvalidTracesError(
        f"{name}: there are no trace tables here; wants {_listed(TRACE_TABLES)}, "
        f"{_found(name, remote)}"
    )


def place_of(folder: str | os.PathLike[str]) -> tuple[str, bool]:
    """The folder or URL, and whether it is elsewhere.

    >>> place_of("file:///traces"), place_of("s3a://bucket/traces")
    (('/traces', False), ('s3a://bucket/traces', True))
    """
    name = os.fspath(folder)
    if name.startswith("file:"):
        name = "/" + name.removeprefix("file:").lstrip("/")
    return name, "://" in name


def table_kind(path: Path) -> str:
    """In which format a file or folder is a table."""
    kind = _kind(path) if path.exists() else None
    if kind is None:
        saw = "no table" if path.exists() else "nothing"
        wanted = f"a file ending in {_listed(FORMATS)}, or a folder of such files"
        raise InvalidTracesError(f"{path}: got {saw}; wants {wanted}")
    _check_plain(path)
    return kind


def kind_of_name(name: str) -> str | None:
    """The format of a file by its name, compressed or not.

    >>> kind_of_name("hops.csv.gz"), kind_of_name("notes.txt")
    ('csv', None)
    """
    return FORMATS.get(Path(uncompressed(name)).suffix)


def uncompressed(name: str) -> str:
    """The name of a file without what tells how it is compressed.

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
        kind = _kind(path)
        if table not in TRACE_TABLES or kind is None:
            continue
        if table in places:
            raise InvalidTracesError(
                f"{folder}: the table {table} is there twice "
                f"({Path(places[table].path).name} and {path.name}); wants one"
            )
        _check_plain(path)
        # With the scheme, a cluster whose default is another file system reads it here too.
        url, files = f"file://{path.resolve()}", tuple(map(str, _files_of(path, kind)))
        places[table] = TablePlace(kind=kind, path=url, files=files)
    return places


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


def _files_of(path: Path, kind: str) -> list[Path]:
    if not path.is_dir():
        return [path.absolute()]
    inside = [each for each in sorted(path.absolute().iterdir()) if each.name[0] not in "._"]
    return [each for each in inside if kind_of_name(each.name) == kind]


def _found(name: str, remote: bool) -> str:
    if remote:
        return "none could be opened as Parquet"
    names = sorted(path.name for path in Path(name).iterdir())
    shown = _listed(names[:8]) + (" …" if len(names) > 8 else "")
    return f"found {shown}" if names else "the folder is empty"


def _listed(names: Collection[str]) -> str:
    return ", ".join(names)
