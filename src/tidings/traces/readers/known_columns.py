"""Columns found by names that people commonly give them, with the unit in the name."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F

from tidings.errors import InvalidTracesError
from tidings.traces.readers.opening import Opened
from tidings.traces.readers.times import ISO, NANOSECONDS_PER, nanoseconds


def find(opened: Opened, wanted: Sequence[str], file: str) -> str:
    """Find the first of these columns that a file has.

    Raises :class:`InvalidTracesError` where it has none of them.
    """
    for name in wanted:
        if name in opened.names:
            return name
    raise _missing(opened, wanted, file)


def find_time(opened: Opened, stems: Sequence[str], file: str, unit: str) -> tuple[str, str]:
    """Find the first such column and its unit: ms for ``sent_ms``, ``unit`` for ``sent``."""
    column_and_unit = has_time(opened, stems, unit)
    if column_and_unit is None:
        raise _missing(opened, [*stems, f"{stems[0]}_ms"], file)
    return column_and_unit


def has_time(opened: Opened, stems: Sequence[str], unit: str) -> tuple[str, str] | None:
    """Find the first such column and its unit; None where there is no such column."""
    for stem in stems:
        if stem in opened.names:
            return stem, unit
        for each in NANOSECONDS_PER:
            if f"{stem}_{each}" in opened.names:
                return f"{stem}_{each}", each
    return None


def moment(opened: Opened, column: str, unit: str) -> Column:
    """Read a time in its unit or in ISO 8601, in nanoseconds; null where it is neither."""
    text = opened.text(column)
    return F.coalesce(nanoseconds(text, unit), nanoseconds(text, ISO))


def not_a_time(opened: Opened, column: str, unit: str, moments: str) -> Column:
    """Say why a text is no time: ``moments``, the column of its times, has none for it."""
    absent = F.upper(F.trim(opened.text(column))).isin("", "NULL", "\\N", "NA", "NAN", "NONE")
    wrong = F.lit(f"{column} is not a time in {unit} or ISO 8601")
    return F.when(~absent & F.col(moments).isNull(), wrong)


def _missing(opened: Opened, wanted: Sequence[str], file: str) -> InvalidTracesError:
    return InvalidTracesError(
        f"{file} has none of the columns {', '.join(wanted)} (its columns: "
        f"{', '.join(opened.names)}); rename one, or import it as 'table' with a mapping"
    )
