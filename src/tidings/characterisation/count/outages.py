"""Tell which rows fall into a recorded outage of their link: what is lost there is the outage's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import Window as Rows
from pyspark.sql import functions as F

from tidings.characterisation.count.cells import small_frame
from tidings.characterisation.count.periods import checked_states
from tidings.characterisation.statistics import Direction
from tidings.traces.actions import bring_here
from tidings.traces.lives import MOST_BUCKETS, TimeBuckets
from tidings.traces.quarantine import REASON
from tidings.traces.window import TraceWindow

OUTAGES = "component string, down_ns bigint, up_ns bigint"
# What was sent this long before an outage may have met it: on its way, or in a broker's queue.
# Where outages are frequent it is a small part of the time between two: something must be left.
_BEFORE_NS, _OF_TIME_BETWEEN = 10**9, 0.05
DURING = "during_outage"


def outages(states: DataFrame, window: TraceWindow) -> DataFrame:
    """Find from when to when components were down.

    What comes up first was down from the beginning.
    """
    good = checked_states(states, window).where(F.col(REASON).isNull())
    ordered = Rows.partitionBy("component").orderBy("at_ns", "state")
    steps = good.withColumns(
        {"before": F.lag("state").over(ordered), "next_ns": F.lead("at_ns").over(ordered)}
    )
    down, first = F.col("state") == "down", F.col("before").isNull()
    spans = steps.where(down | first).select(
        "component",
        F.when(down, F.col("at_ns")).otherwise(F.lit(window.from_ns)).alias("down_ns"),
        F.when(down, F.coalesce("next_ns", F.lit(window.until_ns)))
        .otherwise(F.col("at_ns"))
        .alias("up_ns"),
    )
    return spans.where("down_ns < up_ns")


def during_outages(
    rows: DataFrame,
    sent_ns: str,
    tables: Mapping[str, DataFrame],
    window: TraceWindow,
    arcs: Iterable[Direction],
) -> DataFrame:
    """Mark with :data:`DURING` whether rows from a source to a target met an outage on their way.

    Of the link, whichever way round it is named, or of a broker at its ends; ``arcs`` are those
    that are known to be used. Without any component on them the rows are as they are.
    """
    if "states" not in tables:
        return rows
    components = bring_here(tables["states"].select("component").distinct(), "the table states")
    down = _down_arcs(components["component"].dropna(), arcs)
    if down.empty:
        return rows
    buckets = _buckets(window)
    spans = outages(tables["states"], window).join(
        F.broadcast(small_frame(rows.sparkSession, down)), "component"
    )
    outages_seen = F.count(F.lit(1)).over(Rows.partitionBy("source", "target", "component"))
    between_ns = F.lit(float(window.until_ns - window.from_ns)) / outages_seen
    before_ns = F.least(F.lit(float(_BEFORE_NS)), _OF_TIME_BETWEEN * between_ns).cast("bigint")
    spans = spans.withColumn("begin_ns", F.col("down_ns") - before_ns)
    begin = F.col("begin_ns")
    touched = F.sequence(buckets.of(begin), buckets.of(F.col("up_ns")))
    spans = (
        spans.select(
            "source",
            "target",
            F.explode(touched).alias("bucket"),
            F.struct(begin.alias("begin"), F.col("up_ns").alias("end")).alias("span"),
        )
        .groupBy("source", "target", "bucket")
        .agg(F.collect_list("span").alias("spans"))
    )
    at = F.col(sent_ns)
    met = F.exists("spans", lambda span: (at >= span["begin"]) & (at < span["end"]))
    return (
        rows.withColumn("bucket", buckets.of(at))
        .join(F.broadcast(spans), ["source", "target", "bucket"], "left")
        .withColumn(DURING, F.coalesce(met, F.lit(False)))
        .drop("bucket", "spans")
    )


def without_outages(rows: DataFrame) -> DataFrame:
    """Select the rows that were not sent during an outage."""
    return rows.where(~F.col(DURING)).drop(DURING) if DURING in rows.columns else rows


def _down_arcs(components: Iterable[str], arcs: Iterable[Direction]) -> pd.DataFrame:
    """List the directions of links that each component is on, as source, target and component."""
    named = {str(each) for each in components}
    split = {name: name.split("--") for name in named}
    links = {(ends[0], ends[1]): name for name, ends in split.items() if len(ends) == 2}
    links |= {ends[::-1]: name for ends, name in links.items()}
    rows = [
        (*arc, name)
        for arc in sorted({*arcs, *links})
        for name in {links.get(arc), *arc}
        if name in named
    ]
    return pd.DataFrame(rows, columns=["source", "target", "component"])


def _buckets(window: TraceWindow) -> TimeBuckets:
    width_ns = max(1, (window.until_ns - window.from_ns) // MOST_BUCKETS)
    return TimeBuckets(start_ns=window.from_ns, width_ns=width_ns, count=MOST_BUCKETS)
