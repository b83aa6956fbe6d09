"""Traces of any size made by Spark itself, with planted parameters and planted dirt.

Every number is drawn by hashing what it belongs to (seed, event, place), so that the same seed
gives the same traces however they are parted. Brokers serve all events at once: nobody waits, so
that service times, delays, losses and rates are exactly as planted, but no queue is. For traces
with queues, simulate and record.

What happens to an event: published while its publisher is away, it leaves when that comes back. It
is lost where a link is down when it is sent, or a broker when it comes. A subscriber that is away
receives it when it comes back; one that comes and goes only what is published while its
subscription stands and received before that ends. Losses in a row (``loss_burst``) are those of
probes; events are lost as often, but know nothing of each other.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from tidings.errors import InvalidInputError
from tidings.model.features import require_only
from tidings.model.laws import Exponential
from tidings.model.progress import Progress
from tidings.model.record_tables import names
from tidings.model.routes import route
from tidings.model.system import System
from tidings.model.trace_files import trace_table
from tidings.model.trace_tables import FORMAT_VERSION, MANIFEST, TRACE_TABLES
from tidings.model.writing import new_folder
from tidings.traces.actions import run_action
from tidings.traces.dirt import CLEAN, Dirt, spoil
from tidings.traces.drawing import bound, drawn_s, law_numbers, uniform
from tidings.traces.event_kinds import event_kinds, kind_rows
from tidings.traces.period_lookup import PeriodLookup, look_up
from tidings.traces.planted_moments import expected_events, moments
from tidings.traces.planted_periods import (
    changes,
    check_periods,
    draw_periods,
    subscription_steps,
)
from tidings.traces.planted_probes import draw_probes
from tidings.traces.window import DAY_NS, NANOSECONDS, TraceWindow

EPOCH_NS = 19_675 * DAY_NS  # a midnight, in November 2023
HANDLED = frozenset(
    {
        "failures",
        "connectivity",
        "subscription churn",
        "rates by time of day",
        "bursts of losses",
        "several servers",
        "other disciplines than fcfs",
        "one tree per topic",
    }
)
HOSTS = ("brokers", "publishers", "subscribers")  # who has a clock
_JOURNEY = "struct<alive boolean, arrived_ns bigint, left_ns bigint>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Planting:
    """What is planted beside the system itself.

    ``probes`` of every direction of a link; samples of how busy brokers are, one every
    ``sample_s``; ``ahead_s`` is by how much the clock of a broker or peer is ahead.
    """

    seed: int = 1
    probes: int = 0
    sample_s: float | None = None
    ahead_s: Mapping[str, float] = field(default_factory=dict)
    dirt: Dirt = CLEAN


@dataclass(frozen=True, slots=True, kw_only=True)
class Generated:
    """Generated tables, and the window they cover; nothing is computed before they are used."""

    tables: Mapping[str, DataFrame]
    window: TraceWindow


def span_of(system: System, events: int) -> float:
    """In how many seconds a system publishes so many events, in the long run."""
    return events / sum(publisher.rate_per_s for publisher in system.publishers)


def check_planting(system: System, span_s: float, planting: Planting) -> None:
    """Refuse, by name, what is not planted; needs no Spark."""
    require_only(system, HANDLED, "the generator of traces")
    hosts = {name for each in HOSTS for name in names(getattr(system, each))}
    strangers = sorted(planting.ahead_s.keys() - hosts)
    if strangers:
        raise InvalidInputError(
            f"the clock of '{strangers[0]}' is to be ahead, who is not in the system; wants a "
            "broker, publisher or subscriber of it"
        )
    if sum(expected_events(each, span_s) for each in system.publishers) < 1:
        raise InvalidInputError(f"in {span_s:g} s not one event is expected; wants a longer time")
    check_periods(system, span_s)
    kind_rows(system, route(system), {})
    for each in system.publishers:
        law_numbers(each.every or Exponential(mean_s=1.0))


def generate_traces(
    spark: SparkSession, system: System, span_s: float, planting: Planting | None = None
) -> Generated:
    """Canonical traces of so many seconds from a midnight on.

    Laws may be deterministic, exponential, uniform, Weibull or log-normal, shifted or not; others
    are refused. Lifetimes must be the same for all events of a kind.
    """
    planting = planting or Planting()
    check_planting(system, span_s, planting)
    seed = planting.seed
    window = TraceWindow(from_ns=EPOCH_NS, until_ns=EPOCH_NS + round(span_s * NANOSECONDS))
    periods = draw_periods(system, window, seed)
    routes = route(system)
    lookup = look_up(periods, window)
    kinds = event_kinds(spark, system, routes, lookup.places)
    published = _published(moments(spark, system, routes, span_s, seed), kinds)
    begun = _after(lookup, F.col("away"), F.col("published_ns"))
    journeys = published.withColumn("begun_ns", begun).withColumn("journey", _journey(lookup, seed))
    hops = _hops(journeys)
    tables = {
        "publications": published.select(*_names("publications")),
        "hops": hops,
        "deliveries": _deliveries(journeys, lookup, seed),
        "subscriptions": _small(
            spark, "subscriptions", subscription_steps(system, periods.stays, window)
        ),
    }
    if periods.down:
        states = changes(periods.down, window, "component", ("up", "down"))
        tables["states"] = _small(spark, "states", states)
    if periods.away:
        sessions = changes(periods.away, window, "peer", ("connected", "disconnected"))
        tables["sessions"] = _small(spark, "sessions", sessions)
    if planting.probes:
        tables["probes"] = draw_probes(spark, system, planting.probes, seed, window)
    if planting.sample_s is not None:
        tables["utilisation"] = _samples(hops, planting.sample_s, window)
    return Generated(
        tables={
            name: spoil(_by_own_clocks(frame, name, planting.ahead_s), name, planting.dirt, seed)
            for name, frame in tables.items()
        },
        window=window,
    )


def write_generated(generated: Generated, folder: Path, tell: Progress | None = None) -> Path:
    """Write generated tables as Parquet, with their manifest; the folder appears when all is."""
    with new_folder(folder) as place:
        for name, frame in generated.tables.items():
            if tell is not None:
                tell(name)
            write = partial(frame.write.parquet, f"file://{(place / name).resolve()}")
            run_action(write, f"the table {name}, to be generated")
        window = generated.window
        ends = {"from_ns": window.from_ns, "until_ns": window.until_ns}
        manifest = {"version": FORMAT_VERSION, **ends, "source": "generated"}
        (place / MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")
    return folder


def rows_written(folder: Path) -> dict[str, int]:
    """How many rows each table of a folder has, as its Parquet files say."""
    return {
        table.name: sum(pq.read_metadata(each).num_rows for each in table.glob("*.parquet"))
        for table in sorted(folder.iterdir())
        if table.is_dir()
    }


# ---- what every event does -----------------------------------------------------------------------


def _published(at: DataFrame, kinds: DataFrame) -> DataFrame:
    """Every event, with what those of its kind do."""
    return at.join(F.broadcast(kinds), "kind").withColumns(
        {
            "event": F.concat(F.lit("e"), F.col("id").cast("string")),
            "published_ns": F.col("at_ns") + F.lit(EPOCH_NS),
        }
    )


def _journey(lookup: PeriodLookup, seed: int) -> Column:
    """When the event came to and left each broker of its way, and whether it came there at all."""

    def step(so_far: Column, hop: Column) -> Column:
        before = F.get(so_far, hop["parent"])
        first = hop["parent"] < 0
        name = hop["broker"]
        delay_ns = _ns(drawn_s(hop["delay"], seed, "delay", F.col("id"), name))
        service_ns = _ns(drawn_s(hop["service"], seed, "service", F.col("id"), name))
        lost = uniform(seed, "lost", F.col("id"), name) >= hop["reliability"]

        def arrived(left_ns: Column, at_ns: Column) -> Column:
            cut, down = lookup.within(hop["cut"], left_ns), lookup.within(hop["down"], at_ns)
            stopped = lost | F.coalesce(cut, F.lit(False)) | F.coalesce(down, F.lit(False))
            return F.struct(
                ((first | before["alive"]) & ~stopped).alias("alive"),
                at_ns.alias("arrived_ns"),
                (at_ns + service_ns).alias("left_ns"),
            ).cast(_JOURNEY)

        left = F.when(first, F.col("begun_ns")).otherwise(before["left_ns"])
        here = bound(left, lambda at: bound(at + delay_ns, lambda then: arrived(at, then)))
        return F.concat(so_far, F.array(here))

    return F.aggregate("hops", F.array().cast(f"array<{_JOURNEY}>"), step)


def _after(lookup: PeriodLookup, away: Column, at_ns: Column) -> Column:
    """The moment itself or, where somebody is away then, that of coming back."""
    return F.coalesce(lookup.until(away, at_ns), at_ns)


def _steps(journeys: DataFrame) -> DataFrame:
    """One row per broker that an event came to."""
    both = F.arrays_zip(F.col("hops").alias("hop"), F.col("journey").alias("seen"))
    rows = journeys.select("id", "event", "published_ns", F.explode(both).alias("step"))
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


def _deliveries(journeys: DataFrame, lookup: PeriodLookup, seed: int) -> DataFrame:
    rows = _steps(journeys).select(
        "id",
        "event",
        "published_ns",
        F.col("step.hop.broker").alias("broker"),
        F.col("step.seen.left_ns").alias("left_ns"),
        F.explode("step.hop.subscribers").alias("one"),
    )
    name, stays = F.col("one.name"), F.col("one.stays")
    delay_s = drawn_s(F.col("one.delay"), seed, "delay", F.col("id"), name)
    received = bound(
        F.col("left_ns") + _ns(delay_s), lambda at: _after(lookup, F.col("one.away"), at)
    )
    ends_ns = lookup.until(stays, F.col("published_ns"))
    arrives = uniform(seed, "lost", F.col("id"), name) < F.col("one.reliability")
    taken = rows.where(arrives).select(
        "event",
        name.alias("subscriber"),
        "broker",
        bound(received, lambda at: F.when(stays.isNull() | (at < ends_ns), at)).alias(
            "received_ns"
        ),
    )
    return taken.where(F.col("received_ns").isNotNull())


def _samples(hops: DataFrame, sample_s: float, window: TraceWindow) -> DataFrame:
    """How busy each broker was in every whole interval: the work on what it was done with then."""
    interval_ns = round(sample_s * NANOSECONDS)
    number = F.call_function("div", F.col("left_ns") - F.lit(window.from_ns), F.lit(interval_ns))
    whole = (window.until_ns - window.from_ns) // interval_ns
    worked = F.sum(F.col("left_ns") - F.col("started_ns")) / F.lit(float(interval_ns))
    sampled = hops.groupBy("broker", number.alias("number")).agg(worked.alias("busy"))
    return sampled.where(F.col("number") < whole).select(
        "broker",
        F.lit("cpu").alias("resource"),
        # An interval includes its end, and not its beginning.
        (F.lit(window.from_ns - 1) + (F.col("number") + 1) * interval_ns).alias("until_ns"),
        F.lit(interval_ns).cast("bigint").alias("interval_ns"),
        "busy",
    )


# ---- whose clocks --------------------------------------------------------------------------------

_CLOCKS = {
    "publications": {"published_ns": "publisher"},
    "hops": {"arrived_ns": "broker", "started_ns": "broker", "left_ns": "broker"},
    "deliveries": {"received_ns": "subscriber"},
    "probes": {"sent_ns": "source", "received_ns": "target"},
}


def _by_own_clocks(frame: DataFrame, name: str, ahead_s: Mapping[str, float]) -> DataFrame:
    """The rows with times as the clocks of those who recorded them show them."""
    if not ahead_s or name not in _CLOCKS:
        return frame
    ahead = F.create_map(
        *(F.lit(each) for who, s in ahead_s.items() for each in (who, round(s * NANOSECONDS)))
    )
    shown = {
        time: F.col(time) + F.coalesce(F.element_at(ahead, F.col(who)), F.lit(0))
        for time, who in _CLOCKS[name].items()
    }
    return frame.withColumns(shown)


def _small(spark: SparkSession, name: str, rows: pd.DataFrame) -> DataFrame:
    table: pa.Table = trace_table(name, {column: rows[column] for column in rows.columns})
    return spark.createDataFrame(table)


def _ns(seconds: Column) -> Column:
    return F.round(seconds * float(NANOSECONDS)).cast("bigint")


def _names(table: str) -> list[str]:
    return [column.name for column in TRACE_TABLES[table].columns]
