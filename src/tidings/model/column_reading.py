"""Records read by columns: every distinct cell of a table once, however many rows share it.

Only tables that are all in order are read so. Where anything is not, the answer is None, and
reading row by row tells what it is.
"""

from __future__ import annotations

import csv
import dataclasses
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.csv

from tidings.model import records
from tidings.model.document import Place, Unreadable
from tidings.model.plain_files import open_plain, read_parquet
from tidings.model.record_tables import Coded, RecordTable, coded

Cell = Callable[[str, Any], Any]  # what a cell of a column means, as a document has it


def read_columns(file: Path, record: type, cell: Cell) -> RecordTable[Any] | None:
    """The records of a table whose rows are all in order; None where anything is not."""
    try:
        table = read_parquet(file) if file.suffix == ".parquet" else _csv(file)
    except (OSError, ValueError, csv.Error, pyarrow.ArrowException):
        return None
    fields = records.document_fields(record)
    if not set(table.column_names) <= {"name", *fields} or "name" not in table.column_names:
        return None
    names = table["name"].to_pylist()
    if not all(isinstance(name, str) and name for name in names) or len(set(names)) < len(names):
        return None
    columns: dict[str, Coded] = {}
    for key, field in fields.items():
        if key in table.column_names:
            cells = table[key].combine_chunks().dictionary_encode()
            values = [cell(key, each) for each in cells.dictionary.to_pylist()]
            codes = cells.indices.fill_null(len(values)).to_numpy(zero_copy_only=False)
            column = _coded(values, codes.astype(np.int64), field)
            if column is None:
                return None
            columns[field.name] = column
        elif field.default is records.REQUIRED:
            return None
    return RecordTable(record=record, names=tuple(names), columns=columns)


def _csv(file: Path) -> Any:
    """A CSV file with every cell a text."""
    with io.TextIOWrapper(open_plain(file), encoding="utf-8-sig", newline="") as text:
        header = [name.strip() for name in next(csv.reader(text, strict=True), [])]
    if not header or len(set(header)) < len(header):
        raise ValueError("a first line without a different name for every column")
    with open_plain(file) as cells:
        return pyarrow.csv.read_csv(
            cells,
            read_options=pyarrow.csv.ReadOptions(column_names=header, skip_rows=1),
            parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True),
            convert_options=pyarrow.csv.ConvertOptions(
                column_types=dict.fromkeys(header, pyarrow.string()), strings_can_be_null=False
            ),
        )


def _coded(
    cells: list[Any], codes: np.typing.NDArray[np.int64], field: dataclasses.Field[Any]
) -> Coded | None:
    """One column from its distinct cells; the code after the last of them is an empty cell."""
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
