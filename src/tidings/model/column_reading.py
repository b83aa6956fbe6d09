"""Records read by columns: every distinct cell of a table once, however many rows share it.

Only tables that are all in order are read so. Where anything is not, the answer is None, and
reading row by row tells what it is.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tidings.model import records
from tidings.model.arrays import Ints
from tidings.model.csv_files import read_csv_columns
from tidings.model.document import Place, Unreadable
from tidings.model.parquet_files import read_parquet
from tidings.model.plain_files import open_plain
from tidings.model.record_tables import Coded, RecordTable, coded

Cell = Callable[[str, Any], Any]  # what a cell of a column means, as a document has it
_Cells = tuple[list[Any], Ints]  # the distinct cells of a column, and which of them each row has


def read_columns(file: Path, record: type, cell: Cell) -> RecordTable[Any] | None:
    """Read the records of a table by columns; give None unless all rows are valid."""
    try:
        table = _parquet(file) if file.suffix == ".parquet" else _csv(file)
    except (OSError, ValueError):
        return None
    fields = records.document_fields(record)
    if not set(table) <= {"name", *fields} or "name" not in table:
        return None
    distinct, rows = table["name"]
    if not all(isinstance(name, str) and name for name in distinct) or len(distinct) < len(rows):
        return None
    columns: dict[str, Coded] = {}
    for key, field in fields.items():
        if key in table:
            cells, codes = table[key]
            column = _coded([cell(key, each) for each in cells], codes, field)
            if column is None:
                return None
            columns[field.name] = column
        elif field.default is records.REQUIRED:
            return None
    names = tuple(distinct[code] for code in rows.tolist())
    return RecordTable(record=record, names=names, columns=columns)


def _csv(file: Path) -> dict[str, _Cells]:
    """Read the columns of a CSV file; every cell is a text."""
    with open_plain(file) as cells:
        columns = read_csv_columns(cells)
    return {name: (list(column.texts), column.codes) for name, column in columns.items()}


def _parquet(file: Path) -> dict[str, _Cells]:
    """Read the columns of a Parquet table; the code after the last distinct cell means empty."""
    table = read_parquet(file)
    columns: dict[str, _Cells] = {}
    for name in table.column_names:
        cells = table[name].combine_chunks().dictionary_encode()
        distinct = cells.dictionary.to_pylist()
        codes = cells.indices.fill_null(len(distinct)).to_numpy(zero_copy_only=False)
        columns[name] = distinct, codes.astype(np.int64)
    return columns


def _coded(cells: list[Any], codes: Ints, field: dataclasses.Field[Any]) -> Coded | None:
    """Make one column from its distinct cells; give None if a row has one that is unreadable.

    The code after the last distinct cell is an empty cell.
    """
    read = [_read(cell, field) for cell in [*cells, None]]
    used = dict.fromkeys(codes.tolist())  # in the order in which they first appear
    if any(read[code] is _UNREADABLE for code in used):
        return None
    present = coded(read[code] for code in used)
    place_of = {value: place for place, value in enumerate(present.values)}
    code_of = [place_of.get(value, -1) for value in read]  # −1: a cell that no row has
    return Coded(values=present.values, codes=np.array(code_of, dtype=np.int64)[codes])


def _read(cell: Any, field: dataclasses.Field[Any]) -> Any:
    if cell is None or cell == "":
        return _UNREADABLE if field.default is records.REQUIRED else field.default
    place = Place(cell)
    value = field.metadata["kind"].read(place)
    return _UNREADABLE if place.problems or isinstance(cell, Unreadable) else value


_UNREADABLE = object()
