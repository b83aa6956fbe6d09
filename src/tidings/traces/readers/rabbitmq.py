"""Polls of RabbitMQ's management API, ``/api/queues``: what came in, and what is there.

The page does not tell when it was read: that is the time of the file, unless whoever polls has
added it. What left is what came in less what is there, so that both curves fit together whatever
became of the messages; of these, what no consumer was done with was dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from operator import add

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from tidings.traces.readers.derived import UNHANDLED, with_unhandled, without_steps_back
from tidings.traces.readers.json_text import object_json
from tidings.traces.readers.pages import COUNT, POLLED, levels_reading, read_pages
from tidings.traces.readers.reading import Reader, Reading

_QUEUE = (
    f"struct<name: string, vhost: string, messages: {COUNT}, messages_unacknowledged: {COUNT}, "
    f"message_stats: struct<publish: {COUNT}, redeliver: {COUNT}, drop_unroutable: {COUNT}, "
    f"ack: {COUNT}, deliver_no_ack: {COUNT}, get_no_ack: {COUNT}>>"
)
PAGE = f"{POLLED}, rows array<{_QUEUE}>, page array<{_QUEUE}>, items array<{_QUEUE}>"
_GOT = ("ack", "deliver_no_ack", "get_no_ack")  # how consumers are done with a message
# Messages that were there before counting began: both counters are ahead, so that none is negative.
_AHEAD = 2**40
_DATED = (
    "pages of RabbitMQ do not say when they were read: where nobody added polled_ns, it is when "
    "their file was written, so that each needs a file of its own"
)


def read_rabbitmq_polls(spark: SparkSession, files: Sequence[str]) -> Reading:
    """Read candidate levels from polls; queues are called as they are."""
    pages = read_pages(spark, files, PAGE)
    entered = F.coalesce(F.col("each.message_stats.publish"), F.lit(0))
    # A queue that nobody consumes from has none of these; it may still drop.
    handled = reduce(
        add, (F.coalesce(F.col(f"each.message_stats.{how}"), F.lit(0)) for how in _GOT)
    )
    reading = levels_reading(
        pages,
        F.coalesce("page.rows", "page.page", "page.items"),
        files,
        F.col("each.name").alias("queue"),
        F.col("each.vhost").alias("owner"),
        F.coalesce("page.polled_ns", "written_ns").alias("at_ns"),
        *_counters(entered, F.col("each.messages")),
        F.col("each.messages_unacknowledged").alias("in_flight"),
        F.col("each.message_stats.redeliver").alias("redelivered"),
        F.col("each.message_stats.drop_unroutable").alias("unroutable"),
        (entered - handled - F.col("each.messages")).alias("missing"),
        owners="virtual hosts",
        counted=_with_dropped,
        notes=(_DATED,),
    )
    levels = without_steps_back(reading.tables["levels"], "done", "entered")
    return replace(reading, tables={"levels": levels})


def _with_dropped(polls: DataFrame) -> DataFrame:
    """Add what was dropped by cause, in place of what it is counted from."""
    causes = {name: F.col(name).cast("bigint").cast("string") for name in ("unroutable", UNHANDLED)}
    dropped = with_unhandled(polls, "entered", "owner").withColumn("dropped", object_json(causes))
    return dropped.drop(*causes)


def _counters(entered: Column, there: Column) -> tuple[Column, Column]:
    """Give both counters, entered and done.

    Before the first publication that is counted, more may be there than came.
    """
    return (entered + F.lit(_AHEAD)).alias("entered"), (entered + F.lit(_AHEAD) - there).alias(
        "done"
    )


READER = Reader(
    about="polls of RabbitMQ's management API",
    tables=("levels",),
    read=lambda spark, files, _: read_rabbitmq_polls(spark, files),
)
