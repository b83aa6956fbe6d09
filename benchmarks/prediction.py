"""How the cost of a prediction grows: with subscribers and with brokers, over three decades each.

Every size is predicted in a process of its own, from reading its folder of tables to the finished
outcome, so that its peak of memory is its own. CPU time by part; the slope is that of the logarithm
of the total (1: linear), over the last decade, where what does not grow no longer matters.

    python benchmarks/prediction.py [--quick] [--write]
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from large_systems import Size, write_system
from recording import add_write_option, record

BROKERS, PUBLISHERS = 1_000, 1_000
SUBSCRIBERS = (1_000, 10_000, 100_000, 1_000_000)
BROKERS_OF_GROWTH = (10, 100, 1_000)
SUBSCRIBERS_OF_GROWTH = 100_000
REGULAR = Size(brokers=100, publishers=100, subscribers=10_000, regular=True)


def measure(folder: str) -> dict[str, Any]:
    """Read and predict a system in this process: CPU seconds by part, peak memory, its result."""
    from tidings.model.reading import load
    from tidings.prediction.predict import predict

    parts: dict[str, float] = {}
    current, begun = "reading", time.process_time()

    def step(told: str) -> None:
        nonlocal current, begun
        now = time.process_time()
        parts[current] = parts.get(current, 0.0) + now - begun
        current, begun = told.split(",")[0], now

    start = time.perf_counter()
    system = load(folder)
    step("preparing")
    # Whole distributions are for small systems.
    outcome = predict(system, delays=False, progress=step, by="theory")
    step("done")
    return {
        "brokers": len(system.brokers),
        "publishers": len(system.publishers),
        "subscribers": len(system.subscribers),
        "cpu_s": {name: round(value, 2) for name, value in parts.items()},
        "total_cpu_s": round(sum(parts.values()), 2),
        "wall_s": round(time.perf_counter() - start, 1),
        "peak_gib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
        "on_time": outcome.on_time,
    }


@cache
def measured_apart(size: Size) -> dict[str, Any]:
    """The same in a process of its own; once for each size."""
    print(f"measuring {size}", file=sys.stderr)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "system"
        write_system(size, folder)
        command = [sys.executable, __file__, "--measure", str(folder)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def slope(runs: list[dict[str, Any]], by: str) -> float:
    """Growth of the total between the last two sizes, as a power of the size."""
    before, last = runs[-2:]
    ratio = last["total_cpu_s"] / before["total_cpu_s"]
    return math.log(ratio) / math.log(last[by] / before[by])


def show(title: str, runs: list[dict[str, Any]], by: str) -> None:
    names = list(dict.fromkeys(name for run in runs for name in run["cpu_s"]))
    print(f"\n{title}\n{by:>12} " + " ".join(f"{name[:12]:>12}" for name in names), end="")
    print(f" {'total CPU s':>12} {'wall s':>8} {'peak GiB':>9}")
    for run in runs:
        cells = " ".join(f"{run['cpu_s'].get(name, 0.0):12.2f}" for name in names)
        print(
            f"{run[by]:12,} {cells} {run['total_cpu_s']:12.2f} {run['wall_s']:8.1f} "
            f"{run['peak_gib']:9.2f}"
        )
    if len(runs) > 1:
        print(f"grows like {by} to the power {slope(runs, by):.2f} at the end")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the brokers and people")
    add_write_option(parser, "prediction")
    parser.add_argument("--measure", metavar="FOLDER", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure:
        print(json.dumps(measure(args.measure)))
        return
    part = 10 if args.quick else 1
    by_subscribers = [
        measured_apart(
            Size(brokers=BROKERS // part, publishers=PUBLISHERS // part, subscribers=each // part)
        )
        for each in SUBSCRIBERS
    ]
    show("Growth with subscribers", by_subscribers, "subscribers")
    by_brokers = [
        measured_apart(
            Size(
                brokers=each,
                publishers=PUBLISHERS // part,
                subscribers=SUBSCRIBERS_OF_GROWTH // part,
            )
        )
        for each in (size // part for size in BROKERS_OF_GROWTH)
        if each > 1
    ]
    show("Growth with brokers", by_brokers, "brokers")
    regular = measured_apart(replace(REGULAR, subscribers=REGULAR.subscribers // part))
    show("Periodic publishers, uniform services", [regular], "subscribers")
    if args.write:
        document = {
            "by_subscribers": by_subscribers,
            "by_brokers": by_brokers,
            "regular": regular,
            "slope_in_subscribers": round(slope(by_subscribers, "subscribers"), 2),
            "slope_in_brokers": round(slope(by_brokers, "brokers"), 2),
        }
        record("prediction", document)


if __name__ == "__main__":
    main()
