"""Polls of a NATS server's page ``/jsz?consumers=true``: how far every consumer is in its stream.

A consumer that reads all of its stream is where the stream's last message is, less what is still to
come and what is not yet acknowledged: these entered, and the others have left. How often it handed
out beside how far it came says what was handed out again, and what was skipped because the stream
had discarded it.

One that reads some subjects only counts its hand-outs alone: then each of them is an event of its
own, and of those handed out again it is known how many waited for that at most.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from tidings.traces.readers import lines
from tidings.traces.readers.derived import UNHANDLED
from tidings.traces.readers.json_text import object_json
from tidings.traces.readers.pages import COUNT, POLLED, levels_reading, moment_of, read_pages
from tidings.traces.readers.reading import Reader, Reading

_CONSUMER = (
    f"struct<stream_name: string, name: string, delivered: struct<consumer_seq: {COUNT}, "
    f"stream_seq: {COUNT}>, num_ack_pending: {COUNT}, num_pending: {COUNT}, "
    f"num_redelivered: {COUNT}, cluster: struct<leader: string>>"
)
_STREAM = (
    f"struct<state: struct<first_seq: {COUNT}, last_seq: {COUNT}>, "
    f"consumer_detail: array<{_CONSUMER}>>"
)
PAGE = (
    f"now string, {POLLED}, server_name string, account_details array<struct<name: string, "
    f"stream_detail: array<{_STREAM}>>>"
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
                lambda each: each.withField("account", account["name"]).withField(
                    "stream", stream["state"]
                ),
            ),
        ),
    )
    leads = F.filter(
        consumers,
        lambda each: F.coalesce(
            each["cluster"]["leader"] == F.col("page.server_name"), F.lit(True)
        ),
    )
    return levels_reading(
        pages,
        leads,
        files,
        F.concat_ws("-", "each.stream_name", "each.name").alias("queue"),
        F.col("each.account").alias("owner"),
        moment_of("page.now"),
        F.col("each.delivered.consumer_seq").alias("handed"),
        F.col("each.delivered.stream_seq").alias("reached"),
        F.col("each.num_pending").alias("pending"),
        F.col("each.num_ack_pending").alias("in_flight"),
        F.col("each.num_redelivered").alias("again"),
        F.col("each.stream.first_seq").alias("first"),
        F.col("each.stream.last_seq").alias("last"),
        owners="accounts",
        counted=_counted,
    )


def _counted(polls: DataFrame) -> DataFrame:
    """Make the columns of levels of what polls say of consumers and their streams."""
    of_one = Window.partitionBy("owner", "queue")
    in_order = of_one.orderBy("at_ns")
    handed, pending, unacknowledged = F.col("handed"), F.col("pending"), F.col("in_flight")
    passed = F.greatest("reached", F.col("first") - 1)  # skipped, where it was not handed out
    # A page has the stream first, and then its consumers, who may have come further meanwhile.
    reads_all = F.coalesce(passed + pending >= F.col("last"), F.lit(False))
    moved = polls.withColumns({"passed": passed, "reads_all": F.min(reads_all).over(of_one)})
    steps = F.col("passed") - F.lag("passed").over(in_order)
    tries = handed - F.lag("handed").over(in_order)
    goes_on = (steps >= 0) & (tries >= 0)  # else the consumer was made anew
    moved = moved.withColumns(
        {
            "retried": F.when(goes_on, F.greatest(tries - steps, F.lit(0))).otherwise(0),
            "skipped": F.when(goes_on, F.greatest(steps - tries, F.lit(0))).otherwise(0),
        }
    )
    whole = F.col("reads_all")
    entered = F.when(whole, F.col("passed")).otherwise(handed) + pending
    skipped = F.sum("skipped").over(in_order).cast("bigint").cast("string")
    return moved.select(
        "queue",
        "owner",
        "at_ns",
        entered.alias("entered"),
        (entered - pending - unacknowledged).alias("done"),
        "in_flight",
        F.when(whole, F.sum("retried").over(in_order))
        .otherwise(F.max("again").over(in_order))
        .alias("redelivered"),
        F.when(whole, object_json({UNHANDLED: skipped})).alias("dropped"),
        *lines.ORIGIN,
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
