"""What two counters of a queue tell: how far apart the curves of entries and departures are.

Where events leave in the order in which they came, the n-th to enter is the n-th to leave, so that
its delay is the horizontal distance of the two curves at height n. Between two polls the curves are
not known but for their ends: a straight line gives the estimate, the ends give the bounds. Counters
that go down were reset; what lies before and after is never compared.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as Rows
from pyspark.sql import functions as F

from tidings.characterisation.count.cells import delay_bin, each_row_once, good_rows, seconds
from tidings.characterisation.statistics import BATCHES
from tidings.model.trace_tables import LEVELS
from tidings.traces.window import TraceWindow

_QUEUE = ("queue", "part")
# Sums over the times between two polls; ``waiting`` is events times seconds, ``least`` and ``most``
# what it can be at least and at most.
LEVEL_STATISTICS = (
    "queue string, part string, batch int, seconds double, entered bigint, done bigint, "
    "waiting double, least_waiting double, most_waiting double"
)
# Per queue: how it was polled; at which rate events leave while they are never out of work (the
# median, and between which extremes), seen in how many departures; for how long nothing left
# although something was there.
POLL_STATISTICS = (
    "queue string, part string, polls bigint, resets bigint, apart_s double, busy_per_s double, "
    "slowest_per_s double, fastest_per_s double, busy_events bigint, stalls bigint, "
    "stalled_s double"
)
# Events by the bin of their delay, of the longest and of the shortest that it can be.
CURVE_STATISTICS = "queue string, statistic string, bin int, events double"
_STEPS = 16
# Events that were within a time, that surely were and that may have been, of how many.
DEADLINE_STATISTICS = (
    "queue string, batch int, within_s double, events double, on_time double, surely double, "
    "maybe double"
)
# How counters stood at the first and the last poll of each batch, again after every reset
# (``run``). Whatever lies between two such ends is a difference, so that batches of any parts of
# the time can be put together; what was dropped is by cause, in JSON.
END_STATISTICS = (
    "queue string, part string, batch int, run bigint, polls bigint, first_ns bigint, "
    "last_ns bigint, first_entered bigint, last_entered bigint, first_done bigint, "
    "last_done bigint, first_redelivered bigint, last_redelivered bigint, first_dropped string, "
    "last_dropped string"
)


def between_polls(levels: DataFrame) -> DataFrame:
    """Pair every poll with the one before it and its ``stretch``: what lies between two resets."""
    polled = each_row_once(good_rows(levels, LEVELS)).withColumn(
        "part", F.coalesce("part", F.lit(""))
    )
    in_order = Rows.partitionBy(*_QUEUE).orderBy("at_ns", "entered", "done")
    counters = ("at_ns", "entered", "done")
    paired = polled.withColumns({f"{name}_0": F.lag(name).over(in_order) for name in counters})
    is_reset = (F.col("entered") < F.col("entered_0")) | (F.col("done") < F.col("done_0"))
    stretch = F.sum(is_reset.cast("int")).over(in_order.rowsBetween(Rows.unboundedPreceding, 0))
    return paired.withColumns(
        {
            "is_reset": F.coalesce(is_reset, F.lit(False)),
            "stretch": F.coalesce(stretch, F.lit(0)),
        }
    )


def level_statistics(polls: DataFrame, window: TraceWindow) -> DataFrame:
    """Sum up rates and what waits, by queue and batch; of :func:`between_polls`."""
    width_s = seconds(F.col("at_ns") - F.col("at_ns_0"))
    there, there_0 = F.col("entered") - F.col("done"), F.col("entered_0") - F.col("done_0")
    least = F.greatest(F.col("entered_0") - F.col("done"), F.lit(0))
    return (
        _compared(polls)
        .groupBy(*_QUEUE, window.batch(F.col("at_ns"), BATCHES).alias("batch"))
        .agg(
            F.sum(width_s).alias("seconds"),
            F.sum(F.col("entered") - F.col("entered_0")).alias("entered"),
            F.sum(F.col("done") - F.col("done_0")).alias("done"),
            F.sum(width_s * (there + there_0) / 2.0).alias("waiting"),
            F.sum(width_s * least).alias("least_waiting"),
            F.sum(width_s * (F.col("entered") - F.col("done_0"))).alias("most_waiting"),
        )
    )


def poll_statistics(polls: DataFrame) -> DataFrame:
    """Count polls, resets and stalls, and take the rate at which queues are worked off.

    A queue was never out of work between two polls where, at the second, not all had left that
    were there at the first. The rate is the median of such times in which anything left. Those next
    to a time in which nothing did are left out: an outage may have begun or ended in them. The
    fastest is of all times.
    """
    width_s = seconds(F.col("at_ns") - F.col("at_ns_0"))
    left = F.col("done") - F.col("done_0")
    waits = F.coalesce(F.col("entered_0") > F.col("done_0"), F.lit(False))
    in_order = Rows.partitionBy(*_QUEUE).orderBy("at_ns", "entered", "done")
    marked = polls.withColumn(
        "stalled", F.coalesce(left == 0, F.lit(False)) & waits & ~F.col("is_reset")
    )
    stalled = F.col("stalled")
    by_outage = [F.coalesce(of(stalled).over(in_order), F.lit(False)) for of in (F.lag, F.lead)]
    polls = marked.withColumn("by_outage", by_outage[0] | by_outage[1])
    was_busy = (F.col("done") < F.col("entered_0")) & (left > 0) & (width_s > 0)
    was_busy = was_busy & ~F.col("by_outage")
    rate = F.when(was_busy, left / width_s)
    return polls.groupBy(*_QUEUE).agg(
        F.count(F.lit(1)).alias("polls"),
        F.sum(F.col("is_reset").cast("bigint")).alias("resets"),
        F.median(width_s).alias("apart_s"),
        F.median(rate).alias("busy_per_s"),
        F.min(rate).alias("slowest_per_s"),
        # However much there was to do, what left shows that so much can be done.
        F.max(F.when((width_s > 0) & ~F.col("is_reset"), left / width_s)).alias("fastest_per_s"),
        F.sum(F.when(was_busy, left).otherwise(F.lit(0))).alias("busy_events"),
        F.sum(stalled.cast("bigint")).alias("stalls"),
        F.sum(F.when(stalled, width_s).otherwise(F.lit(0.0))).alias("stalled_s"),
    )


def end_statistics(polls: DataFrame, window: TraceWindow) -> DataFrame:
    """Give counters as they stood at both ends of each batch; of :func:`between_polls`."""
    order = F.struct("at_ns", "entered", "done")
    ends = [
        of(name, F.when(F.col(name).isNotNull(), order)).alias(f"{which}_{name}")
        for name in ("entered", "done", "redelivered", "dropped")
        for which, of in (("first", F.min_by), ("last", F.max_by))
    ]
    batch = window.batch(F.col("at_ns"), BATCHES).alias("batch")
    return polls.groupBy(*_QUEUE, batch, F.col("stretch").alias("run")).agg(
        F.count(F.lit(1)).alias("polls"),
        F.min("at_ns").alias("first_ns"),
        F.max("at_ns").alias("last_ns"),
        *ends,
    )


def curve_pieces(polls: DataFrame, window: TraceWindow) -> DataFrame:
    """Cut the events of a queue into pieces along which both curves are straight.

    Columns: the ``batch`` in which they entered, the ``events`` of the piece, the delay of its
    first and last one (``first_s``, ``last_s``), between which the delay of each must lie
    (``least_s``, ``most_s``), and whether they were still there at the end (``is_open``: then the
    delay is how old they were).
    """
    key = (*_QUEUE, "stretch")
    at, entered, done = F.col("at_ns"), F.col("entered"), F.col("done")
    of_stretch = Rows.partitionBy(*key)
    ends = polls.withColumns(
        {
            "first_entered": F.min("entered").over(of_stretch),
            "last_done": F.max("done").over(of_stretch),
            "last_entered": F.max("entered").over(of_stretch),
            "last_ns": F.max("at_ns").over(of_stretch),
        }
    )
    # What is still there at the end leaves then at the earliest: one more point of that curve.
    end = F.struct(
        F.col("last_entered").alias("n"),
        F.lit(None).cast("bigint").alias("in_ns"),
        F.col("last_ns").alias("out_ns"),
    )
    points = F.array(
        F.struct(entered.alias("n"), at.alias("in_ns"), F.lit(None).cast("bigint").alias("out_ns")),
        F.struct(done.alias("n"), F.lit(None).cast("bigint").alias("in_ns"), at.alias("out_ns")),
        end,
    )
    heights = (
        ends.select(*key, "first_entered", "last_done", F.inline(points))
        .groupBy(*key, "first_entered", "last_done", "n")
        .agg(
            F.min("in_ns").alias("in_first"),
            F.max("in_ns").alias("in_last"),
            F.min("out_ns").alias("out_first"),
            F.max("out_ns").alias("out_last"),
        )
    )
    up = Rows.partitionBy(*key).orderBy("n")
    down = Rows.partitionBy(*key).orderBy(F.col("n").desc())
    below, above = Rows.unboundedPreceding, -1

    def known(time: str) -> Column:
        return F.when(
            F.col(time).isNotNull(), F.struct(F.col("n").alias("n"), F.col(time).alias("ns"))
        )

    pieces = heights.withColumns(
        {
            "next": F.lead("n").over(up),
            "in_a": F.last(known("in_last"), ignorenulls=True).over(up.rowsBetween(below, 0)),
            "out_a": F.last(known("out_last"), ignorenulls=True).over(up.rowsBetween(below, 0)),
            "in_b": F.last(known("in_first"), ignorenulls=True).over(
                down.rowsBetween(below, above)
            ),
            "out_b": F.last(known("out_first"), ignorenulls=True).over(
                down.rowsBetween(below, above)
            ),
        }
    ).where(F.col("next").isNotNull() & (F.col("n") >= F.col("first_entered")))

    def delay_s(height: Column) -> Column:
        apart = seconds(F.col("out_a.ns") - F.col("in_a.ns"))
        return F.greatest(apart + _along("out", height) - _along("in", height), F.lit(0.0))

    return pieces.select(
        "queue",
        window.batch(F.col("in_a.ns"), BATCHES).alias("batch"),
        (F.col("next") - F.col("n")).cast("double").alias("events"),
        delay_s(F.col("n")).alias("first_s"),
        delay_s(F.col("next")).alias("last_s"),
        F.greatest(seconds(F.col("out_a.ns") - F.col("in_b.ns")), F.lit(0.0)).alias("least_s"),
        seconds(F.col("out_b.ns") - F.col("in_a.ns")).alias("most_s"),
        (F.col("n") >= F.col("last_done")).alias("is_open"),
    )


def curve_statistics(pieces: DataFrame) -> DataFrame:
    """Count events by bins of their delays; those still there at the end are left out.

    Along a straight piece delays are even between its ends: sixteen of them stand for all.
    """
    step = (F.col("number") + 0.5) / _STEPS
    drawn_s = F.col("first_s") + step * (F.col("last_s") - F.col("first_s"))
    delays = F.array(
        *(
            F.struct(F.lit(name).alias("statistic"), delay.alias("delay_s"))
            for name, delay in (
                ("drawn", drawn_s),
                ("least", F.col("least_s")),
                ("most", F.col("most_s")),
            )
        )
    )
    numbers = F.explode(F.sequence(F.lit(0), F.lit(_STEPS - 1)))
    return (
        pieces.where(~F.col("is_open"))
        .withColumn("number", numbers)
        .select("queue", (F.col("events") / _STEPS).alias("events"), F.inline(delays))
        .groupBy("queue", "statistic", delay_bin(F.col("delay_s")).alias("bin"))
        .agg(F.sum("events").alias("events"))
    )


def deadline_statistics(pieces: DataFrame, deadlines_s: Sequence[float]) -> DataFrame:
    """Count events within each of some times, exactly along straight pieces.

    What is still there at the end counts where it is too late already, and else not at all.
    """
    within = F.col("within_s")
    asked = pieces.withColumn("within_s", F.explode(F.array(*map(F.lit, deadlines_s))))
    low, high = F.least("first_s", "last_s"), F.greatest("first_s", "last_s")
    inside = (within - low) / (high - low)
    share = F.when(high <= within, F.lit(1.0)).when(low > within, F.lit(0.0)).otherwise(inside)
    counts = F.when(F.col("is_open"), F.lit(1.0) - share).otherwise(F.lit(1.0))
    events = F.col("events")
    surely = ~F.col("is_open") & (F.col("most_s") <= within)
    maybe = F.when(F.col("is_open"), F.lit(0.0)).otherwise(
        (F.col("least_s") <= within).cast("double")
    )
    return asked.groupBy("queue", "batch", "within_s").agg(
        F.sum(events * counts).alias("events"),
        F.sum(F.when(~F.col("is_open"), events * share).otherwise(F.lit(0.0))).alias("on_time"),
        F.sum(events * surely.cast("double")).alias("surely"),
        F.sum(events * maybe).alias("maybe"),
    )


def _compared(polls: DataFrame) -> DataFrame:
    """Select the polls that have one before them in the same ``stretch``."""
    return polls.where(~F.col("is_reset") & F.col("at_ns_0").isNotNull())


def _along(curve: str, height: Column) -> Column:
    """Compute how long after its point below a curve reaches a height, in seconds.

    The curve is a straight line between its points.
    """
    a, b = f"{curve}_a", f"{curve}_b"
    share = (height - F.col(f"{a}.n")) / (F.col(f"{b}.n") - F.col(f"{a}.n"))
    return share * seconds(F.col(f"{b}.ns") - F.col(f"{a}.ns"))
