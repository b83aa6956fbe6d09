"""Which files of a Delta table hold its rows, by its log; read here, without Spark.

A Delta table is a folder of Parquet files and a log, ``_delta_log``: commits that add files and
remove others, and now and then a checkpoint, which sums up all commits before it. Removed files
stay in the folder for days. Tables whose files do not say all by themselves (deletion vectors,
columns by other names) are for Delta's own reader: :class:`UnsupportedError` says why.
"""

from __future__ import annotations

import os
import re
import urllib.parse
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet

from tidings.errors import InvalidTracesError, UnsupportedError
from tidings.model import json_text
from tidings.model.plain_files import open_plain

LOG = "_delta_log"
_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\.(\d{10})\.(\d{10}))?\.parquet")
# Of what a reader must know, all that leaves rows and columns as files have them, or is looked for.
_HARMLESS = {"columnMapping", "deletionVectors", "timestampNtz", "vacuumProtocolCheck"}
_NEWEST_PROTOCOL = 3
_COLUMNS = ["add.path", "add.deletionVector", "metaData", "protocol"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaTable:
    """The files that hold a table's rows, its schema as Spark's JSON, what it is partitioned by."""

    files: tuple[str, ...]
    schema: str
    partitioned_by: tuple[str, ...]


@dataclass(slots=True)
class _State:
    """What a log has said so far."""

    live: dict[tuple[str, str], Mapping[str, Any]] = field(default_factory=dict)
    protocol: Mapping[str, Any] = field(default_factory=dict)
    table: Mapping[str, Any] = field(default_factory=dict)

    def take(self, action: Mapping[str, Any]) -> None:
        """Follow one action of a commit or a checkpoint; those that move no rows say nothing."""
        if (add := action.get("add")) is not None:
            self.live[_file_of(add)] = add
        if (remove := action.get("remove")) is not None:
            self.live.pop(_file_of(remove), None)
        self.protocol = action.get("protocol") or self.protocol
        self.table = action.get("metaData") or self.table


def read_log(folder: Path) -> DeltaTable:
    """Read which files of a Delta table are live as of its last commit."""
    state = _State()
    try:
        for action in _actions(folder):
            state.take(action)
        _check_protocol(folder, state)
        names = [_name_of(folder, add) for add in state.live.values()]
        schema = state.table["schemaString"]
        parts = tuple(map(str, state.table.get("partitionColumns") or ()))
    except (LookupError, TypeError, AttributeError, ValueError, OSError, pa.ArrowException) as why:
        raise InvalidTracesError(
            f"{folder / LOG} cannot be read as the log of a table: {why!r}"
        ) from why
    files = sorted(os.path.join(folder.absolute(), name) for name in names)
    missing = [file for file in files if not os.path.isfile(file)]
    if missing:
        raise InvalidTracesError(
            f"{folder}: {len(missing)} of {len(files)} files that its log lists are not there, "
            f"the first: {missing[0]}"
        )
    return DeltaTable(files=tuple(files), schema=str(schema), partitioned_by=parts)


def _actions(folder: Path) -> Iterator[Mapping[str, Any]]:
    """Yield all that the newest complete checkpoint sums up, then the commits after it."""
    log = folder / LOG
    commits: dict[int, str] = {}
    parts: defaultdict[tuple[int, int], list[str]] = defaultdict(list)
    for name in sorted(os.listdir(log)):
        if commit := _COMMIT.fullmatch(name):
            commits[int(commit[1])] = name
        elif checkpoint := _CHECKPOINT.fullmatch(name):
            parts[int(checkpoint[1]), int(checkpoint[3] or 1)].append(name)
    whole = [key for key, names in parts.items() if len(names) == key[1]]
    start, number = max(whole, default=(-1, 0))
    for name in parts[start, number] if number else ():
        yield from _checkpoint(log / name)
    after = sorted(version for version in commits if version > start)
    if after != list(range(start + 1, start + 1 + len(after))):
        wanted = next(at for at, seen in enumerate(after, start + 1) if at != seen)
        raise InvalidTracesError(f"{log}: commit {wanted} is missing, so what is live is not known")
    if not after and start < 0:
        raise InvalidTracesError(f"{log} holds neither commits nor a checkpoint that is whole")
    for version in after:
        yield from _commit(log / commits[version])


def _commit(path: Path) -> Iterator[Mapping[str, Any]]:
    with open_plain(path) as file:
        for line in file:
            if line.strip():
                yield json_text.parse(line)


def _checkpoint(path: Path) -> Iterator[Mapping[str, Any]]:
    with open_plain(path) as file, parquet.ParquetFile(file) as table:
        for batch in table.iter_batches(columns=_COLUMNS):
            yield from batch.to_pylist(maps_as_pydicts="strict")


def _file_of(action: Mapping[str, Any]) -> tuple[str, str]:
    """Tell which version of which file an action is about: a file changes by deletion vectors."""
    vector = action.get("deletionVector") or {}
    return str(action["path"]), str([vector.get(key) for key in ("pathOrInlineDv", "offset")])


def _check_protocol(folder: Path, state: _State) -> None:
    """Refuse a table whose files do not say all by themselves."""
    needed: Iterable[str] = state.protocol.get("readerFeatures") or ()
    unknown = sorted(set(map(str, needed)) - _HARMLESS)
    mapping = dict(state.table.get("configuration") or {}).get("delta.columnMapping.mode", "none")
    if state.protocol["minReaderVersion"] > _NEWEST_PROTOCOL:
        why = f"its log is of protocol {state.protocol['minReaderVersion']}"
    elif unknown:
        why = f"it uses {', '.join(unknown)}"
    elif mapping != "none":
        why = "its columns have other names in its files (column mapping)"
    elif any(add.get("deletionVector") for add in state.live.values()):
        why = "some of its rows are deleted by deletion vectors"
    else:
        return
    raise UnsupportedError(
        f"{folder} is a Delta table that only Delta's own reader can read: {why}"
    )


def _name_of(folder: Path, add: Mapping[str, Any]) -> str:
    """Give the path of a file below its table; a log from anybody could name any file."""
    name = urllib.parse.unquote(str(add["path"]))
    if "://" in name or name.startswith(("/", "file:")) or ".." in Path(name).parts:
        raise InvalidTracesError(
            f"{folder}: its Delta log lists {name}, which is outside the table's folder"
        )
    return name
