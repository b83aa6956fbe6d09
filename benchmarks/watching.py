"""How many rows a second a watch keeps up with, and whether its memory and its batches grow.

A minute of traffic is recorded once by the simulator and comes again and again, a minute later each
time, as fast as it is taken in: an accelerated hour. A batch that takes less than the trigger of a
minute keeps up. Beside wall time stands CPU time, of Python and Java: what two cores could keep up
with if they had nothing else to do and were both used throughout.

Memory is what is in use after a collection that was asked for: the heap before one says only how
long ago the last one was. ``--collect-every`` rounds it is taken, and its slope with a standard
error over all that were taken after the first few.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from recording import add_write_option, record
from scipy import stats

import tidings as td
from tidings.traces.session import spark_session
from tidings.watching import rounds
from tidings.watching.closing import Closing

TRIGGER_S = 60.0
TAKEN_IN = 20  # minutes after which files have surely been taken in
CLEANING_S = 2.0  # that Spark is given to let go of what a collection has found to be of no use
MOST_COLLECTIONS = 10
WARM = 5  # times that memory is taken while caches fill
BROKERS = 4  # in a line: an event is seen by all of them
SUBSCRIBERS_OF_A_TOPIC = 10
SYSTEM = {
    "tidings": 1,
    "lifetime": "1s",
    "brokers": {name: {"service": "20us"} for name in "abcd"},
    "links": [
        {"between": pair, "delay": {"exponential": "5ms"}}
        for pair in (["a", "b"], ["b", "c"], ["c", "d"])
    ],
}


def system_of(events_per_s: float, subscribers: int) -> td.System:
    """A line of brokers, and subscribers at all of them of whom ten want the same topic."""
    topics = -(-subscribers // SUBSCRIBERS_OF_A_TOPIC)
    publisher = {
        "at": "a",
        "every": {"exponential": f"{1.0 / events_per_s:.9f}s"},
        "content": [{"p": 1.0 / topics, "event": {"topic": f"t{n}"}} for n in range(topics)],
    }
    wanting = {
        f"s{n}": {
            "at": "bdca"[n % BROKERS],
            "wants": {"topic": f"t{n % topics}"},
            "link": {"delay": {"exponential": "2ms"}},
            "target": 0.9,
        }
        for n in range(subscribers)
    }
    people = {"publishers": {"ann": publisher}, "subscribers": wanting}
    return td.loads(json.dumps({**SYSTEM, **people}))


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
        if minute >= TAKEN_IN:
            (source / name / f"{minute - TAKEN_IN:05d}.parquet").unlink(missing_ok=True)
    return len(tables["hops"])


def cpu_s(spark: Any) -> float:
    """CPU seconds that Python and Java have used so far."""
    pid = spark._jvm.java.lang.ProcessHandle.current().pid()
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    java = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return time.process_time() + java


def is_steady(sizes_mb: list[float]) -> bool:
    """Whether the last three collections left as much."""
    last = sizes_mb[-3:]
    return len(last) == 3 and min(last) > 0.99 * max(last)


def memory_mb(spark: Any) -> dict[str, float]:
    """Memory in use: of this process, of the Java heap after collections, and of Java beside it.

    A collection tells Spark which broadcasts, shuffles and cached rows nobody asks for any more; it
    lets go of them a moment later, and another collection takes them away. So it is collected until
    nothing more goes: on a busy machine that takes several.
    """
    java = spark._jvm.java.lang
    beans = java.management.ManagementFactory.getMemoryMXBean()
    gc.collect()  # what Python holds of Java's
    sizes: list[float] = []
    while len(sizes) < MOST_COLLECTIONS and not is_steady(sizes):
        java.System.gc()
        sizes.append(beans.getHeapMemoryUsage().getUsed() / 2**20)
        time.sleep(CLEANING_S)
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return {
        "python_mb": round(pages * os.sysconf("SC_PAGE_SIZE") / 2**20, 1),
        "heap_mb": round(min(sizes), 1),
        "beside_heap_mb": round(beans.getNonHeapMemoryUsage().getUsed() / 2**20, 1),
    }


def measure(args: argparse.Namespace, place: Path) -> list[dict[str, float]]:
    """Watch minute after minute, and begin none after so long; gives a row for each."""
    system = system_of(args.hops_per_s / BROKERS, args.subscribers)
    tables = a_minute(system)
    source, store = place / "in", place / "store"
    source.mkdir()
    plan = rounds.WatchPlan(
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
        started = time.monotonic()
        ends = started + args.most_s
        for minute in range(0, args.minutes, args.at_once):
            if time.monotonic() > ends:
                break
            hops = sum(put(tables, source, minute + n) for n in range(args.at_once))
            begun, used = time.monotonic(), cpu_s(spark)
            state = watcher.round()
            batch_s, used_s = time.monotonic() - begun, cpu_s(spark) - used
            if state.health.problem:
                print(state.health.problem, flush=True)
            memory = {}
            if minute % (args.collect_every * args.at_once) == 0:
                memory = memory_mb(spark)
            rows.append(
                {
                    "minute": minute,
                    "hops": hops,
                    "rows": state.health.rows,
                    "batch_s": round(batch_s, 1),
                    "cpu_s": round(used_s, 1),
                    "hops_per_s": round(hops / batch_s),
                    "hops_per_cpu_s": round(hops / used_s),
                    "of_trigger": round(batch_s / (args.at_once * TRIGGER_S), 3),
                    "wall_s": round(time.monotonic() - started),
                    **memory,
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
        **{
            f"{of}_{name}": value
            for of in ("heap", "beside_heap", "python")
            for name, value in slope_of(rows, f"{of}_mb").items()
        },
    }


def slope_of(rows: list[dict[str, float]], name: str) -> dict[str, float]:
    """How memory grows with every minute of traffic, by least squares, after the first few."""
    taken = [each for each in rows if name in each][WARM:]
    if len(taken) < 3:
        return {}
    line = stats.linregress([each["minute"] for each in taken], [each[name] for each in taken])
    return {
        "mb_mean": round(float(np.mean([each[name] for each in taken])), 1),
        "mb_per_hour": round(60.0 * line.slope, 2),
        "mb_per_hour_se": round(60.0 * line.stderr, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hops-per-s", type=float, default=10_000.0)
    parser.add_argument("--subscribers", type=int, default=2)
    parser.add_argument("--minutes", type=int, default=60)
    parser.add_argument("--most-s", type=float, default=float("inf"), help="begin none after that")
    parser.add_argument("--at-once", type=int, default=1, help="minutes that come at once")
    parser.add_argument("--collect-every", type=int, default=1, help="rounds; memory is taken")
    add_write_option(parser, "watching")
    args = parser.parse_args()
    load = os.getloadavg()[0] / (os.cpu_count() or 1)
    with tempfile.TemporaryDirectory() as place:
        rows = measure(args, Path(place))
    kept_up = summary(rows)
    print(kept_up)
    print(f"processes that wanted to run, for each core, at the beginning: {load:.1f}")
    if args.write:
        asked = {"hops_per_s": args.hops_per_s, "load_per_core": round(load, 1)}
        record("watching", {**asked, **kept_up, "rows": rows})


if __name__ == "__main__":
    main()
