"""Probes of all links in generated traces, lost alone or in a row."""

from __future__ import annotations

import json

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import Window as Rows
from pyspark.sql import functions as F

from tidings.model.behaviour import Channel
from tidings.model.system import System
from tidings.traces.drawing import LAW, drawn_s, law_numbers, numbered, uniform
from tidings.traces.window import NANOSECONDS, TraceWindow

_CHUNK = 2**16  # probes of a link that one task puts in order


def draw_probes(
    spark: SparkSession, system: System, each: int, seed: int, window: TraceWindow
) -> DataFrame:
    """So many evenly spread probes of every direction of a link, those of peers among them."""
    links = [_way(number, *way) for number, way in enumerate(_ways(system))]
    small = spark.createDataFrame(pa.Table.from_pylist(links))
    small = small.withColumn("delay", F.from_json("delay", LAW))
    count, span_ns = len(links), float(window.until_ns - window.from_ns)
    turn = F.floor(F.col("id") / count) + uniform(seed, "turn", F.col("id"))
    rows = numbered(spark, each * count).select(
        "id",
        (F.col("id") % count).alias("link"),
        F.call_function("div", F.col("id"), F.lit(count * _CHUNK)).alias("chunk"),
        (F.col("id") % (count * _CHUNK) < count).alias("first"),
        turn.alias("turn"),
    )
    sent = F.lit(window.from_ns) + F.floor(F.col("turn") / float(each) * span_ns).cast("bigint")
    joined = rows.join(F.broadcast(small), "link").withColumn("sent_ns", sent)
    in_a_row = any(link["again"] != 1.0 for link in links)
    lost = _lost_in_a_row(seed) if in_a_row else _lost_anew(seed)
    delay_s = drawn_s(F.col("delay"), seed, "probe", F.col("id"))
    arrived = F.col("sent_ns") + F.round(delay_s * float(NANOSECONDS)).cast("bigint")
    return joined.withColumn("lost", lost).select(
        "source", "target", "sent_ns", F.when(~F.col("lost"), arrived).alias("received_ns")
    )


def _ways(system: System) -> list[tuple[str, str, Channel]]:
    """Every direction in which events go."""
    found = [(*link.between, link.there) for link in system.links]
    found += [(*link.between[::-1], link.back) for link in system.links]
    found += [(each.name, each.at, each.link) for each in system.publishers]
    found += [(each.at, each.name, each.link) for each in system.subscribers]
    return found


def _way(number: int, source: str, target: str, channel: Channel) -> dict[str, object]:
    """A way, and how often it is decided anew whether probes are lost on it.

    A chain that keeps its state, but with probability q decides anew, with the stationary chance
    1 − r to lose, leaves the state lost with probability q r: runs of losses have mean 1/(q r).
    Probes that know nothing of each other are q = 1.
    """
    reliability, burst = channel.reliability, channel.loss_burst
    again = 1.0 / (burst * reliability) if burst * reliability > 1.0 else 1.0
    return {
        "link": number,
        "source": source,
        "target": target,
        "reliability": reliability,
        "again": again,
        "delay": json.dumps(law_numbers(channel.delay)),
    }


def _lost_anew(seed: int) -> Column:
    return uniform(seed, "probe lost", F.col("id")) >= F.col("reliability")


def _lost_in_a_row(seed: int) -> Column:
    """What was last decided, in pieces so that no link is one task's; each begins by deciding."""
    ordered = Rows.partitionBy("link", "chunk").orderBy("id")
    decided = uniform(seed, "probe again", F.col("id")) < F.col("again")
    return F.last(F.when(decided | F.col("first"), _lost_anew(seed)), ignorenulls=True).over(
        ordered
    )
