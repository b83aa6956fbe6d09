"""What happens at brokers: arrivals, waiting and service, and over which links events come."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as Rows
from pyspark.sql import functions as F

from tidings.characterisation.count.cells import (
    count_cells,
    delay_bin,
    sample_sums,
    seconds,
    with_reason,
)
from tidings.characterisation.statistics import ARRIVED_OUTSIDE, BATCHES, SAMPLE, WAITING
from tidings.model.trace_tables import HOPS
from tidings.traces.quarantine import REASON, with_reasons
from tidings.traces.window import TraceWindow

# Per reason, per (broker, came_from), per (broker, bin) of the service time, per (broker, batch);
# their sample is of service times, and waits are of the same rows. Last, per (broker, bin) of the
# waiting time, with a sample of the waits above zero.
HOP_STATISTICS = (
    "statistic string, reason string, broker string, came_from string, bin int, batch int, "
    f"rows bigint, waited bigint, wait_total_s double, {SAMPLE}"
)
_SETS = {
    "quality": (REASON,),
    "arrivals": ("broker", "came_from"),
    "service": ("broker", "bin"),
    "batches": ("broker", "batch"),
}
# The slots in which starts are reconstructed: short, so that many run side by side, and the same
# ones whichever window is looked at.
_RECONSTRUCTION_SLOT_NS = 2**36


def checked_hops(hops: DataFrame, window: TraceWindow) -> DataFrame:
    """Every hop with the reason why it cannot be used, null where it can.

    Used is what arrived in the window. Of events published late in it, later hops may be recorded
    too; with them rates would be those of a longer time than the window's.
    """
    outside = ~window.holds(F.col("arrived_ns"))
    return with_reason(with_reasons(hops, HOPS), outside, ARRIVED_OUTSIDE)


def used_hops(hops: DataFrame, window: TraceWindow) -> DataFrame:
    """The hops that arrived in the window and have nothing wrong with them."""
    return checked_hops(hops, window).where(F.col(REASON).isNull()).drop(REASON)


def hop_statistics(hops: DataFrame, window: TraceWindow) -> DataFrame:
    """Arrivals, service times and waiting times per broker, in two readings of the hops.

    Only hops that arrived in the window count. Service is from start to leaving, waiting from
    arrival to start; a row without a start counts as an arrival and in neither sample (see
    :func:`with_reconstructed_starts`). A wait in the same cells as a service time would make almost
    as many cells as there are rows: that is why the hops are read again.
    """
    served = service_statistics(hops, window)
    return served.unionByName(waiting_statistics(hops, window), allowMissingColumns=True)


def service_statistics(hops: DataFrame, window: TraceWindow) -> DataFrame:
    """All but the law of waits, in one reading of the hops."""
    service_s = seconds(F.col("left_ns") - F.col("started_ns"))
    wait_s = seconds(F.col("started_ns") - F.col("arrived_ns"))
    good = F.col(REASON).isNull()
    rows = checked_hops(hops, window).select(
        REASON,
        "broker",
        "came_from",
        F.when(good, window.batch(F.col("arrived_ns"), BATCHES)).alias("batch"),
        F.when(good, service_s).alias("service_s"),
        F.when(good, wait_s).alias("wait_s"),
    )
    rows = rows.withColumn("bin", delay_bin(F.col("service_s")))
    sums = [
        F.count(F.lit(1)).alias("rows"),
        F.count_if(F.col("wait_s") > 0).alias("waited"),
        F.sum("wait_s").alias("wait_total_s"),
        *sample_sums(F.col("service_s")),
    ]
    return count_cells(rows, ("broker", "came_from", "bin", "batch"), sums, _SETS)


def waiting_statistics(hops: DataFrame, window: TraceWindow) -> DataFrame:
    """Waits above zero as a sample per broker and bin; who waits not at all is in none of them."""
    wait_s = seconds(F.col("started_ns") - F.col("arrived_ns"))
    waits = used_hops(hops, window).select("broker", wait_s.alias("wait_s")).where("wait_s > 0")
    cells = waits.groupBy("broker", delay_bin(F.col("wait_s")).alias("bin"))
    sums = cells.agg(F.count(F.lit(1)).alias("rows"), *sample_sums(F.col("wait_s")))
    return sums.withColumn("statistic", F.lit(WAITING))


def with_reconstructed_starts(hops: DataFrame) -> DataFrame:
    """Hops with the start that a single first-come-first-served server had, where none is known.

    Such a server begins when the event has arrived and the one before has left:
    started = max(arrived, previous departure). Events are put in order of departure within slots of
    69 s; the first of each slot, whose predecessor is not in it, keeps no start.
    """
    slot = F.call_function("div", F.col("left_ns"), F.lit(_RECONSTRUCTION_SLOT_NS))
    ordered = Rows.partitionBy("broker", slot).orderBy("left_ns")
    previous: Column = F.lag("left_ns").over(ordered)
    known = F.when(previous.isNotNull(), F.greatest(F.col("arrived_ns"), previous))
    return hops.withColumn("started_ns", F.coalesce(F.col("started_ns"), known))
