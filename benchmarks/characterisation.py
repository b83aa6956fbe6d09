"""The characterisation of traces against a bare scan of the same columns, and against DuckDB.

Traces are made by Spark itself (three brokers in a row, two publishers, three subscribers), read
from Parquet, and characterised. CPU seconds of Java and Python together: what others do on the
machine does not count. The bare scan reads every column that the statistics read and takes its
greatest value. DuckDB does the counts that Spark does, on the same files.

    python benchmarks/characterisation.py [--hops 1000000 10000000] [--write]
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from recording import add_write_option, record

from tidings.characterisation.job import characterise
from tidings.model.reading import loads
from tidings.traces.generating import generate_traces, write_generated
from tidings.traces.reading import Traces, read_traces
from tidings.traces.session import spark_session

HOPS_PER_EVENT = 2.2  # of the system below, about
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
    """CPU seconds of this process and of the Java that Spark runs in."""

    def __init__(self, spark: SparkSession) -> None:
        jvm: Any = spark.sparkContext._jvm
        self._stat = Path(f"/proc/{jvm.java.lang.ProcessHandle.current().pid()}/stat")

    def now(self) -> float:
        """CPU seconds spent so far."""
        fields = self._stat.read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / 100 + time.process_time()

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


def with_duckdb(folder: Path, from_ns: int, width_ns: int) -> float | None:
    """CPU seconds of the same counts in DuckDB; None where it is not installed."""
    try:
        import duckdb
    except ImportError:
        return None
    tables = {name: f"read_parquet('{folder}/{name}/*.parquet')"
              for name in ("publications", "hops", "deliveries")}  # fmt: skip
    bins = "ceil(log10(greatest({}, 1e-6) / 1e-6) * 50)"
    batch = f"({{}} - {from_ns}) // {width_ns}"
    sums = "count(*), sum({0}), sum({0} * {0}), sum(ln(nullif({0}, 0))), min({0}), max({0})"
    service = "(left_ns - started_ns) / 1e9"
    queries = [
        f"select broker, came_from, {bins.format(service)} b, {batch.format('arrived_ns')} t, "
        f"{sums.format(service)} from {tables['hops']} group by all",
        f"select publisher, broker, content, lifetime_ns, {batch.format('published_ns')} t, "
        f"count(*), sum(size_bytes) from {tables['publications']} group by all",
        f"select publisher, t, {bins.format('gap')} b, {sums.format('gap')} from ("
        f"select publisher, {batch.format('published_ns')} t, (published_ns - lag(published_ns) "
        "over (partition by publisher order by published_ns)) / 1e9 gap "
        f"from {tables['publications']}) group by all",
        f"select subscriber, publisher, {batch.format('published_ns')} t, "
        f"{bins.format('(received_ns - published_ns) / 1e9')} b, count(*), "
        "count_if(received_ns - published_ns <= lifetime_ns) from (select event, subscriber, "
        f"min(received_ns) received_ns from {tables['deliveries']} group by all) "
        f"join {tables['publications']} using (event) group by all",
        "select publisher, content, brokers, sent, count(*) from (select event, list_sort(list("
        f"distinct broker)) brokers, list_sort(flatten(list(sent_to))) sent from {tables['hops']} "
        f"group by event) right join {tables['publications']} using (event) group by all",
    ]
    begun = time.process_time()
    with duckdb.connect() as connection:
        for query in queries:
            connection.sql(query).fetchall()
    return time.process_time() - begun


def measure(spark: SparkSession, hops: int, folder: Path) -> dict[str, Any]:
    events = round(hops / HOPS_PER_EVENT)
    made = generate_traces(spark, SYSTEM, events, probes=10_000)
    clock = Clock(spark)
    generating_s = clock.spent(lambda: write_generated(made, folder))
    traces = read_traces(spark, folder)
    bare_scan(traces)  # warms up
    scan_s = clock.spent(lambda: bare_scan(traces))
    stages = by_stage(traces, clock)
    width_ns = (made.window.until_ns - made.window.from_ns) // 32 + 1
    rows = traces.tables["hops"].count()
    return {
        "hops": rows,
        "generating_s": round(generating_s, 2),
        "scan_s": round(scan_s, 2),
        "characterise_s": round(sum(stages.values()), 2),
        "times_the_scan": round(sum(stages.values()) / scan_s, 2),
        "stages_s": {name: round(value, 2) for name, value in stages.items()},
        "duckdb_s": with_duckdb(folder, made.window.from_ns, width_ns),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hops", type=int, nargs="+", default=[1_000_000, 10_000_000])
    parser.add_argument("--master", default="local[*]")
    add_write_option(parser, "characterisation")
    args = parser.parse_args()
    rows = []
    with spark_session(args.master) as spark:
        for hops in args.hops:
            with tempfile.TemporaryDirectory() as folder:
                rows.append(measure(spark, hops, Path(folder)))
            print(json.dumps(rows[-1]))
    first, last = rows[0], rows[-1]
    if len(rows) > 1:
        growth = math.log(last["characterise_s"] / first["characterise_s"])
        slope = growth / math.log(last["hops"] / first["hops"])
        print(f"CPU time grows with the rows to the power of {slope:.2f}")
    if args.write:
        record("characterisation", {"rows": rows})


if __name__ == "__main__":
    main()
