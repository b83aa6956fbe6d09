"""CSV files read by columns: every cell a text, every distinct text kept once."""

from __future__ import annotations

import csv
import io
from array import array
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np

from tidings.model.arrays import Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class TextColumn:
    """The distinct texts of a column, in the order of their first rows, and which each row has."""

    texts: tuple[str, ...]
    codes: Ints


def header_of(first: list[str]) -> list[str]:
    """Read the names of the columns from the first line."""
    names = [name.strip() for name in first]
    if not names or len(set(names)) < len(names) or not all(names):
        raise ValueError("a first line without a different name for every column")
    return names


def read_csv_columns(file: BinaryIO) -> dict[str, TextColumn]:
    """Read a CSV file whose rows all have as many cells as the first line; else a ValueError."""
    with io.TextIOWrapper(file, encoding="utf-8-sig", newline="") as text:
        reader = csv.reader(text, strict=True)
        try:
            header = header_of(next(reader, []))
            seen: list[dict[str, int]] = [{} for _ in header]
            codes = [array("q") for _ in header]
            for cells in reader:
                if not cells:
                    continue
                if len(cells) != len(header):
                    raise ValueError(
                        f"{len(cells)} cells in line {reader.line_num} under {len(header)} names"
                    )
                for cell, known, column in zip(cells, seen, codes, strict=True):
                    column.append(known.setdefault(cell, len(known)))
        except csv.Error as error:
            raise ValueError(f"line {reader.line_num}: {error}") from error
    return {
        name: TextColumn(texts=tuple(known), codes=np.array(column, dtype=np.int64))
        for name, known, column in zip(header, seen, codes, strict=True)
    }
