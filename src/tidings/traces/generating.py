"""Traces of any size made by Spark itself, with planted parameters and planted dirt.

Every number is drawn by hashing what it belongs to (seed, event, place), so that the same seed
gives the same traces however they are parted. Events are Poisson, and brokers serve all of them at
once: nobody waits, so that service times, delays, losses and rates are exactly as planted, but no
queue is. For traces with queues, simulate and record.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from tidings.model.filters import filter_document
from tidings.model.routes import Routes, route
from tidings.model.system import System
from tidings.model.trace_tables import FORMAT_VERSION, MANIFEST, TRACE_TABLES
from tidings.traces.drawing import LAW, drawn_s, law_numbers, uniform
from tidings.traces.event_kinds import event_kinds
from tidings.traces.window import NANOSECONDS, TraceWindow

EPOCH_NS = 1_700_000_000 * NANOSECONDS
_JOURNEY = "struct<alive boolean, arrived_ns bigint, left_ns bigint>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dirt:
    """Shares of rows that are spoilt: written twice, without an id, with a time before 0."""

    twice: float = 0.0
    nameless: float = 0.0
    impossible: float = 0.0


CLEAN = Dirt()


@dataclass(frozen=True, slots=True, kw_only=True)
class Generated:
    """Generated tables, and the window they cover; nothing is computed before they are used."""

    tables: Mapping[str, DataFrame]
    window: TraceWindow


def generate_traces(
    spark: SparkSession,
    system: System,
    events: int,
    *,
    seed: int = 1,
    probes: int = 0,
    dirt: Dirt = CLEAN,
) -> Generated:
    """Canonical traces with so many events, and so many probes of every direction of a link.

    Laws may be deterministic, exponential, uniform, Weibull or log-normal, shifted or not; others
    are refused. Lifetimes must be the same for all events of a kind.
    """
    rate_per_s = sum(publisher.rate_per_s for publisher in system.publishers)
    span_ns = round(events / rate_per_s * NANOSECONDS)
    window = TraceWindow(from_ns=EPOCH_NS, until_ns=EPOCH_NS + span_ns)
    routes = route(system)
    kinds = event_kinds(spark, system, routes)
    published = _published(spark, kinds, system, routes, (events, seed, span_ns))
    journeys = published.withColumn("journey", _journey(seed))
    tables = {
        "publications": published.select(*_names("publications")),
        "hops": _hops(journeys),
        "deliveries": _deliveries(journeys, seed),
        "subscriptions": _subscriptions(spark, system),
    }
    if probes:
        tables["probes"] = _probes(spark, system, probes, seed, span_ns)
    spoilt = ("publications", "hops", "deliveries")
    return Generated(
        tables={
            name: _spoilt(frame, name, dirt, seed) if name in spoilt else frame
            for name, frame in tables.items()
        },
        window=window,
    )


def write_generated(generated: Generated, folder: Path) -> Path:
    """Write generated tables as Parquet, with their manifest."""
    for name, frame in generated.tables.items():
        frame.write.mode("overwrite").parquet(str(folder / name))
    window = generated.window
    manifest = {"version": FORMAT_VERSION, "from_ns": window.from_ns, "until_ns": window.until_ns}
    (folder / MANIFEST).write_text(json.dumps({**manifest, "source": "generated"}))
    return folder


# ---- what every event does -----------------------------------------------------------------------


def _published(
    spark: SparkSession,
    kinds: DataFrame,
    system: System,
    routes: Routes,
    how_many: tuple[int, int, int],
) -> DataFrame:
    events, seed, span_ns = how_many
    weights = [system.publishers[row.publisher].rate_per_s * row.probability for row in routes.rows]
    total, so_far, bounds = sum(weights), 0.0, []
    for weight in weights[:-1]:
        so_far += weight / total
        bounds.append(F.lit(so_far))
    place = uniform(seed, "kind", F.col("id"))
    kind: Column = F.lit(len(weights) - 1)
    for number in range(len(bounds) - 1, -1, -1):
        kind = F.when(F.col("place") < bounds[number], F.lit(number)).otherwise(kind)
    at = F.floor(uniform(seed, "moment", F.col("id")) * float(span_ns)).cast("bigint")
    rows = spark.range(events).select("id", place.alias("place"), at.alias("at_ns"))
    return (
        rows.withColumn("kind", kind.cast("int"))
        .join(F.broadcast(kinds), "kind")
        .withColumns(
            {
                "event": F.concat(F.lit("e"), F.col("id").cast("string")),
                "published_ns": F.col("at_ns") + F.lit(EPOCH_NS),
            }
        )
    )


def _journey(seed: int) -> Column:
    """When the event came to and left each broker of its way, and whether it came there at all."""

    def step(so_far: Column, hop: Column) -> Column:
        before = F.get(so_far, hop["parent"])
        first = hop["parent"] < 0
        name = hop["broker"]
        left_ns = F.when(first, F.col("published_ns")).otherwise(before["left_ns"])
        alive = (first | before["alive"]) & (
            uniform(seed, "lost", F.col("id"), name) < hop["reliability"]
        )
        arrived = left_ns + _ns(drawn_s(hop["delay"], seed, "delay", F.col("id"), name))
        left = arrived + _ns(drawn_s(hop["service"], seed, "service", F.col("id"), name))
        here = F.struct(
            alive.alias("alive"), arrived.alias("arrived_ns"), left.alias("left_ns")
        ).cast(_JOURNEY)
        return F.concat(so_far, F.array(here))

    return F.aggregate("hops", F.array().cast(f"array<{_JOURNEY}>"), step)


def _steps(journeys: DataFrame) -> DataFrame:
    """One row per broker that an event came to."""
    both = F.arrays_zip(F.col("hops").alias("hop"), F.col("journey").alias("seen"))
    rows = journeys.select("id", "event", F.explode(both).alias("step"))
    return rows.where("step.seen.alive")


def _hops(journeys: DataFrame) -> DataFrame:
    return _steps(journeys).select(
        "event",
        F.col("step.hop.broker").alias("broker"),
        F.col("step.hop.came_from").alias("came_from"),
        F.col("step.seen.arrived_ns").alias("arrived_ns"),
        F.col("step.seen.arrived_ns").alias("started_ns"),
        F.col("step.seen.left_ns").alias("left_ns"),
        F.col("step.hop.sent_to").alias("sent_to"),
    )


def _deliveries(journeys: DataFrame, seed: int) -> DataFrame:
    rows = _steps(journeys).select(
        "id",
        "event",
        F.col("step.hop.broker").alias("broker"),
        F.col("step.seen.left_ns").alias("left_ns"),
        F.explode("step.hop.subscribers").alias("one"),
    )
    name = F.col("one.name")
    arrives = uniform(seed, "lost", F.col("id"), name) < F.col("one.reliability")
    delay_s = drawn_s(F.col("one.delay"), seed, "delay", F.col("id"), name)
    return rows.where(arrives).select(
        "event",
        name.alias("subscriber"),
        "broker",
        (F.col("left_ns") + _ns(delay_s)).alias("received_ns"),
    )


def _probes(spark: SparkSession, system: System, each: int, seed: int, span_ns: int) -> DataFrame:
    """Evenly spread probes of all links: between brokers, of publishers and of subscribers."""
    ways = [(*link.between, link.there) for link in system.links]
    ways += [(*link.between[::-1], link.back) for link in system.links]
    ways += [(each_.name, each_.at, each_.link) for each_ in system.publishers]
    ways += [(each_.at, each_.name, each_.link) for each_ in system.subscribers]
    links = [
        {
            "link": number,
            "source": source,
            "target": target,
            "reliability": channel.reliability,
            "delay": json.dumps(law_numbers(channel.delay)),
        }
        for number, (source, target, channel) in enumerate(ways)
    ]
    small = spark.createDataFrame(pa.Table.from_pylist(links))
    small = small.withColumn("delay", F.from_json("delay", LAW))
    number = F.col("id") % len(ways)
    turn = F.floor(F.col("id") / len(ways)) + uniform(seed, "turn", F.col("id"))
    rows = spark.range(each * len(ways)).select("id", number.alias("link"), turn.alias("turn"))
    sent = F.lit(EPOCH_NS) + F.floor(F.col("turn") / float(each) * float(span_ns)).cast("bigint")
    joined = rows.join(F.broadcast(small), "link").withColumn("sent_ns", sent)
    arrives = uniform(seed, "probe lost", F.col("id")) < F.col("reliability")
    delay_s = drawn_s(F.col("delay"), seed, "probe", F.col("id"))
    return joined.select(
        "source",
        "target",
        "sent_ns",
        F.when(arrives, F.col("sent_ns") + _ns(delay_s)).alias("received_ns"),
    )


def _subscriptions(spark: SparkSession, system: System) -> DataFrame:
    rows = [
        {
            "subscription": f"s-{each.name}",
            "subscriber": each.name,
            "broker": each.at,
            "action": "subscribe",
            "at_ns": EPOCH_NS,
            "filter": json.dumps(filter_document(each.wants)),
        }
        for each in system.subscribers
    ]
    return spark.createDataFrame(pa.Table.from_pylist(rows))


# ---- dirt ----------------------------------------------------------------------------------------


def _spoilt(frame: DataFrame, name: str, dirt: Dirt, seed: int) -> DataFrame:
    """The rows, some of them spoilt: each by at most one of the kinds of dirt."""
    if dirt == CLEAN:
        return frame
    first_time = next(column for column in frame.columns if column.endswith("_ns"))
    who = [F.col(column) for column in frame.columns if column != "sent_to"]
    chance = uniform(seed, f"dirt of {name}", *who)
    rows = frame.withColumn("chance", chance)
    twice, nameless = dirt.twice, dirt.twice + dirt.nameless
    bad = (F.col("chance") >= nameless) & (F.col("chance") < nameless + dirt.impossible)
    lost_id = (F.col("chance") >= twice) & (F.col("chance") < nameless)
    copies = F.when(F.col("chance") < twice, F.array(F.lit(0), F.lit(1))).otherwise(
        F.array(F.lit(0))
    )
    return rows.withColumns(
        {
            "event": F.when(~lost_id, F.col("event")),
            first_time: F.when(bad, -F.col(first_time)).otherwise(F.col(first_time)),
            "copy": F.explode(copies),
        }
    ).select(*frame.columns)


def _ns(seconds: Column) -> Column:
    return F.round(seconds * float(NANOSECONDS)).cast("bigint")


def _names(table: str) -> list[str]:
    return [column.name for column in TRACE_TABLES[table].columns]
