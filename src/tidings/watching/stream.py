"""The files of a folder that grows, micro-batch by micro-batch, by Structured Streaming.

The stream is one of file names: which files are new is Spark's affair, with a checkpoint that
outlives the process; rows are read by those who know tables and formats, as in batch.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tidings.errors import EngineError, TidingsError
from tidings.model.writing import keep_below
from tidings.traces.actions import reason_of

_FILES = "path string, modificationTime timestamp, length bigint, content binary"
# Spark would pass over files that are a week older than the newest it has ever seen: one file
# with a wrong date, and nothing would be taken in any more.
_ANY_AGE = "36500d"
_ENDINGS = "*.{parquet,csv,jsonl,ndjson,gz,bz2,zst}"


def take_new_files(
    spark: SparkSession,
    source: Path,
    checkpoint: Path,
    take: Callable[[int, list[str]], None],
    *,
    most_files: int = 1000,
) -> None:
    """Hand all files that are new to ``take``, so many at a time, each time with a batch number.

    A batch that was begun and not ended, when the process was killed say, comes again with the same
    number and the same files.
    """
    failed: list[BaseException] = []

    def hand_over(batch: DataFrame, number: int) -> None:
        try:
            keep_below(checkpoint)  # see checkpoint.py
            paths = [_local(row.path) for row in batch.select("path").collect()]
            take(number, paths)
        except BaseException as problem:
            failed.append(problem)
            raise

    files = (
        spark.readStream.format("binaryFile")
        .schema(_FILES)
        .option("recursiveFileLookup", "true")
        .option("pathGlobFilter", _ENDINGS)
        .option("maxFilesPerTrigger", most_files)
        .option("maxFileAge", _ANY_AGE)
        .load(f"file://{source.resolve()}")
        .select("path")
    )
    query = (
        files.writeStream.foreachBatch(hand_over)
        .option("checkpointLocation", f"file://{checkpoint.resolve()}")
        .trigger(availableNow=True)
        .start()
    )
    # What goes wrong is raised below: no need to have it told with its traceback as well.
    logging.getLogger("py4j.clientserver").setLevel(logging.CRITICAL)
    try:
        query.awaitTermination()
    except StreamingQueryException as problem:
        if failed and isinstance(failed[0], TidingsError):
            raise failed[0] from None
        raise EngineError(f"the stream of {source} failed: {reason_of(problem)}") from problem
    except KeyboardInterrupt:
        _stop_at_once(spark, query)
        raise
    finally:
        query.stop()


def _stop_at_once(spark: SparkSession, query: StreamingQuery) -> None:
    """Stop a query without waiting for its batch, which would go on with one job after the other.

    The batch comes again the next time.
    """
    stopping = threading.Thread(target=query.stop, daemon=True)
    stopping.start()
    while stopping.is_alive():
        spark.sparkContext.cancelAllJobs()
        stopping.join(0.1)


def _local(name: str) -> str:
    """Give the local path of a file that Spark names with a scheme, and otherwise as it is.

    >>> _local("file:/in/hops/a b#1.csv")
    '/in/hops/a b#1.csv'
    """
    return f"/{name.removeprefix('file:').lstrip('/')}" if name.startswith("file:") else name
