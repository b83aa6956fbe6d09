"""Files of spans as lines of OTLP JSON, whichever format they have.

Lines of OTLP JSON are read by Spark, in blocks, side by side. What cannot be cut anywhere (one
indented document, protobuf, Jaeger, Zipkin) is read whole, a file to a task and never here, and
turned into such lines there; a file may therefore have a certain size at most.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidings.errors import InvalidTracesError
from tidings.traces.actions import run_action
from tidings.traces.places import uncompressed
from tidings.traces.readers import lines
from tidings.traces.spans.documents import MOST_BYTES, pieces

REFUSED = "refused"  # why a piece of a file could not be turned into a line of OTLP JSON
BINARY = (".pb", ".binpb", ".protobuf", ".proto")  # how names of files in protobuf end
_PIECES = f"{lines.FILE} string, {lines.PLACE} bigint, {lines.TEXT} string, {REFUSED} string"
_EXPORT = re.compile(r'\{\s*"resourceSpans"')
_DOCUMENT = re.compile(r'\[|\{\s*"(data|batches|trace|traceID|traceId|spans|id|parentId)"')
_OPEN = ("{", "[", ",", ":")  # how a line ends that goes on in the next one


def read_span_lines(spark: SparkSession, files: Sequence[str]) -> tuple[DataFrame, tuple[str, ...]]:
    """Read every export of spans as a line, with its origin.

    Also gives which files were read line by line.
    """
    kinds = {file: is_in_lines(spark, file) for file in files}
    by_line = tuple(file for file, plain in kinds.items() if plain)
    whole = [file for file, plain in kinds.items() if not plain]
    frames = []
    if by_line:
        read = lines.read_lines(spark, by_line)
        frames.append(read.withColumn(REFUSED, F.lit(None).cast("string")))
    if whole:
        frames.append(_read_whole(spark, whole))
    return (frames[0] if len(frames) == 1 else frames[0].unionByName(frames[1])), by_line


def is_in_lines(spark: SparkSession, file: str) -> bool:
    """Tell whether a file has an export of OTLP JSON on every line, by its begin.

    Whatever does not look like one document is taken to be: then every line has its own fate.
    """
    if uncompressed(file).endswith(BINARY):
        return False
    if "://" in file:
        begin = lines.first_line(spark, file)
    else:
        data = lines.first_bytes(file)
        if _is_binary(data):
            return False
        begin = data.decode("utf-8", errors="replace")
    begin = begin.lstrip("\ufeff \t\r\n")
    first = begin.partition("\n")[0].rstrip()
    if first.endswith(_OPEN) and first[:1] in ("{", "["):
        return False
    return _EXPORT.match(first) is not None or _DOCUMENT.match(first) is None


def _is_binary(data: bytes) -> bool:
    """Tell whether bytes begin with a length, or with the first field of an export in protobuf."""
    if data[:1] == b"\0":
        return data[:4] != b"\0\0\0\0"  # zeros are what a power cut leaves
    return data[:1] == b"\n" and "\ufffd" in data[:1024].decode("utf-8", errors="replace")[:-1]


def _read_whole(spark: SparkSession, files: Sequence[str]) -> DataFrame:
    """Read files a task each; those of more bytes than fit are refused before any is read."""
    paths = [lines.for_spark(file) for file in files]
    files_read = spark.read.format("binaryFile").load(paths)
    _check_sizes(files_read, files)
    named = files_read.select(lines.file_name(), "content")
    read = named.mapInArrow(_pieces_of, _PIECES)
    return read.select(
        lines.FILE, F.lit(lines.NO_BLOCK).cast("bigint").alias(lines.BLOCK), lines.PLACE,
        lines.TEXT, REFUSED,
    )  # fmt: skip


def _check_sizes(contents: DataFrame, files: Sequence[str]) -> None:
    """Raise :class:`InvalidTracesError` for the largest file, where it is too large."""
    here = [(os.stat(file).st_size, file) for file in files if "://" not in file]
    if len(here) < len(files):
        largest = contents.agg(F.max(F.struct("length", "path")).alias("it"))
        row: Any = run_action(largest.collect, files[0])[0]["it"]
        here += [] if row is None else [(row["length"], row["path"])]
    size, file = max(here)
    if size > MOST_BYTES:
        raise InvalidTracesError(
            f"{file} has {size >> 20} MiB; a file that is not in lines is read whole and may have "
            f"{MOST_BYTES >> 20} MiB: export it in parts, or as lines of OTLP JSON, of any size"
        )


def _pieces_of(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Turn whole files into lines, on a worker; a file's lines are handed on a batch at a time."""
    for batch in batches:
        for name, content in zip(batch.column(0), batch.column(1), strict=True):
            rows: list[tuple[int, str, str | None]] = []
            for place, each in enumerate(pieces(content.as_py())):
                rows.append((place, each.text, each.reason))
                if len(rows) == 100:
                    yield _batch(name.as_py(), rows)
                    rows = []
            yield _batch(name.as_py(), rows)


def _batch(file: str, rows: Sequence[tuple[int, str, str | None]]) -> pa.RecordBatch:
    places, texts, reasons = zip(*rows, strict=True) if rows else ((), (), ())
    return pa.RecordBatch.from_arrays(
        [
            pa.array([file] * len(rows), pa.string()),
            pa.array(places, pa.int64()),
            pa.array(texts, pa.string()),
            pa.array(reasons, pa.string()),
        ],
        names=[lines.FILE, lines.PLACE, lines.TEXT, REFUSED],
    )
