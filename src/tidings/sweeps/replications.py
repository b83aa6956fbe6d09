"""Replications of a simulation on Spark: each runs whole on one worker, by the code of here."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

import pyarrow as pa

from tidings.errors import EngineError, TidingsError
from tidings.model import reading
from tidings.model.system import System
from tidings.simulation.hot_partitions import compile_steady
from tidings.simulation.network import CompiledSystem
from tidings.simulation.run import Replicate, replications
from tidings.simulation.tally import Counts
from tidings.simulation.world import Window
from tidings.traces.actions import reason_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

AT_ONCE = 64  # replications whose counts are brought here together
_RUN = "number bigint, counts binary"


def replicate_on(spark: SparkSession) -> Replicate:
    """Make a function that runs replications on this Spark, a task each.

    :func:`simulate` takes it as ``elsewhere``.
    """

    def run(system: System, window: Window, seed: int, numbers: range) -> Iterator[Counts]:
        # Not as text: names of files carry with them where these may lie.
        document = pickle.dumps(reading.system_document(system))
        for first in range(numbers.start, numbers.stop, AT_ONCE):
            some = range(first, min(first + AT_ONCE, numbers.stop))
            yield from _brought(spark, (document, window, seed), some)

    return run


def _brought(
    spark: SparkSession, work: tuple[bytes, Window, int], numbers: range
) -> Iterator[Counts]:
    def on_worker(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            asked = batch["id"].to_pylist()
            done = [_counted(*work, number) for number in asked]
            yield pa.RecordBatch.from_pydict({"number": asked, "counts": done})

    asked = spark.range(numbers.start, numbers.stop, numPartitions=len(numbers))
    try:
        runs = asked.mapInArrow(on_worker, _RUN).collect()
    except Exception as problem:
        raise EngineError(f"Spark failed on the replications: {reason_of(problem)}") from None
    for row in sorted(runs, key=lambda row: int(row.number)):
        counts = pickle.loads(row.counts)
        if isinstance(counts, TidingsError):
            raise counts
        yield counts


def _counted(document: bytes, window: Window, seed: int, number: int) -> bytes:
    """Run one replication; give what it counted, or why it could not be run, as bytes."""
    try:
        return pickle.dumps(next(replications(compiled_once(document), window, seed, [number])))
    except TidingsError as problem:
        return pickle.dumps(problem)


@lru_cache(maxsize=1)
def compiled_once(document: bytes) -> CompiledSystem:
    """Compile the system, once in the life of a worker."""
    return compile_steady(reading.from_document(pickle.loads(document)))
