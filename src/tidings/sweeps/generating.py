"""Traces of any size: runs of the simulator recorded on Spark, with planted dirt.

The time covered is cut into slices, and every slice is a replication of its own, run and recorded
by one task: after a warm-up that is thrown away, and to the end of the last event published in it.
How it is cut depends on the system and the time alone, so that a seed gives the same rows however
many tasks and machines make them.

At a seam between slices the one run knows nothing of the other: for as long as events take, a
broker works on the last of the one and the first of the other side by side, and the interval of a
publisher that spans the seam is one residual after another. Both happen once in a million events.
Where a seam would show, all is one slice: where anything fails, comes or goes, and where days of
rates do not repeat.
"""

from __future__ import annotations

import json
import math
import pickle
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidings.errors import EngineError, InvalidInputError
from tidings.model import reading
from tidings.model.progress import Progress
from tidings.model.record_tables import names
from tidings.model.system import System
from tidings.model.trace_tables import FORMAT_VERSION, MANIFEST, TRACE_TABLES
from tidings.model.writing import new_folder
from tidings.simulation.network import CompiledSystem, compile_system
from tidings.simulation.options import SimulationOptions
from tidings.simulation.recording import RECORDED, RecordedRun, recordable, recorded_tables
from tidings.simulation.run import refuse_overload
from tidings.simulation.trace_rows import EPOCH_NS
from tidings.simulation.windows import cycles, find_window
from tidings.simulation.world import Window
from tidings.sweeps.dirt import CLEAN, Dirt, spoil
from tidings.sweeps.replications import compiled_once
from tidings.traces.actions import reason_of
from tidings.traces.window import NANOSECONDS, TraceWindow

EVENTS_OF_A_SLICE = 1_000_000
EVENTS_BEFORE = 10_000  # published at least in a warm-up: pilot runs find what a mean needs
# What is learnt from traces of several servers may be wrong, but here the truth is known.
HANDLED = RECORDED | {"several servers"}
HOSTS = ("brokers", "publishers", "subscribers")  # who has a clock


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
    """Compute in how many seconds a system publishes so many events, in the long run."""
    return events / sum(publisher.rate_per_s for publisher in system.publishers)


def check_planting(system: System, span_s: float, planting: Planting) -> CompiledSystem:
    """Refuse, by name, what is not planted, and compile the system; needs no Spark."""
    system = recordable(system, HANDLED, "the generator of traces")
    hosts = {name for each in HOSTS for name in names(getattr(system, each))}
    strangers = sorted(planting.ahead_s.keys() - hosts)
    if strangers:
        raise InvalidInputError(
            f"--ahead names '{strangers[0]}', which is not in the system; wants a broker, "
            "publisher or subscriber of it"
        )
    if sum(each.rate_per_s for each in system.publishers) * span_s < 1:
        raise InvalidInputError(
            f"in {span_s:g} s less than one event would be published; give a longer --duration"
        )
    compiled = compile_system(system)
    refuse_overload(compiled)
    return compiled


def generate_traces(
    spark: SparkSession, system: System, span_s: float, planting: Planting | None = None
) -> Generated:
    """Generate trace tables of so many seconds, from a midnight on.

    The warm-up is found by pilot runs here, as for a simulation. A table is made by running its
    slices, so that all are run anew for every table that is used.
    """
    planting = planting or Planting()
    compiled = check_planting(system, span_s, planting)
    window = TraceWindow(from_ns=EPOCH_NS, until_ns=EPOCH_NS + round(span_s * NANOSECONDS))
    plan = planned(compiled, span_s, planting)
    tables = {
        name: _recorded(spark, name, plan)
        for name in recorded_tables(compiled)
        if name != "probes" or planting.probes
    }
    if planting.sample_s is not None:
        tables["utilisation"] = _samples(tables["hops"], planting.sample_s, window)
    ahead_s, dirt, seed = planting.ahead_s, planting.dirt, planting.seed
    return Generated(
        tables={
            name: spoil(_by_own_clocks(frame, name, ahead_s), name, dirt, seed)
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
            try:
                frame.write.parquet(f"file://{(place / name).resolve()}")
            except Exception as problem:
                raise EngineError(
                    f"Spark failed to generate the table {name}: {reason_of(problem)}"
                ) from None
        window = generated.window
        ends = {"from_ns": window.from_ns, "until_ns": window.until_ns}
        manifest = {"version": FORMAT_VERSION, **ends, "source": "generated"}
        (place / MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")
    return folder


def rows_written(folder: Path) -> dict[str, int]:
    """Count the rows of each table of a folder, as its Parquet files say."""
    return {
        table.name: sum(pq.read_metadata(each).num_rows for each in table.glob("*.parquet"))
        for table in sorted(folder.iterdir())
        if table.is_dir()
    }


# ---- slices --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class SlicePlan:
    """What every task is sent: the system, and when its slices begin and the last one ends."""

    document: bytes
    edges_ns: tuple[int, ...]
    warmup_s: float
    planting: Planting

    def run(self, number: int) -> RecordedRun:
        """Make the run of one slice."""
        begin_ns, end_ns, last_ns = *self.edges_ns[number : number + 2], self.edges_ns[-1]
        probes = [self.planting.probes * each // last_ns for each in (begin_ns, end_ns)]
        end_s = self.warmup_s + (end_ns - begin_ns) / NANOSECONDS
        return RecordedRun(
            compiled=compiled_once(self.document),
            window=Window(warmup_s=self.warmup_s, end_s=end_s, starts_ns=begin_ns),
            seed=self.planting.seed,
            replication=number,
            probes=probes[1] - probes[0],
        )


def planned(compiled: CompiledSystem, span_s: float, planting: Planting) -> SlicePlan:
    """Plan time slices, with the warm-up in seconds."""
    options = SimulationOptions(seed=planting.seed, duration_s=span_s)
    window, _ = find_window(compiled, options, lambda _: None)
    whole_ns = round(span_s * NANOSECONDS)
    step_ns = round(min(span_s, slice_s(compiled)) * NANOSECONDS)
    return SlicePlan(
        document=pickle.dumps(reading.system_document(compiled.system)),
        edges_ns=(*range(0, whole_ns, step_ns), whole_ns),
        warmup_s=max(window.warmup_s, span_of(compiled.system, EVENTS_BEFORE)),
        planting=planting,
    )


def slice_s(compiled: CompiledSystem) -> float:
    """Compute how long a slice is, in seconds: about a million events, and whole days of rates."""
    days = {each.rates for each in compiled.system.publishers if each.rates is not None}
    lengths_s = {each.length_s for each in days} | ({compiled.delay_day_s} - {0.0})
    once = any(not each.repeat for each in days) or len(lengths_s) > 1
    once = once or any(each.publishes is not None for each in compiled.system.publishers)
    if once or compiled.churn.matters or any(cycles(compiled)):
        return math.inf
    least_s = EVENTS_OF_A_SLICE / float(compiled.publisher_rates.sum())
    return math.ceil(least_s / compiled.day_s) * compiled.day_s if lengths_s else least_s


def _recorded(spark: SparkSession, name: str, plan: SlicePlan) -> DataFrame:
    """Record the rows of one table, a task for every slice."""
    slices = 1 if name == "subscriptions" else len(plan.edges_ns) - 1

    def on_worker(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch["id"].to_pylist():
                for _, rows in plan.run(number).rows([name]):
                    yield from rows.to_batches()

    return spark.range(0, slices, 1, slices).mapInArrow(on_worker, TRACE_TABLES[name].ddl)


def _samples(hops: DataFrame, sample_s: float, window: TraceWindow) -> DataFrame:
    """Compute each broker's utilisation per whole interval, from events that left in it."""
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
    "deliveries": {"received_ns": "subscriber", "started_ns": "subscriber"},
    "probes": {"sent_ns": "source", "received_ns": "target"},
}


def _by_own_clocks(frame: DataFrame, name: str, ahead_s: Mapping[str, float]) -> DataFrame:
    """Shift the times of rows to what the clocks of those who recorded them show."""
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
