"""Count what members of consumer groups handle: how long, which share, how often again."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as Rows
from pyspark.sql import functions as F

from tidings.characterisation.count.cells import (
    delay_bin,
    good_rows,
    sample_sums,
    seconds,
    summed_up,
)
from tidings.characterisation.statistics import BATCHES, SAMPLE
from tidings.model.trace_tables import DELIVERIES
from tidings.traces.window import TraceWindow

# Per (subscriber, member, bin) of the time to handle an event, with a sample of these times; per
# (subscriber, member, part, batch), by when it ended. Rows are without copies, which are counted;
# ``again`` are those of events that their subscriber had handled before.
HANDLING_STATISTICS = (
    "statistic string, subscriber string, member string, part string, batch int, bin int, "
    f"rows bigint, duplicates bigint, again bigint, {SAMPLE}"
)
# Per (subscriber, others busy): what a member took up at once after something else, and how often
# that, or what it took up later, was several events that it handled as one.
PICKUP_STATISTICS = "subscriber string, others int, rows bigint, batches bigint"
_SLOT_NS = 2**36  # in which handlings are put in order: short, so that many run side by side
_AT_ONCE = 20  # an idle time of less than one in so many parts of what was handled before is none
_SETS = {
    "shares": ("subscriber", "member", "part", "batch"),
    "times": ("subscriber", "member", "bin"),
}


def is_handling() -> Column:
    """Test whether a delivery says when it began to be handled, or by which member."""
    return F.col("started_ns").isNotNull() | F.col("member").isNotNull()


def handling_statistics(deliveries: DataFrame, window: TraceWindow) -> DataFrame:
    """Count handling times by member, and events by member, partition and batch.

    Counted is what ended in the window. Events whose publication is unknown count, too: they were
    handled all the same.
    """
    each = F.struct("received_ns", "started_ns", "member", "part")
    events = (
        good_rows(deliveries, DELIVERIES)
        .where(is_handling())
        .groupBy("event", "subscriber")
        .agg(F.array_sort(F.collect_set(each)).alias("handlings"), F.count(each).alias("rows"))
    )
    copies = F.col("rows") - F.size("handlings")
    rows = events.select(
        "subscriber", copies.alias("copies"), F.posexplode("handlings").alias("place", "handling")
    ).where(window.holds(F.col("handling.received_ns")))
    began, ended = F.col("handling.started_ns"), F.col("handling.received_ns")
    handled = rows.select(
        "subscriber",
        F.col("handling.member").alias("member"),
        F.col("handling.part").alias("part"),
        window.batch(ended, BATCHES).alias("batch"),
        F.when(F.col("place") == 0, F.col("copies")).otherwise(F.lit(0)).alias("copies"),
        (F.col("place") > 0).alias("is_again"),
        seconds(ended - began).alias("handled_s"),
    ).withColumn("bin", delay_bin(F.col("handled_s")))
    keys = ("subscriber", "member", "part", "batch", "bin")
    cells = handled.groupBy(*keys).agg(
        F.count(F.lit(1)).alias("rows"),
        F.sum("copies").alias("duplicates"),
        F.count_if("is_again").alias("again"),
        *sample_sums(F.col("handled_s")),
    )
    return summed_up(cells, _SETS)


def pickup_statistics(deliveries: DataFrame, window: TraceWindow) -> DataFrame:
    """Count what members took up at once after another event, by how many others were busy then.

    Members that share a queue take up what waits only while all of them are busy; where events are
    bound to members as they come, others may have nothing to do. Events that a member begins and
    ends at the same moments are handled as one.
    """
    slot = F.call_function("div", F.col("received_ns"), F.lit(_SLOT_NS))
    place = ("subscriber", "slot")
    handled = (
        good_rows(deliveries, DELIVERIES)
        .where(F.col("started_ns").isNotNull() & F.col("member").isNotNull())
        .where(window.holds(F.col("received_ns")))
        .select("subscriber", slot.alias("slot"), "event", "member", "started_ns", "received_ns")
        .repartition(*place)
        .groupBy(*place, "member", "started_ns", "received_ns")
        .agg((F.min("event") != F.max("event")).alias("is_batch"))
    )
    of_member = Rows.partitionBy(*place, "member").orderBy("started_ns", "received_ns")
    before_ns: Column = F.lag("received_ns").over(of_member)
    length_ns = F.lag(F.col("received_ns") - F.col("started_ns")).over(of_member)
    # Clocks that tell ends late by a little make the next event seem to begin before.
    at_once = F.abs(F.col("started_ns") - before_ns) * _AT_ONCE <= length_ns
    told = handled.select(
        *place,
        "is_batch",
        F.coalesce(at_once, F.lit(False)).alias("at_once"),
        F.when(at_once, F.greatest("started_ns", before_ns))
        .otherwise(F.col("started_ns"))
        .alias("begun_ns"),
        "received_ns",
    )
    moments = F.array(
        F.struct(F.col("begun_ns").alias("at_ns"), F.lit(1).alias("change")),
        F.struct(F.col("received_ns").alias("at_ns"), F.lit(-1).alias("change")),
    )
    # Who ends and who begins at the same moment, in this order.
    of_group = Rows.partitionBy(*place).orderBy("at_ns", "change")
    so_far = of_group.rangeBetween(Rows.unboundedPreceding, Rows.currentRow)  # and all then
    begins = F.col("change") == 1
    busy = told.select(*place, "is_batch", "at_once", F.inline(moments)).select(
        "subscriber",
        (F.sum("change").over(so_far) - 1).cast("int").alias("others"),
        (begins & F.col("at_once")).alias("is_taken_up"),
        (begins & F.col("is_batch")).alias("is_batch"),
        begins.alias("begins"),
    )
    return (
        busy.where("begins")
        .groupBy("subscriber", "others")
        .agg(F.count_if("is_taken_up").alias("rows"), F.count_if("is_batch").alias("batches"))
    )
