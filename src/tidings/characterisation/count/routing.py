"""How events are forwarded: by type and publisher, from broker to brokers; one pass over the hops.

A cell is (type, publisher, broker, where it came from, the set of brokers it was sent to, bin of
its service time). From these follow routing probabilities, the sets that occur together, delivery
paths and service times by type, all of the size of the model.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidings.characterisation.count.cells import (
    delay_bin,
    each_row_once,
    good_rows,
    row_counts,
    sample_sums,
    seconds,
)
from tidings.characterisation.count.hops import used_hops
from tidings.characterisation.count.links import (
    arrived_at_brokers,
    arrived_at_subscribers,
    crossing_statistics,
    sent_by_brokers,
    sent_by_publishers,
)
from tidings.characterisation.count.publications import each_once
from tidings.characterisation.statistics import SAMPLE, SIZE_BYTES_PER_S
from tidings.model.trace_tables import HOPS, PUBLICATIONS, UTILISATION
from tidings.traces.quarantine import with_reasons
from tidings.traces.window import TraceWindow

# The sample is of service times. A type is "" where events have none; ``sent_to`` is in order, and
# null where it was not recorded.
ROUTING_STATISTICS = (
    "type string, publisher string, broker string, came_from string, sent_to array<string>, "
    f"bin int, rows bigint, {SAMPLE}"
)
# The sample is of message sizes, as seconds at ``SIZE_BYTES_PER_S``.
SOURCE_STATISTICS = f"type string, publisher string, bin int, rows bigint, {SAMPLE}"
# The sample is of times from leaving a broker until a subscriber there has received an event.
CLIENT_STATISTICS = f"broker string, bin int, early bigint, {SAMPLE}"
# A row per sample and type that was done in it; type null and none completed where nothing was.
USAGE_STATISTICS = (
    "broker string, resource string, until_ns bigint, interval_ns bigint, busy double, "
    "type string, completed bigint"
)
# Samples and events meet in slots of time, so that they are joined by equality: intervals may be of
# any length, and an interval is in as many slots as it touches.
_SLOT_NS = 10_000_000_000


def event_type_of(content: Column, event_type: str | None) -> Column:
    """Read the type of events: the value of an attribute of their contents; "" where none."""
    if event_type is None:
        return F.lit("")
    quoted = event_type.replace("\\", "\\\\").replace("'", "\\'")
    return F.coalesce(F.get_json_object(content, f"$['{quoted}']"), F.lit(""))


def typed_events(publications: DataFrame, event_type: str | None) -> DataFrame:
    """Find type and publisher of every good publication, by its id; of copies that agree, one."""
    good = each_once(good_rows(publications, PUBLICATIONS))
    kind = event_type_of(F.col("content"), event_type).alias("type")
    return good.select("event", "publisher", kind)


def routing_statistics(
    hops: DataFrame, publications: DataFrame, window: TraceWindow, event_type: str | None = None
) -> DataFrame:
    """Count what came to which broker, from where, and where it was sent on; sample its service.

    Hops of events whose publication is not in the traces do not count.
    """
    service_s = seconds(F.col("left_ns") - F.col("started_ns"))
    used = used_hops(hops, window).select(
        "event",
        "broker",
        "came_from",
        F.array_sort("sent_to").alias("sent_to"),
        service_s.alias("service_s"),
    )
    rows = used.join(typed_events(publications, event_type), "event").withColumn(
        "bin", delay_bin(F.col("service_s"))
    )
    keys = ("type", "publisher", "broker", "came_from", "sent_to", "bin")
    return rows.groupBy(*keys).agg(
        F.count(F.lit(1)).alias("rows"), *sample_sums(F.col("service_s"))
    )


def source_statistics(
    publications: DataFrame, window: TraceWindow, event_type: str | None = None
) -> DataFrame:
    """Count events in the window by type and publisher, and sample their sizes.

    Sizes are in seconds at :data:`SIZE_BYTES_PER_S`.
    """
    good = each_once(good_rows(publications, PUBLICATIONS)).where(
        window.holds(F.col("published_ns"))
    )
    kind = event_type_of(F.col("content"), event_type).alias("type")
    size_s = F.col("size_bytes") / F.lit(SIZE_BYTES_PER_S)
    return good.groupBy(kind, "publisher", delay_bin(size_s).alias("bin")).agg(
        F.count(F.lit(1)).alias("rows"), *sample_sums(size_s)
    )


def link_statistics(hops: DataFrame, publications: DataFrame, window: TraceWindow) -> DataFrame:
    """Count delays and losses from broker to broker and from publishers to their homes."""
    used = used_hops(hops, window)
    published = good_rows(publications, PUBLICATIONS).where(window.holds(F.col("published_ns")))
    sent = sent_by_brokers(used).where(F.col("target").isNotNull())
    first = sent_by_publishers(each_once(published))
    arrived = arrived_at_brokers(good_rows(hops, HOPS))
    return crossing_statistics(sent.unionByName(first), arrived)


def client_statistics(hops: DataFrame, deliveries: DataFrame, window: TraceWindow) -> DataFrame:
    """Count how long events are on their way from brokers to the subscribers there, in seconds."""
    received = arrived_at_subscribers(deliveries).withColumnRenamed("source", "broker")
    left = used_hops(hops, window).select("event", "broker", "left_ns")
    delay_s = seconds(F.col("at_ns") - F.col("left_ns"))
    rows = received.join(left, ["event", "broker"]).select("broker", delay_s.alias("delay_s"))
    possible = F.when(F.col("delay_s") >= 0, F.col("delay_s"))
    return rows.groupBy("broker", delay_bin(possible).alias("bin")).agg(
        F.count_if(F.col("delay_s") < 0).alias("early"), *sample_sums(possible)
    )


def sample_counts(utilisation: DataFrame) -> DataFrame:
    """Count the samples of resources by reason why they cannot be used; and copies."""
    return row_counts(with_reasons(utilisation, UTILISATION), UTILISATION)


def usage_statistics(
    utilisation: DataFrame,
    hops: DataFrame,
    publications: DataFrame,
    window: TraceWindow,
    event_type: str | None = None,
) -> DataFrame:
    """Count what brokers completed in each sample of their resources: left > begin, ≤ end."""
    good = good_rows(each_row_once(utilisation), UTILISATION)
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
