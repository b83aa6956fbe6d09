"""How busy resources were in each sampled interval, and how many events of each type were done."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidings.characterisation.copies import each_row_once, row_counts
from tidings.characterisation.hops import used_hops
from tidings.characterisation.routing import typed_events
from tidings.model.trace_tables import UTILISATION
from tidings.traces.quarantine import REASON, with_reasons
from tidings.traces.window import TraceWindow

# A row per sample and type that was done in it; type null and none completed where nothing was.
USAGE_STATISTICS = (
    "broker string, resource string, until_ns bigint, interval_ns bigint, busy double, "
    "type string, completed bigint"
)
# Samples and events meet in slots of time, so that they are joined by equality: intervals may be of
# any length, and an interval is in as many slots as it touches.
_SLOT_NS = 10_000_000_000


def sample_counts(utilisation: DataFrame) -> DataFrame:
    """How many samples of resources there are, by reason why they cannot be used; and copies."""
    return row_counts(with_reasons(utilisation, UTILISATION), UTILISATION)


def usage_statistics(
    utilisation: DataFrame,
    hops: DataFrame,
    publications: DataFrame,
    window: TraceWindow,
    event_type: str | None = None,
) -> DataFrame:
    """The samples of resources with what their brokers completed in each: left > begin, ≤ end."""
    good = with_reasons(each_row_once(utilisation), UTILISATION).where(F.col(REASON).isNull())
    begin = F.col("until_ns") - F.col("interval_ns")
    slots = F.sequence(F.floor(begin / _SLOT_NS), F.floor(F.col("until_ns") / _SLOT_NS))
    samples = good.select(
        "broker", "resource", "until_ns", "interval_ns", "busy", F.explode(slots).alias("slot")
    )
    done = (
        used_hops(hops, window)
        .select("event", F.col("broker").alias("at"), "left_ns")
        .join(typed_events(publications, event_type), "event")
        .select("at", "left_ns", "type", F.floor(F.col("left_ns") / _SLOT_NS).alias("in_slot"))
    )
    inside = (
        (F.col("at") == F.col("broker"))
        & (F.col("in_slot") == F.col("slot"))
        & (F.col("left_ns") > F.col("until_ns") - F.col("interval_ns"))
        & (F.col("left_ns") <= F.col("until_ns"))
    )
    keys = ("broker", "resource", "until_ns", "interval_ns", "busy", "type")
    return (
        samples.join(done, inside, "left").groupBy(*keys).agg(F.count("left_ns").alias("completed"))
    )
