"""Polls of a NATS server's page ``/jsz?consumers=true``: two counters of every consumer.

A consumer counts its hand-outs; those not yet acknowledged and those still to come are told of the
same moment. Entered is what was handed out and what is to come, done what was handed out and is not
waiting for an acknowledgement; a redelivery adds one to both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from tidings.traces.readers.pages import COUNT, POLLED, levels_reading, moment_of, read_pages
from tidings.traces.readers.reading import Reader, Reading

_CONSUMER = (
    f"struct<stream_name: string, name: string, delivered: struct<consumer_seq: {COUNT}>, "
    f"num_ack_pending: {COUNT}, num_pending: {COUNT}, cluster: struct<leader: string>>"
)
PAGE = (
    f"now string, {POLLED}, server_name string, account_details array<struct<name: string, "
    f"stream_detail: array<struct<consumer_detail: array<{_CONSUMER}>>>>>"
)


def read_jsz(spark: SparkSession, files: Sequence[str]) -> Reading:
    """Read candidate levels from polls; the queue of a consumer is called stream-consumer.

    Consumers that another server leads are left out, where the poll says of which server it is.
    """
    pages = read_pages(spark, files, PAGE)
    consumers = _inside(
        F.col("page.account_details"),
        lambda account: _inside(
            account["stream_detail"],
            lambda stream: F.transform(
                stream["consumer_detail"],
                lambda each: each.withField("account", account["name"]),
            ),
        ),
    )
    leads = F.filter(
        consumers,
        lambda each: F.coalesce(
            each["cluster"]["leader"] == F.col("page.server_name"), F.lit(True)
        ),
    )
    handed, pending = F.col("each.delivered.consumer_seq"), F.col("each.num_pending")
    return levels_reading(
        pages,
        leads,
        files,
        F.concat_ws("-", "each.stream_name", "each.name").alias("queue"),
        F.col("each.account").alias("owner"),
        moment_of("page.now"),
        (handed + pending).alias("entered"),
        (handed - F.col("each.num_ack_pending")).alias("done"),
        F.col("each.num_ack_pending").alias("in_flight"),
        owners="accounts",
    )


def _inside(rows: Column, told: Callable[[Column], Column]) -> Column:
    """List what each row has inside; one that has nothing costs the others nothing."""
    there = F.filter(F.transform(rows, told), lambda each: each.isNotNull())
    return F.flatten(there)


READER = Reader(
    about="polls of NATS's page /jsz",
    tables=("levels",),
    read=lambda spark, files, _: read_jsz(spark, files),
)
