"""From a frame with the right column names to the canonical types, noting what cannot be read."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from tidings.errors import InvalidTracesError, Problem
from tidings.model.trace_tables import TraceColumn as TraceColumn
from tidings.model.trace_tables import TraceTable
from tidings.traces.quarantine import UNREADABLE

_WORDS = {
    "bigint": "a whole number (digits only, below 2^63)",
    "double": "a number",
    "array<string>": "a list of names",
}
_WHOLE = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)
_FRACTIONAL = (T.FloatType, T.DoubleType, T.DecimalType)


def canonical(
    frame: DataFrame, table: TraceTable, where: str, keep: Sequence[str] = ()
) -> DataFrame:
    """Give a frame exactly the table's columns and types, and a column ``unreadable``.

    A nullable column may be missing; other columns are dropped, but for those to ``keep``. A value
    that is not of its type becomes null, and ``unreadable`` says so, unless it already says more.
    Raises :class:`InvalidTracesError` when a column that must be there is missing, or is of a type
    that no value of it could be read from.
    """
    kinds = {field.name: field.dataType for field in frame.schema.fields}
    problems = []
    columns: list[Column] = []
    unreadable: list[Column] = []
    texts: list[str] = []
    for column in table.columns:
        kind = kinds.get(column.name)
        if kind is None and not column.nullable:
            problems.append(_problem(column, "no such column"))
            continue
        read = _read(column, kind)
        if read is None:
            problems.append(_problem(column, f"a column of type {kind.simpleString()}"))  # type: ignore[union-attr]
            continue
        value, wrong = read
        columns.append(value.alias(column.name))
        if wrong is not None:
            unreadable.append(wrong)
            texts.append(f"{column.name} is not {_WORDS[column.type]}")
    if problems:
        names = ", ".join(name for name in kinds if name not in (UNREADABLE, *keep)) or "none"
        raise InvalidTracesError(
            f"{where}: wrong columns for {table.name} (its columns: {names})", problems
        )
    said: Column = F.lit(None).cast("string")
    for condition, text in zip(reversed(unreadable), reversed(texts), strict=True):
        said = F.when(condition, F.lit(text)).otherwise(said)
    if UNREADABLE in kinds:
        said = F.coalesce(F.col(UNREADABLE), said)
    return frame.select(*columns, said.alias(UNREADABLE), *keep)


def _problem(column: TraceColumn, saw: str) -> Problem:
    return Problem(at=column.name, saw=saw, want=f"{column.type}: {column.meaning}")


def _read(column: TraceColumn, kind: T.DataType | None) -> tuple[Column, Column | None] | None:
    """Read a column: its value, and when it cannot be read (None: always can); None: never can."""
    if kind is None or isinstance(kind, T.NullType):
        return F.lit(None).cast(column.type), None
    value = F.col(column.name)
    if column.type == "string":
        complex_types = (T.ArrayType, T.MapType, T.StructType, T.BinaryType)
        return None if isinstance(kind, complex_types) else (value.cast("string"), None)
    if column.type == "array<string>":
        return _read_names(value, kind)
    if isinstance(kind, _WHOLE):
        return value.cast(column.type), None
    if isinstance(kind, T.StringType):
        text = F.nullif(F.trim(value), F.lit(""))
        number = text.try_cast(column.type)
        return number, text.isNotNull() & number.isNull()
    if isinstance(kind, _FRACTIONAL):
        # Other tools keep whole numbers with gaps as floating point, and the gaps as NaN.
        given = F.when(~F.isnan(value.cast("double")), value)
        number = given.try_cast(column.type)
        return number, given.isNotNull() & (number.isNull() | (number != given))
    return None


def _read_names(value: Column, kind: T.DataType) -> tuple[Column, Column | None] | None:
    if isinstance(kind, T.ArrayType):
        return value.cast("array<string>"), None
    if not isinstance(kind, T.StringType):
        return None
    text = F.nullif(F.trim(value), F.lit(""))
    names = F.from_json(text, "array<string>")
    return names, text.isNotNull() & names.isNull()
