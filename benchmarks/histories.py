"""How checking a history grows with its events: CPU and wall time, and that the plan stays linear.

Every size is written by NumPy as Parquet (a thousand subscriptions that come and go, a tenth of all
events hot, about ten subscriptions matching an event, one in a thousand notifications left out),
then checked in a process of its own on Spark's embedded master.

    python benchmarks/histories.py --write            # up to ten million events
    python benchmarks/histories.py --sizes 100000
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from recording import add_write_option, record

SIZES = (100_000, 1_000_000, 10_000_000)
SUBSCRIBERS = 1_000
VALUES = 10_000  # of the attribute; a filter is a range of it
RANGE = VALUES // 100  # a hundredth: ten of a thousand filters match
HOT = 0.1  # share of events that all have one content
DIFFUSION_S, SUBSCRIPTION_S, SPAN_S = 8.0, 12.0, 100_000.0
LOST = 1e-3
CHUNK = 500_000  # events written at once
SECOND_NS = 1_000_000_000
EPOCH_NS = 1_700_000_000 * SECOND_NS


def write_history(events: int, folder: Path, seed: int = 1) -> dict[str, int]:
    """Write a history of so many events; gives how many notifications it has and lacks."""
    random = np.random.default_rng(seed)
    lows = random.integers(0, VALUES - RANGE, SUBSCRIBERS)
    begins = random.uniform(0.0, 0.1 * SPAN_S, SUBSCRIBERS)
    ends = random.uniform(0.9 * SPAN_S, SPAN_S, SUBSCRIBERS)
    _subscriptions(lows, begins, ends, folder)
    order = np.argsort(lows)
    counts = {"notifications": 0, "missing": 0}
    schema = [("publications", _PUBLICATIONS), ("deliveries", _DELIVERIES)]
    writers = {name: pq.ParquetWriter(folder / f"{name}.parquet", kind) for name, kind in schema}
    for first in range(0, events, CHUNK):
        count = min(CHUNK, events - first)
        published = np.sort(random.uniform(first, first + count, count)) * (SPAN_S / events)
        values = random.integers(0, VALUES, count)
        values[random.random(count) < HOT] = VALUES // 2
        names = np.char.add("e", np.arange(first, first + count).astype(str))
        _publications(names, published, values, writers["publications"])
        event, who = _interested(values, lows, order)
        took = random.uniform(0.001, DIFFUSION_S, event.size)
        at = published[event] + took
        alive = (begins[who] + SUBSCRIPTION_S <= published[event]) & (at < ends[who])
        due = alive & (published[event] + DIFFUSION_S <= ends[who])
        lost = due & (random.random(event.size) < LOST)
        told = alive & ~lost
        counts["notifications"] += int(told.sum())
        counts["missing"] += int(lost.sum())
        _deliveries(names[event[told]], who[told], at[told], writers["deliveries"])
    for writer in writers.values():
        writer.close()
    window = {"version": 1, "from_ns": EPOCH_NS, "until_ns": _ns(np.array([2 * SPAN_S]))[0].item()}
    (folder / "traces.json").write_text(json.dumps(window))
    return counts


_PUBLICATIONS = pa.schema(
    {"event": pa.string(), "publisher": pa.string(), "published_ns": pa.int64(),
     "content": pa.string()}
)  # fmt: skip
_DELIVERIES = pa.schema(
    {"event": pa.string(), "subscriber": pa.string(), "received_ns": pa.int64()}
)


def _ns(times_s: np.ndarray) -> np.ndarray:
    return EPOCH_NS + np.rint(times_s * SECOND_NS).astype(np.int64)


def _interested(values: np.ndarray, lows: np.ndarray, order: np.ndarray) -> tuple[Any, Any]:
    """Pairs of event and subscriber whose filter it matches: low ≤ value < low + RANGE."""
    ranked = lows[order]
    last = np.searchsorted(ranked, values, side="right")
    first = np.searchsorted(ranked, values - RANGE, side="right")
    sizes = last - first
    event = np.repeat(np.arange(values.size), sizes)
    place = np.arange(event.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return event, order[np.repeat(first, sizes) + place]


def _subscriptions(lows: np.ndarray, begins: np.ndarray, ends: np.ndarray, folder: Path) -> None:
    who = [f"s{n}" for n in range(SUBSCRIBERS)]
    texts = [json.dumps({"v": {"at_least": int(low), "below": int(low) + RANGE}}) for low in lows]
    table = {
        "subscription": who * 2,
        "subscriber": who * 2,
        "broker": ["b"] * (2 * SUBSCRIBERS),
        "action": ["subscribe"] * SUBSCRIBERS + ["unsubscribe"] * SUBSCRIBERS,
        "at_ns": np.concatenate([_ns(begins), _ns(ends)]),
        "filter": [*texts, *([None] * SUBSCRIBERS)],
    }
    pq.write_table(pa.table(table), folder / "subscriptions.parquet")


def _publications(names: Any, published: Any, values: Any, writer: pq.ParquetWriter) -> None:
    contents = np.char.add(np.char.add('{"v":', values.astype(str)), "}")
    columns = [names, np.full(names.size, "p"), _ns(published), contents]
    writer.write_table(pa.table([pa.array(c) for c in columns], schema=_PUBLICATIONS))


def _deliveries(names: Any, who: Any, at: Any, writer: pq.ParquetWriter) -> None:
    columns = [names, np.char.add("s", who.astype(str)), _ns(at)]
    writer.write_table(pa.table([pa.array(c) for c in columns], schema=_DELIVERIES))


def check(folder: Path) -> dict[str, Any]:
    """Check the history in a folder; counts and times."""
    from tidings.histories.checking import checked_history
    from tidings.histories.judging import Bounds
    from tidings.histories.summary import summary
    from tidings.traces.reading import read_traces
    from tidings.traces.session import spark_session

    bounds = Bounds(
        subscription_ns=round(SUBSCRIPTION_S * SECOND_NS),
        diffusion_ns=round(DIFFUSION_S * SECOND_NS),
    )
    with spark_session() as spark:
        spark.range(10).count()
        began, used = time.monotonic(), _cpu_s()
        stages: dict[str, float] = {}

        def tell(stage: str) -> None:
            stages[stage] = round(time.monotonic() - began, 1)

        with checked_history(read_traces(spark, folder).tables, bounds, tell) as found:
            tell("judged")
            counted = summary(found, 3)
        took = time.monotonic() - began
        return {
            "wall_s": round(took, 1),
            "cpu_s": round(_cpu_s() - used, 1),
            "began_s": stages,
            "found": counted["violations"],
            "totals": counted["totals"],
        }


def _cpu_s() -> float:
    """CPU time of this process and of Java, on Linux; the few Python workers are not counted."""
    from pyspark import SparkContext

    times = Path(f"/proc/{SparkContext._gateway.proc.pid}/stat").read_text().split(") ")[1].split()
    java = (int(times[11]) + int(times[12])) / os.sysconf("SC_CLK_TCK")
    return java + sum(resource.getrusage(resource.RUSAGE_SELF)[:2])


def growth(rows: list[dict[str, Any]]) -> dict[str, float]:
    """CPU time as a fixed part and a part by event, through the smallest and the largest size.

    Where sizes lie between these, ``worst_off`` says how far one is from that line, as a share.
    """
    small, large = rows[0], rows[-1]
    slope_s = (large["cpu_s"] - small["cpu_s"]) / (large["events"] - small["events"])
    fixed_s = small["cpu_s"] - slope_s * small["events"]
    off = [abs(row["cpu_s"] / (fixed_s + slope_s * row["events"]) - 1.0) for row in rows]
    return {
        "cpu_us_an_event": round(1e6 * slope_s, 1),
        "fixed_cpu_s": round(fixed_s, 1),
        "fixed_share_of_largest": round(fixed_s / large["cpu_s"], 3),
        "worst_off": round(max(off), 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    add_write_option(parser, "histories")
    parser.add_argument("--check", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.check:
        print(json.dumps(check(asked.check)))
        return
    rows = []
    for events in asked.sizes:
        with tempfile.TemporaryDirectory() as folder:
            planted = write_history(events, Path(folder))
            command = [sys.executable, __file__, "--check", folder]
            said = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
        row = {"events": events, "planted": planted, **json.loads(said.splitlines()[-1])}
        assert row["found"] == {"legality": 0, "validity": 0, "liveness": planted["missing"]}, row
        assert row["totals"]["notifications"] == planted["notifications"], row
        print(
            f"{events:>12,} events, {planted['notifications']:>12,} notifications: "
            f"{row['wall_s']:.0f} s, {row['cpu_s']:.0f} CPU s, "
            f"{1e6 * row['cpu_s'] / events:.0f} CPU µs an event; {row['began_s']}"
        )
        rows.append(row)
        found = {"cores": os.cpu_count(), "rows": rows}
        if len(rows) > 1:
            found["growth"] = growth(rows)
            print(f"{'':12} {found['growth']}")
        if asked.write:  # after every size: the last ones take minutes
            record("histories", found)


if __name__ == "__main__":
    main()
