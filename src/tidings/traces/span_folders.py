"""Folders of spans that a receiver appends to: how they are known, and which files they have.

Files get their names when they are whole; the one that is being written is hidden until then, and
locked by who writes it.
"""

from __future__ import annotations

import calendar
import fcntl
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

from tidings.errors import InvalidTracesError
from tidings.model.trace_tables import MANIFEST, TRACE_TABLES
from tidings.traces.places import kind_of_name, uncompressed

SPANS = "spans-"  # how the names of files begin that a receiver of spans writes
MARK = ".spans"  # the file that says what a folder is for before it has any other
_FILE = re.compile(rf"{SPANS}.+\.jsonl")
_WRITTEN = re.compile(rf"\.{SPANS}(\d{{8}}T\d{{6}})\.(\d{{9}})-.+\.part")


def is_of_spans(folder: Path) -> bool:
    """Tell whether spans come into a folder, or trace tables; refuse one that has both or neither.

    What comes into a folder that has no rows yet are tables, if no receiver of spans was there.
    """
    if not folder.is_dir():
        return False  # whoever reads tables says what is wrong
    spans = [*span_files(folder).values(), *folder.glob(f".{SPANS}*"), *folder.glob(MARK)]
    table = next(_of_tables(folder), None)
    if spans and table is not None:
        raise InvalidTracesError(
            f"{folder}: got both spans ({spans[0].name}) and trace tables "
            f"({table.relative_to(folder)}); wants a folder for each"
        )
    rows = (each for each in folder.rglob("[!._]*") if kind_of_name(each.name) is not None)
    other = next(rows, None) if not spans and table is None else None
    if other is not None:
        raise InvalidTracesError(
            f"{folder}: got {other.relative_to(folder)}; wants files of trace tables, such as "
            f"hops/0001.parquet, or of spans, {SPANS}….jsonl, as 'tidings receive' writes them"
        )
    return bool(spans)


def span_files(folder: Path) -> dict[str, Path]:
    """List the files of spans of a folder that are whole, by name; compressing changes no name."""
    named = {uncompressed(each.name): each for each in sorted(folder.iterdir())}
    return {name: each for name, each in named.items() if _FILE.fullmatch(name)}


def written_since_ns(folder: Path) -> int | None:
    """Find when the oldest file was begun that is being written now, in ns; None if none is."""
    begun = []
    for each in folder.glob(f".{SPANS}*.part"):
        name = _WRITTEN.fullmatch(each.name)
        if name is not None and _is_locked(each):
            moment = time.strptime(name[1], "%Y%m%dT%H%M%S")
            begun.append(calendar.timegm(moment) * 10**9 + int(name[2]))
    return min(begun, default=None)


def _of_tables(folder: Path) -> Iterator[Path]:
    """Give what belongs to trace tables, at any depth: by its own name or its folder's."""
    if (folder / MANIFEST).exists():
        yield folder / MANIFEST
    for each in folder.rglob("*"):
        of_folder = each.parent.name.split(".")[0] if each.parent != folder else ""
        is_table = {each.name.split(".")[0], of_folder} & set(TRACE_TABLES)
        if is_table and (each.is_dir() or kind_of_name(each.name) is not None):
            yield each


def _is_locked(path: Path) -> bool:
    """Test whether somebody writes a file: who was killed does not, and leaves it as it is."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return False  # it has got its name meanwhile
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False
