"""Counters that are the difference of two numbers which a broker does not write at one moment."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

UNHANDLED = "unhandled"  # the cause: what left a queue because it had expired, or was one too many
REFRESHED_NS = 10_000_000_000  # twice as long as brokers take to refresh their counters
_FELL, _RUN = "counted_fell", "counted_run"


def without_steps_back(levels: DataFrame, derived: str, counted: str) -> DataFrame:
    """Hold a derived counter where it steps back while the counted one does not.

    RabbitMQ refreshes what came in and what is there up to five seconds apart, so that their
    difference may fall by what came meanwhile. Where the counted one falls too, it began anew.
    """
    in_run = Window.partitionBy("queue", "part", _RUN).orderBy("at_ns")
    held = F.max(derived).over(in_run)
    return with_runs(levels, counted, "part").withColumn(derived, held).drop(_RUN)


def with_runs(levels: DataFrame, counted: str, *owner: str) -> DataFrame:
    """Add the number of the stretch, of a queue, in which a counter did not go down."""
    by_time = Window.partitionBy("queue", *owner).orderBy("at_ns")
    fell = F.when(F.col(counted) < F.lag(counted).over(by_time), 1).otherwise(0)
    marked = levels.withColumn(_FELL, fell)
    return marked.withColumn(_RUN, F.sum(_FELL).over(by_time)).drop(_FELL)


def with_unhandled(polls: DataFrame, counted: str, *owner: str) -> DataFrame:
    """Add how many are ``missing`` for good by then, as ``unhandled``, and forget the rest.

    Counters are refreshed at different moments: what is missing at one poll may turn up at the
    next, and only what is missing at all later ones has left. The first and the last polls are
    taken together for as long as a refresh may take.
    """
    of_run = Window.partitionBy("queue", *owner, _RUN)
    onward = of_run.orderBy("at_ns").rowsBetween(Window.currentRow, Window.unboundedFollowing)
    at, missing = F.col("at_ns"), F.col("missing")
    runs = with_runs(polls, counted, *owner).withColumns(
        {"first_ns": F.min("at_ns").over(of_run), "last_ns": F.max("at_ns").over(of_run)}
    )
    early, late = at <= F.col("first_ns") + REFRESHED_NS, at >= F.col("last_ns") - REFRESHED_NS
    sure = F.least(F.min(missing).over(onward), F.min(F.when(late, missing)).over(of_run))
    gone = sure - F.max(F.when(early, missing)).over(of_run)
    return runs.withColumn("unhandled", F.greatest(gone, F.lit(0))).drop(
        _RUN, "missing", "first_ns", "last_ns"
    )
