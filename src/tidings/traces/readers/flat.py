"""Flat tables of one's own (CSV, JSON Lines, Parquet) by a mapping of their columns."""

from __future__ import annotations

import csv
import json as json_module
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from tidings.errors import InvalidTracesError, Problem
from tidings.traces.actions import reason_of
from tidings.traces.quarantine import REASON, UNREADABLE
from tidings.traces.readers import lines
from tidings.traces.readers.json_text import attributes_json, path_of, quoted
from tidings.traces.readers.mapping import Field, TableMapping, TraceMapping
from tidings.traces.readers.reading import Reading, candidates
from tidings.traces.readers.times import nanoseconds
from tidings.traces.reading import kind_of_name

NOT_JSON = "not a line of JSON"
NOT_CSV = "it has not as many columns as the header"
NO_TABLE = "no table of the mapping wants it"
_TABS = (".tsv", ".tab")


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """Files opened: rows with their origin and line-wise reason, and how a column is asked for."""

    rows: DataFrame
    names: tuple[str, ...]  # of the columns; of JSON Lines those of the first line
    text: Callable[[str], Column]  # a column as text
    json: Callable[[str], Column]  # a column as a piece of JSON, of its own kind
    noun: str = "lines"
    fixed: bool = True  # whether all rows have the same columns


def read_flat(spark: SparkSession, files: Sequence[str], mapping: TraceMapping) -> Reading:
    """Candidate rows of every table that a mapping makes of these files, which are of one kind."""
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


# ---- opening -------------------------------------------------------------------------------------


def open_flat(spark: SparkSession, files: Sequence[str], delimiter: str | None = None) -> Opened:
    """Files of one kind (by their names), row by row, columns by name."""
    kind = _kind(files)
    if kind == "csv":
        return _open_csv(spark, files, delimiter)
    return _open_json(spark, files) if kind == "json" else _open_parquet(spark, files)


def _kind(files: Sequence[str]) -> str:
    """The one format of these files, by their names."""
    kinds = {file: _kind_of(file) for file in files}
    unknown = [file for file, kind in kinds.items() if kind is None]
    if unknown:
        raise InvalidTracesError(
            f"{unknown[0]}: what is in it? wants a name that ends in .csv, .tsv, .tab, .jsonl, "
            ".ndjson, .json or .parquet (text also compressed: .gz, .bz2, .zst)"
        )
    found = sorted({str(kind) for kind in kinds.values()})
    if len(found) > 1:
        raise InvalidTracesError(f"files of several formats ({', '.join(found)}); wants one a time")
    return found[0]


def _kind_of(file: str) -> str | None:
    plain = _uncompressed(file)
    if plain.endswith(_TABS):
        return "csv"
    return "json" if plain.endswith(".json") else kind_of_name(plain)


def _uncompressed(file: str) -> str:
    return file.removesuffix(".gz").removesuffix(".bz2").removesuffix(".zst")


def _open_csv(spark: SparkSession, files: Sequence[str], delimiter: str | None) -> Opened:
    tabs = _uncompressed(files[0]).endswith(_TABS)
    delimiter = delimiter or ("\t" if tabs else ",")
    header = _first_line(spark, files)
    names = [name.strip() for name in next(csv.reader([header], delimiter=delimiter))]
    names[0] = names[0].removeprefix("\ufeff").lstrip("# ")
    cells = ", ".join(f"c{index} string" for index in range(len(names)))
    options = {"sep": delimiter, "escape": '"', "columnNameOfCorruptRecord": "torn"}
    rows = (
        lines.read_lines(spark, files)
        .where(F.rtrim(lines.TEXT) != header)
        .withColumn("row", F.from_csv(lines.TEXT, f"{cells}, torn string", options))
    )
    torn = F.when(F.col("row.torn").isNotNull(), F.lit(NOT_CSV))

    def text(name: str) -> Column:
        return F.col(f"row.c{names.index(name)}")

    return Opened(
        rows=rows.withColumn(REASON, F.coalesce(lines.not_utf8(), torn)),
        names=tuple(names),
        text=text,
        json=lambda name: quoted(text(name)),
    )


def _first_line(spark: SparkSession, files: Sequence[str]) -> str:
    """The header: the first line of all files that are not empty, which must be the same."""
    header = ""
    for file in files:
        first = lines.first_line(spark, file)
        if header and first and first != header:
            raise InvalidTracesError(
                f"{file} begins with another header than {files[0]}: {first[:200]!r}; "
                "import it apart, with its own mapping"
            )
        header = header or first
    if not header:
        raise InvalidTracesError(f"{files[0]}: got an empty file; wants a header and rows")
    return header


def _open_json(spark: SparkSession, files: Sequence[str]) -> Opened:
    rows = lines.read_lines(spark, files).withColumn("row", F.try_parse_json(lines.TEXT))
    reason = F.when(F.col("row").isNull(), F.lit(NOT_JSON))

    def json(name: str) -> Column:
        found = F.to_json(F.try_variant_get("row", path_of(name), "variant"))
        return F.nullif(found, F.lit("null"))

    def text(name: str) -> Column:
        return F.coalesce(F.try_variant_get("row", path_of(name), "string"), json(name))

    return Opened(
        rows=rows.withColumn(REASON, F.coalesce(lines.not_utf8(), reason)),
        names=_names_in(lines.first_line(spark, files[0])),
        text=text,
        json=json,
        fixed=False,
    )


def _names_in(line: str) -> tuple[str, ...]:
    try:
        document = json_module.loads(line)
    except ValueError:
        return ()
    return tuple(document) if isinstance(document, dict) else ()


def _open_parquet(spark: SparkSession, files: Sequence[str]) -> Opened:
    try:
        frame = spark.read.parquet(*[lines.for_spark(file) for file in files])
    except AnalysisException as problem:
        raise InvalidTracesError(f"{files[0]}: {str(problem).strip().splitlines()[0]}") from problem
    except Exception as problem:  # whatever a broken file makes the reader throw
        why = reason_of(problem)
        raise InvalidTracesError(f"{files[0]}: cannot be read as Parquet: {why}") from problem
    kinds = {each.name: each.dataType for each in frame.schema.fields}
    rows = frame.select(
        F.struct(*(F.col(f"`{name}`") for name in kinds)).alias("row"),
        lines.file_name(),
        F.lit(0).cast("bigint").alias(lines.BLOCK),
        F.col("_metadata.row_index").alias(lines.PLACE),
        F.lit(None).cast("string").alias(REASON),
    ).withColumn(lines.TEXT, F.to_json("row"))

    def text(name: str) -> Column:
        value = F.col("row").getField(name)
        nested = isinstance(kinds[name], T.ArrayType | T.MapType | T.StructType)
        if isinstance(kinds[name], T.FloatType | T.DoubleType):
            value = F.when(~F.isnan(value), value)
        return F.to_json(value) if nested else value.cast("string")

    def json(name: str) -> Column:
        plain = isinstance(kinds[name], T.NumericType | T.BooleanType | T.ArrayType | T.StructType)
        return text(name) if plain else quoted(text(name))

    return Opened(rows=rows, names=tuple(kinds), text=text, json=json, noun="rows")


def _require(mapping: TraceMapping, found: Sequence[str], at: str) -> None:
    """Raise :class:`InvalidTracesError` unless all columns that the mapping names are there."""
    problems = [
        Problem(at=f"{table.name}.{name}", saw=f"no column '{column}'", want="one of those found")
        for table in mapping.tables
        for name, each in [
            *table.fields.items(),
            *(("where", Field(column=c)) for c in table.where),
        ]
        for column in _named(each)
        if column not in found
    ]
    if problems:
        raise InvalidTracesError(
            f"{at} has not all columns of the mapping (found: {', '.join(found)})", problems
        )


def _named(each: Field) -> list[str]:
    """The columns that a field asks for."""
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
    """The fields of a table as columns, and what could not be made out.

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
        return F.split(text, _literally(each.separator)), []
    return text, []


def _parts(each: Field) -> list[Field]:
    """A time and those that are added to it."""
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


def _literally(separator: str) -> str:
    return "".join(f"\\{c}" if not c.isalnum() and not c.isspace() else c for c in separator)
