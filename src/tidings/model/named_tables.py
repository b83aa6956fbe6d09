"""Tables that a document names, CSV or Parquet, opened only where they may lie."""

from __future__ import annotations

import errno
import os
from collections.abc import Collection
from pathlib import Path

import pyarrow
import pyarrow.csv
import pyarrow.parquet

from tidings.errors import InvalidInputError
from tidings.model.named_files import real_place
from tidings.model.plain_files import open_plain, read_parquet
from tidings.model.yaml_text import refusal


def stamp_of(what: str, name: str) -> int:
    """When a named table was last changed; looks first whether it lies where it may."""
    try:
        return real_place(name).stat().st_mtime_ns
    except OSError as error:
        saw = f"{(error.strerror or 'no file').lower()} ({os.path.abspath(name)})"
        raise wrong_table(what, name, saw=saw, want="a file that can be read") from None


def read_named_table(what: str, name: str, columns: Collection[str], want: str) -> pyarrow.Table:
    """Read a table that a document names; refuses one that is empty or lacks a column."""
    try:
        place = real_place(name)
        if place.is_dir():
            table = read_parquet(place)
        else:
            with open_plain(place) as file:
                _check_place(name, place, os.fstat(file.fileno()))
                is_csv = name.endswith(".csv")
                table = pyarrow.csv.read_csv(file) if is_csv else pyarrow.parquet.read_table(file)
    except (OSError, pyarrow.ArrowException) as error:
        saw = refusal(error)
        raise wrong_table(
            what, name, saw=saw, want="a CSV file (.csv) or a Parquet table"
        ) from None
    lacking = [column for column in columns if column not in table.column_names]
    if lacking or table.num_rows == 0:
        saw = f"no column '{lacking[0]}'" if lacking else "no rows"
        raise wrong_table(what, name, saw=saw, want=want)
    return table


def wrong_table(what: str, name: str, *, saw: str, want: str) -> InvalidInputError:
    """Make the error of a table that cannot be used: which it is, what it has, what is wanted."""
    return InvalidInputError(f"{what} {name}: got {saw}; wants {want}")


def _check_place(name: str, place: Path, opened: os.stat_result) -> None:
    """Refuse a file that is not, or no longer, where its name was resolved to.

    Whoever exchanges a folder of the path for a link meanwhile has another file opened.
    """
    if real_place(name) != place or not os.path.samestat(opened, os.stat(place)):
        raise OSError(errno.EPERM, "a file that was exchanged while it was opened")
