"""Parquet files read and written; pyarrow, which does it, is loaded when the first one is."""

from __future__ import annotations

import importlib
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from tidings.errors import missing_extra
from tidings.model.plain_files import check_below, open_plain


def load_arrow() -> Any:
    """Load pyarrow with its Parquet half; without it, the error says which extra brings it."""
    try:
        importlib.import_module("pyarrow.parquet")
        return importlib.import_module("pyarrow")
    except ImportError as error:
        raise missing_extra(error, "tables") or error from None


def read_parquet(path: Path) -> Any:
    """Read a Parquet table as Arrow has it: a plain file, or a folder of such files.

    What is no such table is a :class:`ValueError`; what cannot be opened, an :class:`OSError`.
    """
    if stat.S_ISDIR(path.lstat().st_mode):
        check_below(path)
        with _refusals() as arrow:
            return arrow.parquet.read_table(path)
    with open_plain(path) as file:
        return read_parquet_file(file)


def read_parquet_file(file: BinaryIO) -> Any:
    """Read a Parquet table as Arrow has it, from a file that is open."""
    with _refusals() as arrow:
        return arrow.parquet.read_table(file)


def write_parquet(columns: Mapping[str, Any], path: Path) -> None:
    """Write columns, each a list or an array, as one Parquet file."""
    arrow = load_arrow()
    arrow.parquet.write_table(arrow.table(dict(columns)), path)


@contextmanager
def _refusals() -> Iterator[Any]:
    arrow = load_arrow()
    try:
        yield arrow
    except arrow.ArrowException as error:
        if isinstance(error, OSError):
            raise
        raise ValueError(str(error)) from error
