"""Makes the small traces in docs/samples: travellers, antennas, and how busy two brokers were.

    python docs/make_samples.py

Nobody was watched for them. Forty journeys on two lines: connected by a Weibull law, away by an
exponential one, told at every change and twice a minute. Two antennas for two days in slots of ten
minutes: Poisson counts, more by day. Two brokers for seven minutes: orders and quotes by rates that
change every ten seconds, and how busy that keeps CPUs and a disk, which quotes do not use; the
hub's CPU has a load of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parent / "samples"
LINES = {"north - centre": (110.0, 45.0), "centre - north": (150.0, 70.0)}  # means ON, OFF in s
JOURNEYS, SHAPE, TOLD_EVERY_S = 20, 1.4, 30.0
ANTENNAS = {"quiet": 20.0, "busy": 45.0}  # mean events in a slot
SLOT_S, SLOTS = 600, 288
SAMPLE_S, SAMPLES = 10, 40
SERVICES_S = {  # by resource, of orders and quotes
    ("hub", "cpu"): (0.1, 0.04),
    ("hub", "disk"): (0.15, 0.0),
    ("edge", "cpu"): (0.08, 0.06),
}
BACKGROUND = {("hub", "cpu"): 0.06}
TO_EDGE = {"order": 0.5, "quote": 0.8}  # how much is forwarded
SIZES = {"order": 2000, "quote": 500}  # bytes


def journeys(rng: np.random.Generator) -> Iterator[str]:
    """Connectivity tuples: journey, path, state, at_s."""
    yield "journey,path,state,at_s"
    for path, (on_s, off_s) in LINES.items():
        for number in range(1, JOURNEYS + 1):
            connected, at_s, until_s = bool(rng.integers(2)), 0.0, rng.uniform(900.0, 2100.0)
            while at_s < until_s:
                if connected:
                    length_s = on_s * rng.weibull(SHAPE) / math.gamma(1.0 + 1.0 / SHAPE)
                else:
                    length_s = rng.exponential(off_s)
                end_s = min(at_s + length_s, until_s)
                state = "ON" if connected else "OFF"
                for told_s in (at_s, *np.arange(at_s + TOLD_EVERY_S, end_s, TOLD_EVERY_S)):
                    yield f"{path[0]}{number},{path},{state},{told_s:.1f}"
                at_s, connected = at_s + length_s, not connected


def activity(rng: np.random.Generator) -> Iterator[str]:
    """Events in a slot: antenna, at_s, events."""
    yield "antenna,at_s,events"
    for name, mean in ANTENNAS.items():
        for slot in range(SLOTS):
            hour = slot * SLOT_S / 3600.0
            expected = mean * (1.0 + 0.7 * math.cos(2.0 * math.pi * (hour - 15.0) / 24.0))
            yield f"{name},{slot * SLOT_S},{rng.poisson(expected)}"


def brokers(rng: np.random.Generator) -> Iterator[str]:
    """One log of all: what was published, what left a broker when, how busy resources were."""
    yield "what,event,who,came_from,at_s,left_s,sent_to,kind,bytes,resource,busy"
    work = {key: np.zeros(SAMPLES + 1) for key in SERVICES_S}  # seconds in each interval
    number = 0

    def hop(event: str, kind: str, way: tuple[str, str, str], at_s: float) -> tuple[str, float]:
        came_from, broker, sent_to = way
        left_s = at_s + 0.3
        for key, services_s in SERVICES_S.items():
            mean_s = services_s[kind == "quote"]
            if key[0] == broker and mean_s:
                work[key][math.ceil(left_s / SAMPLE_S) - 1] += rng.gamma(9.0, mean_s / 9.0)
        onwards = f'"[""{sent_to}""]"' if sent_to else "[]"
        return f"hop,{event},{broker},{came_from},{at_s:.3f},{left_s:.3f},{onwards},,,,", left_s

    for interval in range(SAMPLES):
        for kind, most in (("order", 2.0), ("quote", 2.5)):
            for _ in range(rng.poisson(rng.uniform(0.3, most) * SAMPLE_S)):
                number += 1
                event, at_s = f"e{number}", round((interval + rng.random()) * SAMPLE_S, 3)
                yield f"publish,{event},desk,,{at_s:.3f},,,{kind},{SIZES[kind]},,"
                onwards = "edge" if rng.random() < TO_EDGE[kind] else ""
                line, left_s = hop(event, kind, ("desk", "hub", onwards), at_s + 0.002)
                yield line
                if onwards:
                    line, _ = hop(event, kind, ("hub", "edge", ""), left_s + 0.005)
                    yield line
    for (broker, resource), seconds in work.items():
        background = BACKGROUND.get((broker, resource), 0.0)
        for interval in range(SAMPLES):
            busy = background + seconds[interval] / SAMPLE_S
            until_s = (interval + 1) * SAMPLE_S
            yield f"sample,,{broker},,{until_s},,,,,{resource},{busy:.4f}"


def main() -> None:
    """Write all files."""
    FOLDER.mkdir(exist_ok=True)
    makers = {"journeys.csv": journeys, "activity.csv": activity, "brokers.csv": brokers}
    for name, make in makers.items():
        rows = make(np.random.default_rng(1))
        (FOLDER / name).write_text("\n".join(rows) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
