"""How events are forwarded: by type and publisher, from broker to brokers; one pass over the hops.

A cell is (type, publisher, broker, where it came from, the set of brokers it was sent to, bin of
its service time). From these follow routing probabilities, the sets that occur together, delivery
paths and service times by type, all of the size of the model.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidings.characterisation.cells import SAMPLE, delay_bin, sample_sums, seconds
from tidings.characterisation.hops import used_hops
from tidings.model.trace_tables import PUBLICATIONS
from tidings.traces.quarantine import REASON, with_reasons
from tidings.traces.window import TraceWindow

# The sample is of service times. A type is "" where events have none; ``sent_to`` is in order, and
# null where it was not recorded.
ROUTING_STATISTICS = (
    "type string, publisher string, broker string, came_from string, sent_to array<string>, "
    f"bin int, rows bigint, {SAMPLE}"
)
SOURCE_STATISTICS = (
    "type string, publisher string, broker string, rows bigint, sizes bigint, "
    "size_total_bytes double"
)


def event_type_of(content: Column, event_type: str | None) -> Column:
    """The type of events: the value of an attribute of their contents; "" where there is none."""
    if event_type is None:
        return F.lit("")
    quoted = event_type.replace("\\", "\\\\").replace("'", "\\'")
    return F.coalesce(F.get_json_object(content, f"$['{quoted}']"), F.lit(""))


def typed_events(publications: DataFrame, event_type: str | None) -> DataFrame:
    """Type and publisher of every good publication, by its id."""
    good = with_reasons(publications, PUBLICATIONS).where(F.col(REASON).isNull())
    kind = event_type_of(F.col("content"), event_type).alias("type")
    return good.select("event", "publisher", kind)


def routing_statistics(
    hops: DataFrame, publications: DataFrame, window: TraceWindow, event_type: str | None = None
) -> DataFrame:
    """What came to which broker, from where, and to which brokers it was sent on; and its service.

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
    """How many events of each type each publisher published in the window, and how large."""
    good = with_reasons(publications, PUBLICATIONS).where(
        F.col(REASON).isNull() & window.holds(F.col("published_ns"))
    )
    kind = event_type_of(F.col("content"), event_type).alias("type")
    return good.groupBy(kind, "publisher", "broker").agg(
        F.count(F.lit(1)).alias("rows"),
        F.count("size_bytes").alias("sizes"),
        F.sum("size_bytes").cast("double").alias("size_total_bytes"),
    )
