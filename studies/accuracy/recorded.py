"""Whether intervals of predictions hold for systems that were learnt from recorded traces.

    python studies/accuracy/recorded.py [--systems 12] [--events 20000]

Random systems in which nothing fails, moves or churns are recorded, characterised on Spark and
predicted with error bars; counted is how often the interval of 90 % holds the share that a long
simulation of the true system gives. What counts are standard errors of all fitted parameters and
the error of the engine.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from accuracy.drawing import draw_system

import tidings as td
from tidings.model.system import System
from tidings.validation.intervals import intervals

SEED = 11  # of no other drawing here
LEVEL = 0.9
REPLICATIONS, EVENTS = 16, 50_000  # of the long simulation


def plain_systems(count: int) -> list[System]:
    """Draw systems in which brokers queue and nothing else happens."""
    systems: list[System] = []
    number = 0
    while len(systems) < count:
        system, effect = draw_system(1, 10_000 * SEED + number)
        number += 1
        if not effect:
            peers = (replace(each, lifetime=None) for each in system.subscribers)
            systems.append(replace(system, subscribers=tuple(peers)))  # traces know no own ones
    return systems


def held_rows(spark: Any, system: System, events: int, seed: int) -> list[tuple[float, float]]:
    """Learn a system from a recording of it: by how much of half its interval each row is off."""
    truth = td.simulate(system, seed=seed, replications=REPLICATIONS, events=EVENTS).subscribers
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "traces"
        td.write_traces(td.record(system, seed=seed + 1, events=events), folder)
        learnt = td.characterise(td.read_traces(spark, str(folder)), base=system)
        outcome = td.predict(learnt.system, error_bars=True)
    rows = intervals(outcome, level=LEVEL).set_index("subscriber")
    of_truth = truth.set_index("subscriber").reindex(rows.index)
    off = np.abs(rows["on_time"] - of_truth["on_time"])
    half = 0.5 * (rows["high"] - rows["low"])
    known = (off.notna() & half.notna()).to_numpy()
    noise = 2.0 * of_truth["on_time_se"]
    return list(zip((off - noise)[known], half[known], strict=True))


def main() -> None:
    """Record, learn, predict and count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--systems", type=int, default=12)
    parser.add_argument("--events", type=int, default=20_000, help="recorded of each system")
    arguments = parser.parse_args()
    pairs: list[tuple[float, float]] = []
    with td.spark_session(small=True) as spark:
        for number, system in enumerate(plain_systems(arguments.systems)):
            rows = held_rows(spark, system, arguments.events, 100 + 10 * number)
            pairs += rows
            held = sum(off <= half for off, half in rows)
            print(f"system {number}: {held} of {len(rows)} rows held", flush=True)
    held = sum(off <= half for off, half in pairs)
    width = float(np.mean([half for _, half in pairs]))
    print(f"{held} of {len(pairs)} rows ({held / len(pairs):.1%}) within intervals of {LEVEL:.0%}")
    print(f"half an interval is {width:.4f} on average")


if __name__ == "__main__":
    main()
