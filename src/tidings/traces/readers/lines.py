"""Lines of text files with where they stand, so that whatever is set aside can be found again.

Spark reads a large file in blocks, side by side, and numbers no lines. Every line therefore keeps
its file, the block it was read in and its place in the order of reading; from these, and how many
lines came before each block, the numbers of the few lines that need one are told afterwards.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator, Sequence
from functools import reduce
from pathlib import Path

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import Window as Rows
from pyspark.sql import functions as F

from tidings.errors import InvalidTracesError, UnsupportedError
from tidings.traces.actions import run_action
from tidings.traces.delta_log import read_log
from tidings.traces.places import lake_of, uncompressed
from tidings.traces.quarantine import REASON
from tidings.traces.spans.unpacking import TORN

FILE, BLOCK, PLACE, TEXT = "file", "block", "place", "text"
ORIGIN = (FILE, BLOCK, PLACE, TEXT)
NO_BLOCK = -1  # of a file that was read whole: places count its parts
_MARK = "\ufeff"  # of byte order
_LONGEST_HEADER = 1_000_000
NOT_UTF8 = "not text in UTF-8"
_TORN = "\0torn\0"  # stands for what follows, in the place of a line
_STEP = 1 << 16  # bytes read at once


def expand(sources: Sequence[str]) -> list[str]:
    """List the files that sources name: files, folders (with all below), globs; URLs stay.

    Raises :class:`InvalidTracesError` for a source that names none; needs no Spark.
    """
    expanded: list[str] = []
    for source in sources:
        if "://" in source and not source.startswith("file:"):
            expanded.append(source)
            continue
        name = "/" + source.removeprefix("file:").lstrip("/") if source[:5] == "file:" else source
        files = sorted(set(_local_files(os.path.expanduser(name))))
        if not files:
            saw = "a folder without files" if Path(name).is_dir() else "no such file"
            raise InvalidTracesError(
                f"{source}: {saw}; wants a file, a folder, a pattern such as 'logs/*.gz', or a URL"
            )
        expanded += files
    return list(dict.fromkeys(expanded))


def for_spark(path: str) -> str:
    """Write a file as Spark names it: with its scheme, and nothing that looks like a pattern."""
    if "://" in path:
        return path
    return "file://" + re.sub(r"([\[\]{}*?\\])", r"\\\1", path)


def read_lines(spark: SparkSession, files: Sequence[str], *, whole: bool = False) -> DataFrame:
    """Read every line that is not empty: ``text``, ``file``, ``block`` and ``place``.

    Files that have to be ``whole`` fail where they are torn; of others a line tells it.
    """
    columns = (F.col("value").alias(TEXT), *origin_of_lines())
    if whole:
        read = spark.read.text([for_spark(file) for file in files]).select(*columns)
        return read.where(_is_not_blank())
    read = _split(spark, files, None, *columns)
    return _with_torn(read.where(_is_not_blank()), files)


def read_dated_lines(
    spark: SparkSession, files: Sequence[str], separator: str | None = None
) -> DataFrame:
    """Read the same lines with when the file of each was last written, ``written_ns``.

    With a ``separator``, what lies between two of these counts as a line.
    """
    written = F.unix_micros(F.col("_metadata.file_modification_time")) * 1000
    text = F.col("value").alias(TEXT)
    read = _split(spark, files, separator, text, *origin_of_lines(), written.alias("written_ns"))
    return _with_torn(read.where(_is_not_blank()), files)


def first_bytes(file: str) -> bytes:
    """Read the begin of a file here, up to the end of its first line or as far as it goes.

    A compressed file that is torn gives what comes before the tear, if anything.
    """
    begin = b""
    try:
        with pa.input_stream(file, compression="detect") as stream:
            while len(begin) < _LONGEST_HEADER and b"\n" not in begin:
                part: bytes = stream.read(_STEP)
                if not part:
                    break
                begin += part
    except (OSError, pa.ArrowException) as problem:
        if not is_compressed(file):
            raise InvalidTracesError(f"{file} cannot be read: {problem}") from problem
    return begin


def first_line(spark: SparkSession, file: str) -> str:
    """Read the first line of a file, without white space at its end; empty where there is none.

    A byte order mark is no part of it, as it is none of the lines that Spark reads.
    """
    if "://" in file:
        begin = spark.read.text(file).where("_metadata.file_block_start = 0").limit(1)
        rows = run_action(begin.collect, file)
        return str(rows[0][0]).removeprefix(_MARK).rstrip() if rows else ""
    start = first_bytes(file)
    text = start.decode("utf-8", errors="replace").removeprefix(_MARK)
    return (text.splitlines() or [""])[0].rstrip()


def origin_of_lines() -> list[Column]:
    """Give the columns that say where a line of a text file is: file, block and order."""
    return [
        file_name(),
        F.col("_metadata.file_block_start").alias(BLOCK),
        F.monotonically_increasing_id().alias(PLACE),
    ]


def origin_of_rows() -> list[Column]:
    """Give the columns that say where a row of a Parquet file is: file, block and row."""
    return [
        file_name(),
        F.lit(0).cast("bigint").alias(BLOCK),
        F.col("_metadata.row_index").alias(PLACE),
    ]


def file_name() -> Column:
    """Give the file a row comes from, as people write it."""
    path = F.regexp_replace("_metadata.file_path", r"\+", "%2B")
    plain = F.coalesce(F.try_url_decode(path), F.col("_metadata.file_path"))
    return F.regexp_replace(plain, "^file:/+", "/").alias(FILE)


def not_utf8() -> Column:
    """Give the reason why a line is no text, null where it is one.

    Zero bytes are no text either: machines that lose power leave blocks of them in logs. What is
    torn off a compressed file is one line without text.
    """
    no_text = ~F.is_valid_utf8(TEXT) | F.col(TEXT).contains("\0")
    return F.when(F.col(TEXT).contains(_TORN), F.lit(TORN)).when(no_text, F.lit(NOT_UTF8))


def numbered(rows: DataFrame, files: Sequence[str], separator: str | None = None) -> DataFrame:
    """Add to rows the number of their ``line``, counted from 1 as editors do.

    Reads the files once more, for the number of lines in every block only. Of a file that was read
    whole, which is not among these, it is the number of the part.
    """
    lines = _split(rows.sparkSession, files, separator, *origin_of_lines())
    blocks = lines.groupBy(FILE, BLOCK).agg(
        F.min(PLACE).alias("first_place"), F.count(F.lit(1)).alias("lines")
    )
    before = Rows.partitionBy(FILE).orderBy(BLOCK).rowsBetween(Rows.unboundedPreceding, -1)
    starts = blocks.select(
        FILE,
        BLOCK,
        "first_place",
        F.coalesce(F.sum("lines").over(before), F.lit(0)).alias("lines_before"),
    )
    counted = F.col(PLACE) - F.col("first_place") + F.col("lines_before") + 1
    line = F.when(F.col(BLOCK) == NO_BLOCK, F.col(PLACE) + 1).otherwise(counted)
    return rows.join(F.broadcast(starts), [FILE, BLOCK], "left").withColumn("line", line)


def found_again(
    rows: DataFrame, files: Sequence[str] | None, separator: str | None = None
) -> DataFrame:
    """Give the rows as people look for them: ``reason``, ``file``, ``line`` and ``text``.

    Of text files, which have to be named, the line; of others, which of their rows it is.
    """
    counted = F.col(PLACE) + 1
    placed = rows.withColumn("line", counted) if files is None else numbered(rows, files, separator)
    return placed.select(REASON, FILE, "line", F.make_valid_utf8(F.col(TEXT)).alias(TEXT))


def _is_not_blank() -> Column:
    return F.trim(F.col(TEXT), F.lit(" \t\r\n")) != ""


def is_compressed(file: str) -> bool:
    """Tell whether a file here is compressed, by its name."""
    return "://" not in file and uncompressed(file) != file


def _split(
    spark: SparkSession, files: Sequence[str], separator: str | None, *columns: Column
) -> DataFrame:
    """Read text files, line by line or by another separator.

    Of compressed ones here that are torn, the lines before the tear: :func:`_with_torn` tells of
    the rest.
    """
    packed = [file for file in files if is_compressed(file)]
    plain = [file for file in files if not is_compressed(file)]
    frames = []
    for some, lenient in ((plain, "false"), (packed, "true")):
        if some:
            reader = spark.read.option("ignoreCorruptFiles", lenient)
            if separator is not None:
                reader = reader.option("lineSep", separator)
            frames.append(reader.text([for_spark(file) for file in some]).select(*columns))
    return reduce(DataFrame.unionByName, frames)


def _with_torn(rows: DataFrame, files: Sequence[str]) -> DataFrame:
    """Add to the lines one without text for each compressed file that is torn.

    Which ones are, tasks find out that unpack each of them once more, and keep nothing of it.
    """
    packed = [file for file in files if is_compressed(file)]
    if not packed:
        return rows
    names = pa.table({FILE: packed})
    torn = rows.sparkSession.createDataFrame(names).mapInArrow(_torn, f"{FILE} string")
    missing = {name: F.lit(None) for name in rows.columns}
    values = {**missing, FILE: F.col(FILE), BLOCK: F.lit(NO_BLOCK), TEXT: F.lit(_TORN)}
    types = dict(rows.dtypes)
    return rows.unionByName(
        torn.select(*(values[name].cast(types[name]).alias(name) for name in rows.columns))
    )


def _torn(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield which of these files cannot be unpacked to their end; on a worker."""
    for batch in batches:
        names = [name for name in batch.column(0).to_pylist() if _is_torn(name)]
        yield pa.RecordBatch.from_arrays([pa.array(names, pa.string())], names=[FILE])


def _is_torn(file: str) -> bool:
    try:
        with pa.input_stream(file, compression="detect") as stream:
            while stream.read(_STEP):
                pass
    except FileNotFoundError:
        return False  # Spark says so too
    except (OSError, pa.ArrowException):
        return True
    return False


def _local_files(name: str) -> Iterator[str]:
    for match in [name] if os.path.exists(name) else glob.glob(name, recursive=True):
        path = Path(match)
        if path.is_dir() and (lake := lake_of(path)):
            yield from _live_files(path, lake)
            continue
        inside = sorted(path.rglob("*")) if path.is_dir() else [path]
        for each in inside:
            hidden = any(part[0] in "._" for part in each.relative_to(path).parts)
            if each.is_file() and not hidden:
                yield str(each.resolve())


def _live_files(folder: Path, lake: str) -> tuple[str, ...]:
    """List the files that a table's log says hold its rows; removed ones may still be there."""
    if lake != "delta":
        raise UnsupportedError(
            f"{folder} is a table of {lake.title()}, of which files are not imported one by one; "
            "write it as plain Parquet or Delta first"
        )
    return read_log(folder).files
