"""The characterisation of traces against a bare scan of the same columns, and against DuckDB.

Traces are recorded in Spark's tasks (three brokers in a row, two publishers, three subscribers),
read from Parquet, and characterised. CPU seconds of Java and Python together: what others do on the
machine does not count. The bare scan reads every column that the statistics read and takes its
greatest value. DuckDB does the counts that Spark does, on the same files.

    python benchmarks/characterisation.py [--hops 1000000 10000000] [--traces DIR] [--write]
    python benchmarks/characterisation.py --fixed      # what tiny traces cost, first and again

With ``--traces`` what was made stays in DIR/HOPS and is used again: to make a hundred million hops
takes longer than to characterise them. DuckDB gets as much memory as Spark's driver.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import math
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from recording import add_write_option, record

from tidings.characterisation.count.deliveries import subscription_statistics
from tidings.characterisation.count.hops import hop_statistics
from tidings.characterisation.count.links import probe_statistics
from tidings.characterisation.count.publications import publication_statistics
from tidings.characterisation.job import characterise
from tidings.model.reading import loads
from tidings.model.trace_tables import MANIFEST
from tidings.simulation.recording import record as record_run
from tidings.simulation.recording import write_traces
from tidings.sweeps.generating import Planting, generate_traces, span_of, write_generated
from tidings.traces.reading import Traces, read_traces
from tidings.traces.session import spark_session
from tidings.traces.window import TraceWindow

HOPS_PER_EVENT = 2.78  # of the system below, about
TINY_S = 20.0  # of events: so few that all of it is planning
SYSTEM = loads("""
tidings: 1
lifetime: 80ms
brokers:
  west: {service: {exponential: 1ms}}
  hub: {service: {uniform: [1ms, 3ms]}}
  east: {service: {lognormal: {mean: 2ms, scv: 2}}}
links:
  - {between: [west, hub], delay: {exponential: 10ms}, reliability: 0.99}
  - {between: [hub, east], delay: {exponential: 5ms}, reliability: 0.995}
publishers:
  ticker:
    at: west
    every: {exponential: 10ms}
    content:
      - {p: 0.7, event: {topic: stock, price: 12}}
      - {p: 0.3, event: {topic: fx}}
  tower: {at: east, every: {exponential: 20ms}, content: [{p: 1, event: {topic: wind}}]}
subscribers:
  alice: {at: east, wants: {topic: stock}, link: {delay: {exponential: 20ms}}}
  bob: {at: hub, wants: {topic: {one_of: [fx, wind]}}, link: {delay: {exponential: 4ms}}}
  carol: {at: west, wants: {topic: wind}}
""")


class Clock:
    """CPU seconds of this process, of the Java that Spark runs in and of its Python workers."""

    def __init__(self, spark: SparkSession) -> None:
        jvm: Any = spark.sparkContext._jvm
        self._java = str(jvm.java.lang.ProcessHandle.current().pid())

    def now(self) -> float:
        """CPU seconds spent so far; of a worker that has ended whoever started it knows them."""
        processes = {}
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):  # it has ended
                processes[stat.parent.name] = stat.read_text().rpartition(")")[2].split()
        ours = {self._java}
        for _ in range(2):  # Java starts a process that starts the workers
            ours |= {number for number, fields in processes.items() if fields[1] in ours}
        ticks = sum(sum(map(int, processes[each][11:15])) for each in ours)
        return ticks / 100 + time.process_time()

    def spent(self, work: Callable[[], Any]) -> float:
        """CPU seconds that a piece of work takes."""
        begun = self.now()
        work()
        return self.now() - begun


def bare_scan(traces: Traces) -> None:
    """Read every column and reduce it: what no statistic can do without."""
    for frame in traces.tables.values():
        columns = [F.max(F.xxhash64(name)) for name in frame.columns if name != "unreadable"]
        frame.agg(*columns).collect()


def by_stage(traces: Traces, clock: Clock) -> dict[str, float]:
    """CPU seconds of every stage of a characterisation."""
    marks: list[tuple[str, float]] = []
    characterise(traces, progress=lambda stage: marks.append((stage, clock.now())))
    marks.append(("end", clock.now()))
    return {stage: after - before for (stage, before), (_, after) in itertools.pairwise(marks)}


def one_pass(traces: Traces) -> None:
    """The statistics that need no row to meet another one: counts, samples and histograms."""
    tables, window = traces.tables, traces.window
    for counted in (
        hop_statistics(tables["hops"], window),
        publication_statistics(tables["publications"], window, window),
        probe_statistics(tables["probes"]),
        subscription_statistics(tables["subscriptions"]),
    ):
        counted.toPandas()


def scan_of_one_pass(traces: Traces) -> None:
    """The bare scan of the tables of :func:`one_pass`."""
    names = ("hops", "publications", "probes", "subscriptions")
    bare_scan(replace(traces, tables={name: traces.tables[name] for name in names}))


def duckdb_queries(folder: Path, from_ns: int, width_ns: int) -> dict[str, list[str]]:
    """The same counts in SQL, by the stage of the characterisation that makes them."""
    table = {
        name: f"read_parquet('{folder}/{name}/*.parquet')"
        for name in ("publications", "hops", "deliveries", "probes", "subscriptions")
    }
    bins = "ceil(log10(greatest({}, 1e-6) / 1e-6) * 50)"
    batch = f"({{}} - {from_ns}) // {width_ns}"
    sums = (
        "count(*), sum({0}), sum({0} * {0}), sum(ln(nullif({0}, 0))), "
        "sum(ln(nullif({0}, 0)) ** 2), min({0}), max({0})"
    )
    service, wait = "(left_ns - started_ns) / 1e9", "(started_ns - arrived_ns) / 1e9"
    delay = "(received_ns - sent_ns) / 1e9"
    return {
        "subscriptions": [
            "select subscriber, broker, filter, count(*) "
            f"from {table['subscriptions']} group by all"
        ],
        "hops": [
            f"select broker, came_from, {bins.format(service)} b, {batch.format('arrived_ns')} t, "
            f"sum({wait}), {sums.format(service)} from {table['hops']} group by all",
            f"select broker, {bins.format(wait)} b, {sums.format(wait)} from {table['hops']} "
            "where started_ns > arrived_ns group by all",
        ],
        "publications": [
            f"select publisher, broker, content, lifetime_ns, {batch.format('published_ns')} t, "
            f"count(*), sum(size_bytes) from {table['publications']} group by all",
            "select publisher, content, brokers, sent, count(*) from (select event, list_sort(list("
            f"distinct broker)) brokers, list_sort(flatten(list(sent_to))) sent from "
            f"{table['hops']} group by event) right join {table['publications']} using (event) "
            "group by all",
        ],
        "intervals": [
            f"select publisher, t, {bins.format('gap')} b, {sums.format('gap')} from ("
            f"select publisher, {batch.format('published_ns')} t, (published_ns - "
            "lag(published_ns) over (partition by publisher order by published_ns)) / 1e9 gap "
            f"from {table['publications']}) group by all"
        ],
        "links": [
            f"select source, target, {bins.format(delay)} b, {sums.format(delay)} "
            f"from {table['probes']} group by all",
            "select source, target, count(*), count_if(lost and after) from (select source, "
            "target, received_ns is null lost, lag(received_ns is null) over (partition by "
            f"source, target order by sent_ns) after from {table['probes']}) group by all",
        ],
        "deliveries": [
            f"select subscriber, publisher, {batch.format('published_ns')} t, "
            f"{bins.format('(received_ns - published_ns) / 1e9')} b, count(*), "
            "count_if(received_ns - published_ns <= lifetime_ns) from (select event, subscriber, "
            f"min(received_ns) received_ns from {table['deliveries']} group by all) "
            f"join {table['publications']} using (event) group by all"
        ],
    }


def with_duckdb(folder: Path, window: TraceWindow, memory: str) -> dict[str, float] | None:
    """CPU seconds of the same counts in DuckDB, stage by stage; None where it is not installed."""
    try:
        import duckdb
    except ImportError:
        return None
    found = {}
    width_ns = (window.until_ns - window.from_ns) // 32 + 1
    with tempfile.TemporaryDirectory() as spilled, duckdb.connect() as connection:
        connection.execute(f"set memory_limit = '{memory}iB'")
        connection.execute(f"set temp_directory = '{spilled}'")
        for stage, queries in duckdb_queries(folder, window.from_ns, width_ns).items():
            begun = time.process_time()
            for query in queries:
                connection.sql(query).fetchall()
            found[stage] = time.process_time() - begun
    return found


def make_traces(spark: SparkSession, hops: int, folder: Path) -> float | None:
    """CPU seconds to make traces of about so many hops; None where they are there already."""
    if (folder / MANIFEST).exists():  # written last
        return None
    span = span_of(SYSTEM, round(hops / HOPS_PER_EVENT))
    made = generate_traces(spark, SYSTEM, span, Planting(probes=10_000))
    return round(Clock(spark).spent(lambda: write_generated(made, folder)), 2)


def measure(spark: SparkSession, hops: int, folder: Path, memory: str) -> dict[str, Any]:
    """CPU seconds of everything, on traces of about so many hops."""
    generating_s = make_traces(spark, hops, folder)
    clock = Clock(spark)
    traces = read_traces(spark, folder)
    bare_scan(traces)  # warms up
    one_pass(traces)
    scan_s = clock.spent(lambda: bare_scan(traces))
    part_s = clock.spent(lambda: scan_of_one_pass(traces))
    one_pass_s = clock.spent(lambda: one_pass(traces))
    stages = by_stage(traces, clock)
    whole_s = sum(stages.values())
    duckdb = with_duckdb(folder, traces.window, memory)
    return {
        "hops": traces.tables["hops"].count(),
        "generating_s": generating_s,
        "scan_s": round(scan_s, 2),
        "one_pass_s": round(one_pass_s, 2),
        "one_pass_times_its_scan": round(one_pass_s / part_s, 2),
        "characterise_s": round(whole_s, 2),
        "times_the_scan": round(whole_s / scan_s, 2),
        "stages_s": {name: round(value, 2) for name, value in stages.items()},
        "duckdb_s": duckdb and round(sum(duckdb.values()), 2),
        "duckdb_stages_s": duckdb and {name: round(value, 2) for name, value in duckdb.items()},
    }


def fixed_cost(folder: Path, runs: int = 4) -> None:
    """Print CPU and wall seconds of characterisations of tiny traces, and the classes they compile.

    The first is a command's: Spark is up, and has counted to ten. Later ones are those of tests and
    of whoever watches.
    """
    recorded = record_run(SYSTEM, duration_s=TINY_S, warmup_s=1.0, seed=1, probes_per_s=50.0)
    write_traces(recorded, folder)
    with spark_session("local[2]", memory="1g", small=True) as spark:
        spark.range(10).count()
        clock, jvm = Clock(spark), spark.sparkContext._jvm
        compiled = jvm.org.apache.spark.metrics.source.CodegenMetrics.METRIC_COMPILATION_TIME
        for _ in range(runs):
            begun, classes = time.monotonic(), compiled().getCount()
            cpu_s = clock.spent(lambda: characterise(read_traces(spark, folder)))
            wall_s = time.monotonic() - begun
            row = {"cpu_s": cpu_s, "wall_s": wall_s, "classes": compiled().getCount() - classes}
            print(json.dumps({name: round(value, 2) for name, value in row.items()}), flush=True)


def conclusions(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """How it grows, and where Spark on many machines would overtake DuckDB on one.

    Through the first and the last size CPU time is a line, a + b n. If m machines shared the rows
    evenly and at no cost, which nothing here has measured, Spark would take a + b n / m and DuckDB
    keep its line: they cross at n = (a - a') / (b' - b / m), and never where m is at most b / b'.
    """
    first, last = rows[0], rows[-1]
    if len(rows) < 2:
        return {}
    growth = math.log(last["characterise_s"] / first["characterise_s"])
    found: dict[str, Any] = {"power": round(growth / math.log(last["hops"] / first["hops"]), 3)}
    if first["duckdb_s"]:
        ours, theirs = (_line(first, last, name) for name in ("characterise_s", "duckdb_s"))
        ratio = ours[1] / theirs[1]
        found["duckdb_is_faster_by"] = round(last["characterise_s"] / last["duckdb_s"], 1)
        found["machines_that_make_up_for_duckdb"] = round(ratio, 1)
        found["hops_where_lines_cross"] = {
            str(machines): round((ours[0] - theirs[0]) / (theirs[1] - ours[1] / machines))
            for machines in (math.ceil(times * ratio) for times in (1.25, 2, 4))
        }
    return found


def _line(first: dict[str, Any], last: dict[str, Any], name: str) -> tuple[float, float]:
    """Fixed CPU seconds, and those per hop, of the line through two sizes."""
    slope = (last[name] - first[name]) / (last["hops"] - first["hops"])
    return first[name] - slope * first["hops"], slope


def main() -> None:
    """Measure, print, and with ``--write`` record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hops", type=int, nargs="+", default=[1_000_000, 10_000_000])
    parser.add_argument("--master", default="local[*]")
    parser.add_argument("--memory", default="4g", help="of Spark's driver")
    parser.add_argument("--traces", type=Path, help="where traces are kept and used again")
    parser.add_argument("--fixed", action="store_true", help="what tiny traces cost, and only that")
    add_write_option(parser, "characterisation")
    args = parser.parse_args()
    if args.fixed:
        with tempfile.TemporaryDirectory() as passing:
            fixed_cost(Path(passing) / "tiny")
        return
    rows = []
    with spark_session(args.master, memory=args.memory) as spark:
        for hops in args.hops:
            with tempfile.TemporaryDirectory() as passing:
                folder = (args.traces or Path(passing)) / str(hops)
                rows.append(measure(spark, hops, folder, args.memory))
            print(json.dumps(rows[-1]), flush=True)
            found = {"memory": args.memory, "rows": rows, **conclusions(rows)}
            if args.write:  # what has been measured is kept if the next size is too much
                record("characterisation", found)
    print(json.dumps(conclusions(rows)))


if __name__ == "__main__":
    main()
