"""Makes the small traces in docs/samples: travellers that come and go, antennas that are used.

    python docs/make_samples.py

Nobody was watched for them. Forty journeys on two lines: connected by a Weibull law, away by an
exponential one, told at every change and twice a minute. Two antennas for two days in slots of ten
minutes: Poisson counts, more by day.
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


def main() -> None:
    """Write both files."""
    FOLDER.mkdir(exist_ok=True)
    for name, make in (("journeys.csv", journeys), ("activity.csv", activity)):
        rows = make(np.random.default_rng(1))
        (FOLDER / name).write_text("\n".join(rows) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
