"""Files of rows opened for reading, in whichever format, so that no line is misread or lost.

Text is read line by line and only then taken apart: a line that is not what it should be keeps its
reason, and everything knows its file and line.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from tidings.errors import InvalidTracesError
from tidings.model.json_text import parse
from tidings.traces.actions import reason_of
from tidings.traces.places import kind_of_name, uncompressed
from tidings.traces.quarantine import REASON
from tidings.traces.readers import lines
from tidings.traces.readers.json_text import path_of, quoted, with_object

NOT_JSON = "not one object in JSON"
NOT_CSV = "it does not have as many columns as the header"
OTHER_HEADER = "its file begins with another header than most"
OPEN_QUOTE = "a quote opens a column and does not close it"
_DOUBLED = "\u0001"  # stands for a doubled quote while quotes are checked
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


def open_flat(
    spark: SparkSession,
    files: Sequence[str],
    delimiter: str | None = None,
    *,
    whole: bool = False,
) -> Opened:
    """Open files of one kind (by their names), row by row, columns by name.

    Files that have to be ``whole`` fail where they are torn; of others a row tells it.
    """
    kind = _kind(files)
    if kind == "parquet":
        return _open_parquet(spark, files)
    rows = lines.read_lines(spark, files, whole=whole)
    if kind == "csv":
        return _open_csv(rows, files, delimiter, whole=whole)
    return _open_json(rows, files)


def _kind(files: Sequence[str]) -> str:
    """Give the one format of these files, by their names."""
    kinds = {file: _kind_of(file) for file in files}
    unknown = [file for file, kind in kinds.items() if kind is None]
    if unknown:
        raise InvalidTracesError(
            f"{unknown[0]}: unknown file type; wants a name that ends in .csv, .tsv, "
            ".tab, .jsonl, .ndjson, .json or .parquet (text also compressed: .gz, .bz2, "
            ".zst)"
        )
    formats = sorted({str(kind) for kind in kinds.values()})
    if len(formats) > 1:
        raise InvalidTracesError(
            f"files of several formats ({', '.join(formats)}); import one format at a time"
        )
    return formats[0]


def _kind_of(file: str) -> str | None:
    plain = uncompressed(file)
    if plain.endswith(_TABS):
        return "csv"
    return "json" if plain.endswith(".json") else kind_of_name(plain)


def _open_csv(
    read: DataFrame, files: Sequence[str], delimiter: str | None, *, whole: bool
) -> Opened:
    tabs = uncompressed(files[0]).endswith(_TABS)
    delimiter = delimiter or ("\t" if tabs else ",")
    header, others = _header(read.sparkSession, files, whole=whole)
    names = [name.strip() for name in next(csv.reader([header], delimiter=delimiter))]
    names[0] = names[0].lstrip("# ")
    cells = ", ".join(f"c{index} string" for index in range(len(names)))
    options = {"sep": delimiter, "escape": '"', "columnNameOfCorruptRecord": "torn"}
    rows = read.where(F.rtrim(lines.TEXT) != header).withColumn(
        "row", F.from_csv(lines.TEXT, f"{cells}, torn string", options)
    )
    torn = F.when(F.col("row.torn").isNotNull(), F.lit(NOT_CSV))
    strange = F.when(F.col(lines.FILE).isin(others), F.lit(OTHER_HEADER))
    wrong = F.coalesce(lines.not_utf8(), strange, _open_quote(delimiter), torn)

    def text(name: str) -> Column:
        if names.count(name) > 1:  # harmless in a column that nobody asks for
            raise InvalidTracesError(
                f"{files[0]}: its header contains {name} twice; wants each column name once"
            )
        return F.col(f"row.c{names.index(name)}")

    return Opened(
        rows=rows.withColumn(REASON, wrong),
        names=tuple(names),
        text=text,
        json=lambda name: quoted(text(name)),
    )


def _open_quote(delimiter: str) -> Column:
    """Give the reason why a line is wrong where a quoted column is not closed, or goes on after it.

    Spark's parser takes such columns as they come. Doubled quotes are marked, columns that are
    quoted as they should be are taken out; of those left, none may begin with a quote. No group is
    repeated, which in Java takes a stack as deep as the line is long.
    """
    sep = re.escape(delimiter)
    marked = F.replace(F.col(lines.TEXT), F.lit('""'), F.lit(_DOUBLED))
    proper = f'(^|{sep})(?:{_DOUBLED}*"[^"]*"|{_DOUBLED}+)(?=$|{sep})'
    left = F.regexp_replace(marked, proper, "$1")
    wrong = F.col(lines.TEXT).contains('"') & left.rlike(f'(^|{sep})["{_DOUBLED}]')
    return F.when(wrong, F.lit(OPEN_QUOTE))


def _header(spark: SparkSession, files: Sequence[str], *, whole: bool) -> tuple[str, list[str]]:
    """Find the header: the first line of most files; and the files that begin with another one.

    Of files that have to be ``whole``, and of those elsewhere, all have to begin with the same.
    """
    firsts = {file: first for file in files if (first := lines.first_line(spark, file))}
    if not firsts:
        raise InvalidTracesError(f"{files[0]}: got an empty file; wants a header and rows")
    texts = Counter(each for each in firsts.values() if not re.search("[\0\ufffd]", each))
    header, often = texts.most_common(1)[0] if texts else ("", 0)
    unsure = 2 * often <= texts.total()
    for file, first in firsts.items():
        if first == header or not (unsure or whole or "://" in file):
            continue
        if first not in texts:
            raise InvalidTracesError(
                f"{file}: its header is {lines.NOT_UTF8}; save it as UTF-8 "
                "(for example: iconv -f UTF-16 -t UTF-8)"
            )
        raise InvalidTracesError(
            f"{file} begins with another header than others: {first[:200]!r}, not "
            f"{header[:200]!r}; import it apart"
        )
    return header, [file for file, first in firsts.items() if first != header]


def _open_json(read: DataFrame, files: Sequence[str]) -> Opened:
    rows = with_object(read, "row")
    reason = F.when(F.col("row").isNull(), F.lit(NOT_JSON))

    def json(name: str) -> Column:
        cell = F.to_json(F.try_variant_get("row", path_of(name), "variant"))
        return F.nullif(cell, F.lit("null"))

    def text(name: str) -> Column:
        return F.coalesce(F.try_variant_get("row", path_of(name), "string"), json(name))

    return Opened(
        rows=rows.withColumn(REASON, F.coalesce(lines.not_utf8(), reason)),
        names=_names_in(lines.first_line(read.sparkSession, files[0])),
        text=text,
        json=json,
        fixed=False,
    )


def _names_in(line: str) -> tuple[str, ...]:
    try:
        document = parse(line)
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
        *lines.origin_of_rows(),
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
