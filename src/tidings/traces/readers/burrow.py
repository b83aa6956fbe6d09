"""Answers of Burrow, ``/v3/kafka/CLUSTER/consumer/GROUP/lag``: offsets and lag by partition.

Of every partition the first and the last commit of Burrow's window are told: how far the group was,
and how far behind.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tidings.traces.readers.pages import COUNT, POLLED, levels_reading, read_pages
from tidings.traces.readers.reading import Reader, Reading

_COMMIT = f"struct<offset: {COUNT}, timestamp: bigint, lag: {COUNT}>"
_PARTITION = f"struct<topic: string, partition: bigint, start: {_COMMIT}, `end`: {_COMMIT}>"
PAGE = f"{POLLED}, status struct<cluster: string, `group`: string, partitions: array<{_PARTITION}>>"


def read_burrow(spark: SparkSession, files: Sequence[str]) -> Reading:
    """Read candidate levels; a queue is called by its group, a part by topic and partition."""
    pages = read_pages(spark, files, PAGE)
    commits = F.flatten(
        F.transform(
            "page.status.partitions",
            lambda each: F.transform(
                F.filter(F.array(each["start"], each["end"]), lambda commit: commit.isNotNull()),
                lambda commit: F.struct(
                    F.concat_ws("/", each["topic"], each["partition"]).alias("part"),
                    commit.alias("at"),
                ),
            ),
        )
    )
    return levels_reading(
        pages,
        commits,
        files,
        F.col("page.status.group").alias("queue"),
        F.col("page.status.cluster").alias("owner"),
        F.col("each.part").alias("part"),
        F.try_multiply(F.col("each.at.timestamp"), F.lit(10**6)).alias("at_ns"),
        (F.col("each.at.offset") + F.col("each.at.lag")).alias("entered"),
        F.col("each.at.offset").alias("done"),
        owners="clusters",
    )


READER = Reader(
    about="answers of Burrow, of Kafka's consumer groups",
    tables=("levels",),
    read=lambda spark, files, _: read_burrow(spark, files),
)
