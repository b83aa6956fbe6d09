"""Flat tables of one's own (CSV, JSON Lines, Parquet) by a mapping of their columns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from tidings.errors import InvalidTracesError, Problem
from tidings.model.trace_tables import TRACE_TABLES
from tidings.traces.quarantine import REASON, UNREADABLE
from tidings.traces.readers import lines
from tidings.traces.readers.json_text import attributes_json
from tidings.traces.readers.mapping import Field, TableMapping, TraceMapping
from tidings.traces.readers.opening import Opened, open_flat
from tidings.traces.readers.reading import Asked, Reader, Reading, candidates
from tidings.traces.readers.times import nanoseconds

NO_TABLE = "no table of the mapping uses it"


def read_flat(spark: SparkSession, files: Sequence[str], mapping: TraceMapping) -> Reading:
    """Read candidate rows of every table that a mapping makes of these files, all of one kind."""
    opened = open_flat(spark, files, mapping.delimiter)
    if opened.fixed:
        _require(mapping, opened.names, files[0])
    good = F.col(REASON).isNull()
    wanted = {table.name: _where(table, opened) for table in mapping.tables}
    tables = {
        table.name: candidates(
            _mapped(opened.rows.where(good & wanted[table.name]), table, opened),
            table.name,
            files[0],
        )
        for table in mapping.tables
    }
    by_some = reduce(Column.__or__, wanted.values())
    reason = F.coalesce(F.col(REASON), F.when(~by_some, F.lit(NO_TABLE)))
    return Reading(
        tables=tables,
        records=opened.rows.select(reason.alias(REASON), *lines.ORIGIN),
        noun=opened.noun,
        lines=opened.noun == "lines",
        passed_over=(NO_TABLE,),
    )


def _require(mapping: TraceMapping, present: Sequence[str], at: str) -> None:
    """Raise :class:`InvalidTracesError` unless all columns that the mapping names are there."""
    problems = [
        Problem(at=f"{table.name}.{name}", saw=f"no column '{column}'", want="one of its columns")
        for table in mapping.tables
        for name, each in [
            *table.fields.items(),
            *(("where", Field(column=c)) for c in table.where),
        ]
        for column in _named(each)
        if column not in present
    ]
    if problems:
        raise InvalidTracesError(
            f"{at} lacks some columns of the mapping (its columns: {', '.join(present)})", problems
        )


def _named(each: Field) -> list[str]:
    """List the columns that a field asks for."""
    own = [each.column] if each.column is not None else []
    more = _named(each.plus) if each.plus is not None else []
    return own + more + [attribute.column for attribute in each.attributes.values()]


# ---- from columns to fields ----------------------------------------------------------------------


def _where(table: TableMapping, opened: Opened) -> Column:
    wanted = [
        F.coalesce(opened.text(column).isin(*values), F.lit(False))
        for column, values in table.where.items()
    ]
    return reduce(Column.__and__, wanted, F.lit(True))


def _mapped(rows: DataFrame, table: TableMapping, opened: Opened) -> DataFrame:
    """Map the fields of a table to columns, and note what could not be read.

    Times are parsed in a step of their own, once each, although they are asked for twice.
    """
    times = {
        f"{name}_{index}": part
        for name, each in table.fields.items()
        if name.endswith("_ns")
        for index, part in enumerate(_parts(each))
    }
    parsed = rows.withColumns({key: _time(part, opened) for key, part in times.items()})
    columns: list[Column] = []
    wrong = [_not_a_time(key, part, opened) for key, part in times.items()]
    for name, each in table.fields.items():
        if name.endswith("_ns"):
            keys = [F.col(key) for key in times if key.rpartition("_")[0] == name]
            value = reduce(F.try_add, keys)
        else:
            value, unread = _value(each, opened)
            wrong += unread
        columns.append(value.alias(name))
    unreadable = F.coalesce(*wrong, F.lit(None).cast("string")).alias(UNREADABLE)
    return parsed.select(*columns, unreadable, *lines.ORIGIN)


def _value(each: Field, opened: Opened) -> tuple[Column, list[Column]]:
    if each.attributes:
        return attributes_json(
            {
                attribute: (origin.kind, opened.json(origin.column), opened.text(origin.column))
                for attribute, origin in each.attributes.items()
            }
        )
    text = _text(each, opened)
    if each.separator is not None:
        return F.split(text, re.escape(each.separator)), []
    return text, []


def _parts(each: Field) -> list[Field]:
    """List a time and those that are added to it."""
    return [each, *(_parts(each.plus) if each.plus is not None else [])]


def _text(each: Field, opened: Opened) -> Column:
    text = F.lit(each.constant) if each.column is None else opened.text(each.column)
    for saw, meant in each.values.items():
        text = F.when(F.trim(text) == saw, F.lit(meant)).otherwise(text)
    return text


def _time(each: Field, opened: Opened) -> Column:
    value = nanoseconds(_text(each, opened), each.unit)
    if each.times == 1.0:
        return value
    scaled = value.cast("decimal(19,0)") * F.lit(Decimal(str(each.times)))
    return F.round(scaled, 0).try_cast("bigint")


def _not_a_time(key: str, each: Field, opened: Opened) -> Column:
    given = F.trim(_text(each, opened)) != ""
    name = key.rpartition("_")[0]
    return F.when(given & F.col(key).isNull(), F.lit(f"{name} is not a time in {each.unit}"))


def _read(spark: SparkSession, files: Sequence[str], asked: Asked) -> Reading:
    if asked.mapping is None:
        raise InvalidTracesError(f"{files[0]}: a table of one's own is read by a mapping")
    return read_flat(spark, files, asked.mapping)


READER = Reader(
    about="columns of your own, by a mapping",
    tables=tuple(TRACE_TABLES),
    read=_read,
    wants=("mapping",),
)
