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
    "quality": ("waits", REASON),
    "arrivals": ("waits", "broker", "came_from"),
    "service": ("waits", "broker", "bin"),
    "batches": ("waits", "broker", "batch"),
}
# The slots in which starts are reconstructed: short, so that many run side by side, and the same
# ones whichever window is looked at.
_RECONSTRUCTION_SLOT_NS = 2**36


def checked_hops(hops: DataFrame, window: TraceWindow) -> DataFrame:
    """Give every hop the reason why it cannot be used, null where it can.

    Used is what arrived in the window. Of events published late in it, later hops may be recorded
    too; with them rates would be those of a longer time than the window's.
    """
    outside = ~window.holds(F.col("arrived_ns"))
    return with_reason(with_reasons(hops, HOPS), outside, ARRIVED_OUTSIDE)


def used_hops(hops: DataFrame, window: TraceWindow) -> DataFrame:
    """Select the hops that arrived in the window and have nothing wrong with them."""
    return checked_hops(hops, window).where(F.col(REASON).isNull()).drop(REASON)


def hop_statistics(hops: DataFrame, window: TraceWindow) -> DataFrame:
    """Count arrivals, service times and waiting times per broker, in one reading of the hops.

    Only hops that arrived in the window count. Service is from start to leaving, waiting from
    arrival to start; a row without a start counts as an arrival and in neither sample (see
    :func:`with_reconstructed_starts`). A wait in the same cells as a service time would make almost
    as many cells as there are rows: so a hop that waited becomes two rows, one for each.
    """
    service_s = seconds(F.col("left_ns") - F.col("started_ns"))
    wait_s = seconds(F.col("started_ns") - F.col("arrived_ns"))
    good = F.col(REASON).isNull()
    served = checked_hops(hops, window).select(
        REASON,
        "broker",
        "came_from",
        F.when(good, window.batch(F.col("arrived_ns"), BATCHES)).alias("batch"),
        F.when(good, service_s).alias("service_s"),
        F.when(good, wait_s).alias("wait_s"),
    )
    once, twice = F.array(F.lit(False)), F.array(F.lit(False), F.lit(True))
    copies = F.when(F.col("wait_s") > 0, twice).otherwise(once)
    waits = F.col("waits")
    rows = served.withColumn("waits", F.explode(copies)).select(
        REASON,
        "waits",
        "broker",
        *(F.when(~waits, F.col(name)).alias(name) for name in ("came_from", "batch")),
        F.when(waits, F.col("wait_s")).otherwise(F.col("service_s")).alias("sampled_s"),
        F.when(~waits, F.col("wait_s")).alias("wait_s"),
    )
    rows = rows.withColumn("bin", delay_bin(F.col("sampled_s")))
    sums = [
        F.count(F.lit(1)).alias("rows"),
        F.count_if(F.col("wait_s") > 0).alias("waited"),
        F.sum("wait_s").alias("wait_total_s"),
        *sample_sums(F.col("sampled_s")),
    ]
    counted = count_cells(rows, ("waits", "broker", "came_from", "bin", "batch"), sums, _SETS)
    return _told_apart(counted)


def _told_apart(counted: DataFrame) -> DataFrame:
    """Make samples of waits a statistic of their own; keep of all else only what is of services."""
    waits = F.coalesce(F.col("waits"), F.lit(False))
    is_sample = F.col("statistic") == "service"
    return (
        counted.where(~waits | is_sample)
        .withColumn("statistic", F.when(waits, F.lit(WAITING)).otherwise(F.col("statistic")))
        .withColumns({name: F.when(~waits, F.col(name)) for name in ("waited", "wait_total_s")})
        .drop("waits")
    )


def with_reconstructed_starts(hops: DataFrame) -> DataFrame:
    """Add missing starts, those that a single first-come-first-served server would have had.

    Such a server begins when the event has arrived and the one before has left:
    started = max(arrived, previous departure). Events are put in order of departure within slots of
    69 s; the first of each slot, whose predecessor is not in it, keeps no start.
    """
    slot = F.call_function("div", F.col("left_ns"), F.lit(_RECONSTRUCTION_SLOT_NS))
    ordered = Rows.partitionBy("broker", slot).orderBy("left_ns")
    previous: Column = F.lag("left_ns").over(ordered)
    known = F.when(previous.isNotNull(), F.greatest(F.col("arrived_ns"), previous))
    return hops.withColumn("started_ns", F.coalesce(F.col("started_ns"), known))
