"""Tables of which a log or a catalog says where their rows are: Delta, Iceberg, Hudi, catalogs.

Simple Delta tables here are read by their log; everything else by whatever Spark has for it, which
a user brings along: jars, catalogs, credentials.
"""

from __future__ import annotations

from pathlib import Path

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_schema

from tidings.errors import InvalidTracesError, UnsupportedError
from tidings.model import json_text
from tidings.model.trace_tables import TraceTable
from tidings.traces.delta_log import DeltaTable, read_log
from tidings.traces.places import CATALOG, LAKES, URL, TablePlace, place_of
from tidings.traces.readers.lines import for_spark

NAMES = {"delta": "Delta", "hudi": "Hudi", "iceberg": "Iceberg"}
_ABSENT = ("PATH_NOT_FOUND", "TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND")


def open_logged(spark: SparkSession, table: TraceTable, place: TablePlace) -> DataFrame:
    """Open a table of a catalog, one elsewhere, or one whose log says which files hold its rows."""
    if place.kind == CATALOG:
        return spark.table(place.path)
    kind = _kind_elsewhere(spark, place.path) if place.kind == URL else place.kind
    if kind == "parquet":
        return spark.read.parquet(place.path)
    name, remote = place_of(place.path)
    why = f"{name} is a table of {NAMES[kind]}"
    if kind == "delta" and not remote:
        try:
            return _open_delta(spark, table, Path(name), read_log(Path(name)))
        except UnsupportedError as problem:
            why = str(problem)
    try:
        return spark.read.format(kind).load(place.path)
    except Exception as problem:  # of Java, or of Spark Connect
        if "DATA_SOURCE_NOT_FOUND" not in str(problem):
            raise
        raise UnsupportedError(
            f"{why}, and Spark has no {NAMES[kind]} here; hand it over (tidings --spark-conf "
            "spark.jars.packages=…, or a cluster that has it), or write the table as plain Parquet"
        ) from problem


def is_absent(problem: AnalysisException) -> bool:
    """Tell whether Spark says that there is no such table."""
    return problem.getCondition() in _ABSENT


def _kind_elsewhere(spark: SparkSession, path: str) -> str:
    """Tell in which format a folder behind a URL is a table, by what is in it."""
    any_of_them = ",".join(mark.partition("/")[0] for mark in LAKES.values())
    if not _is_there(spark, f"{path}/{{{any_of_them}}}/*"):  # nearly always, so it is asked first
        return "parquet"
    marks = (kind for kind, mark in LAKES.items() if _is_there(spark, f"{path}/{mark}"))
    return next(marks, "parquet")


def _is_there(spark: SparkSession, pattern: str) -> bool:
    try:
        return bool(spark.read.text(pattern).schema)
    except AnalysisException as problem:
        if is_absent(problem):
            return False
        raise


def _open_delta(
    spark: SparkSession, table: TraceTable, folder: Path, delta: DeltaTable
) -> DataFrame:
    """Open the files that a log says are live, with the columns it says they have.

    What a table is partitioned by stands in no file. Of our columns, it is taken from the names of
    folders, which must say it.
    """
    ours = {column.name for column in table.columns}
    for name in ours.intersection(delta.partitioned_by):
        if not all(f"/{name}=" in file.removeprefix(str(folder)) for file in delta.files):
            raise UnsupportedError(
                f"{folder} is a Delta table whose column {name} stands only in its log"
            )
    try:
        schema = T.StructType.fromJson(json_text.parse(delta.schema))
    except (ValueError, LookupError, TypeError) as problem:
        raise InvalidTracesError(
            f"{folder}: its log has a schema that is none: {problem}"
        ) from problem
    if not delta.files:
        return spark.createDataFrame(to_arrow_schema(schema).empty_table(), schema)
    reader = spark.read.schema(schema).option("basePath", for_spark(str(folder.absolute())))
    return reader.parquet(*map(for_spark, delta.files))
