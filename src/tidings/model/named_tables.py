"""Tables that a document names, CSV or Parquet, opened only where they may lie."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from tidings.errors import InvalidInputError
from tidings.model.csv_files import TextColumn, read_csv_columns
from tidings.model.named_files import real_place
from tidings.model.parquet_files import read_parquet, read_parquet_file
from tidings.model.plain_files import open_plain
from tidings.model.yaml_text import refusal

if TYPE_CHECKING:
    import pandas as pd


def stamp_of(what: str, name: str) -> int:
    """Find when a named table was last changed, in ns; check first that it lies where it may."""
    try:
        return real_place(name).stat().st_mtime_ns
    except OSError as error:
        saw = f"{(error.strerror or 'no file').lower()} ({os.path.abspath(name)})"
        raise wrong_table(what, name, saw=saw, want="a file that can be read") from None


def read_named_table(what: str, name: str, columns: Collection[str], want: str) -> pd.DataFrame:
    """Read a table that a document names; refuses one that is empty or lacks a column.

    Of a CSV file, columns in nanoseconds (``_ns``) are whole numbers where all their cells are, and
    every other cell is a text.
    """
    try:
        place = real_place(name)
        if place.is_dir():
            table = read_parquet(place).to_pandas()
        else:
            with open_plain(place) as file:
                _check_place(name, place, os.fstat(file.fileno()))
                is_csv = name.endswith(".csv")
                table = _csv(file) if is_csv else read_parquet_file(file).to_pandas()
    except (OSError, ValueError) as error:
        saw = refusal(error)
        raise wrong_table(
            what, name, saw=saw, want="a CSV file (.csv) or a Parquet table"
        ) from None
    lacking = [column for column in columns if column not in table.columns]
    if lacking or table.empty:
        saw = f"no column '{lacking[0]}'" if lacking else "no rows"
        raise wrong_table(what, name, saw=saw, want=want)
    return table


def _csv(file: BinaryIO) -> pd.DataFrame:
    import pandas as pd

    columns = read_csv_columns(file)
    return pd.DataFrame({name: _cells(name, column) for name, column in columns.items()})


def _cells(name: str, column: TextColumn) -> np.ndarray[Any, Any]:
    """Read the cells of a column; empty ones are None."""
    distinct = np.array([text or None for text in column.texts], dtype=object)
    if name.endswith("_ns"):
        with contextlib.suppress(ValueError, TypeError, OverflowError):
            distinct = np.array([int(text) for text in column.texts], dtype=np.int64)
    cells: np.ndarray[Any, Any] = distinct[column.codes]
    return cells


def wrong_table(what: str, name: str, *, saw: str, want: str) -> InvalidInputError:
    """Make the error of a table that cannot be used: which it is, what it has, what is wanted."""
    return InvalidInputError(f"{what} {name}: got {saw}; wants {want}")


def _check_place(name: str, place: Path, opened: os.stat_result) -> None:
    """Refuse a file that is not, or no longer, where its name was resolved to.

    Whoever exchanges a folder of the path for a link meanwhile has another file opened.
    """
    if real_place(name) != place or not os.path.samestat(opened, os.stat(place)):
        raise OSError(errno.EPERM, "a file that was exchanged while it was opened")
