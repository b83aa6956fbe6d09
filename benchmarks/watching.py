"""How many rows a second a watch keeps up with, and whether its memory and its batches grow.

A minute of traffic is recorded once by the simulator and comes again and again, a minute later each
time, as fast as it is taken in: an accelerated hour. A batch that takes less than the trigger of a
minute keeps up. Beside wall time stands CPU time, of Python and Java: what two cores could keep up
with if they had nothing else to do and were both used throughout.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from recording import add_write_option, record

import tidings as td
from tidings.traces.session import spark_session
from tidings.watching import rounds
from tidings.watching.closing import Closing

TRIGGER_S = 60.0
BROKERS = 4  # in a line: an event is seen by all of them
SYSTEM = """
tidings: 1
lifetime: 1s
brokers: {{a: {{service: 20us}}, b: {{service: 20us}}, c: {{service: 20us}}, d: {{service: 20us}}}}
links:
  - {{between: [a, b], delay: {{exponential: 5ms}}}}
  - {{between: [b, c], delay: {{exponential: 5ms}}}}
  - {{between: [c, d], delay: {{exponential: 5ms}}}}
publishers:
  ann: {{at: a, every: {{exponential: {every_s}}}, content: {{event: {{topic: news}}}}}}
subscribers:
  bob: {{at: b, wants: {{topic: news}}, target: 0.9}}
  dan: {{at: d, wants: {{topic: news}}, target: 0.9}}
"""


def a_minute(system: td.System) -> dict[str, pd.DataFrame]:
    """What is recorded of a minute."""
    recording = td.record(system, seed=1, duration_s=TRIGGER_S)
    return {name: table.to_pandas() for name, table in recording.tables.items()}


def put(tables: dict[str, pd.DataFrame], source: Path, minute: int) -> int:
    """Let the rows of a minute appear, so many minutes later; gives how many hops they have."""
    for name, rows in tables.items():
        if minute and name == "subscriptions":
            continue
        later = rows.copy()
        for column in later.columns:
            if column.endswith("_ns") and column != "lifetime_ns":
                later[column] += minute * round(TRIGGER_S * 1e9)
        if "event" in later:
            later["event"] = f"{minute}-" + later["event"].astype(str)
        (source / name).mkdir(parents=True, exist_ok=True)
        draft = source / name / f".{minute:05d}"
        later.to_parquet(draft, index=False)
        os.rename(draft, source / name / f"{minute:05d}.parquet")
        if minute > 1:  # taken in long ago
            (source / name / f"{minute - 2:05d}.parquet").unlink(missing_ok=True)
    return len(tables["hops"])


def cpu_s(spark: Any) -> float:
    """CPU seconds that Python and Java have used so far."""
    pid = spark._jvm.java.lang.ProcessHandle.current().pid()
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    java = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return time.process_time() + java


def memory_mb(spark: Any) -> tuple[float, float]:
    """Memory in use: of this process, and of the Java heap after a collection."""
    java = spark._jvm.java.lang
    java.System.gc()
    used = java.management.ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20, used / 2**20


def measure(hops_per_s: float, minutes: int, most_s: float, place: Path) -> list[dict[str, float]]:
    """Watch minute after minute, and begin none after so long; gives a row for each."""
    system = td.loads(SYSTEM.format(every_s=f"{BROKERS / hops_per_s:.9f}s"))
    tables = a_minute(system)
    source, store = place / "in", place / "store"
    source.mkdir()
    plan = rounds.Plan(
        closing=Closing(source=source, store=store, base=system),
        system=system,
        name="benchmark",
        folder=store / "watch",
    )
    rows = []
    with (
        spark_session("local[2]") as spark,
        rounds.watching(plan, spark, lambda _: None, lambda _: None) as watcher,
    ):
        ends = time.monotonic() + most_s
        for minute in range(minutes):
            if time.monotonic() > ends:
                break
            hops = put(tables, source, minute)
            begun, used = time.monotonic(), cpu_s(spark)
            state = watcher.round()
            batch_s, used_s = time.monotonic() - begun, cpu_s(spark) - used
            if state.health.problem:
                print(state.health.problem, flush=True)
            here, heap = memory_mb(spark)
            rows.append(
                {
                    "minute": minute,
                    "hops": hops,
                    "rows": state.health.rows,
                    "batch_s": round(batch_s, 1),
                    "cpu_s": round(used_s, 1),
                    "hops_per_s": round(hops / batch_s),
                    "hops_per_cpu_s": round(hops / used_s),
                    "of_trigger": round(batch_s / TRIGGER_S, 3),
                    "python_mb": round(here),
                    "heap_mb": round(heap),
                    "files_in_store": sum(1 for _ in store.glob("counted-*/**/*.parquet")),
                }
            )
            print(", ".join(f"{name} {value}" for name, value in rows[-1].items()), flush=True)
    return rows


def summary(rows: list[dict[str, float]]) -> dict[str, float]:
    """What is kept up with, and the last third against the first, without the first three."""
    steady = rows[3:]
    third = max(len(steady) // 3, 1)
    first, last = steady[:third], steady[-third:]

    def mean(of: list[dict[str, float]], name: str) -> float:
        return float(np.mean([each[name] for each in of]))

    return {
        "kept_up_with_hops_per_s": round(min(each["hops_per_s"] for each in steady)),
        "least_hops_per_cpu_s": round(min(each["hops_per_cpu_s"] for each in steady)),
        "longest_batch_of_trigger": max(each["of_trigger"] for each in steady),
        "cpu_last_to_first": round(mean(last, "cpu_s") / mean(first, "cpu_s"), 2),
        "heap_last_to_first": round(mean(last, "heap_mb") / mean(first, "heap_mb"), 2),
        "python_last_to_first": round(mean(last, "python_mb") / mean(first, "python_mb"), 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hops-per-s", type=float, default=10_000.0)
    parser.add_argument("--minutes", type=int, default=60)
    parser.add_argument("--most-s", type=float, default=float("inf"), help="begin none after that")
    add_write_option(parser, "watching")
    args = parser.parse_args()
    load = os.getloadavg()[0] / (os.cpu_count() or 1)
    with tempfile.TemporaryDirectory() as place:
        rows = measure(args.hops_per_s, args.minutes, args.most_s, Path(place))
    kept_up = summary(rows)
    print(kept_up)
    print(f"processes that wanted to run, for each core, at the beginning: {load:.1f}")
    if args.write:
        asked = {"hops_per_s": args.hops_per_s, "load_per_core": round(load, 1)}
        record("watching", {**asked, **kept_up, "rows": rows})


if __name__ == "__main__":
    main()
