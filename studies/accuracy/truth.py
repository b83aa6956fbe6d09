"""Long simulations of random systems: what is taken as the truth when theory's error is measured.

    python studies/accuracy/truth.py --seed 1 --systems 2000

Rows are appended to ``truth.csv``; systems that stand there already are not simulated again.
"""

from __future__ import annotations

import argparse
import csv
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from accuracy.drawing import draw_system

from tidings.errors import UnstableError
from tidings.simulation.run import simulate

TRUTH = Path(__file__).with_name("truth.csv")
FIELDS = ("seed", "number", "subscriber", "on_time", "on_time_se")
REPLICATIONS = 16
EVENTS = 50_000  # published in each replication, on average
EVENTS_IF_PERIODS_VARY = 250_000  # where things fail, move or churn


def known_systems(path: Path = TRUTH) -> set[tuple[int, int]]:
    """Read which systems, by seed and number, were simulated before."""
    if not path.exists():
        return set()
    with path.open(newline="") as file:
        return {(int(row["seed"]), int(row["number"])) for row in csv.DictReader(file)}


def simulate_rows(seed: int, number: int) -> list[tuple[int, int, str, str, str]]:
    """Simulate one system; a row for every subscriber, none where a queue grows without limit."""
    system, effect = draw_system(seed, number)
    varies = effect not in ("", "stations", "own links", "own queues", "shifted")
    events = EVENTS_IF_PERIODS_VARY if varies else EVENTS
    try:
        outcome = simulate(system, seed=number + 1, replications=REPLICATIONS, events=events)
    except UnstableError:
        return []
    rows = outcome.subscribers[["subscriber", "on_time", "on_time_se"]].itertuples(index=False)
    return [
        (seed, number, name, f"{share:.6f}", f"{error:.6f}")
        for name, share, error in rows
        if share == share  # subscribers that want nothing that is published have none
    ]


def main() -> None:
    """Simulate what is missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--systems", type=int, default=2000)
    arguments = parser.parse_args()
    known = known_systems()
    new = not TRUTH.exists()
    with TRUTH.open("a", newline="") as file:
        writer = csv.writer(file)
        if new:
            writer.writerow(FIELDS)
        for number in range(arguments.systems):
            if (arguments.seed, number) in known:
                continue
            writer.writerows(simulate_rows(arguments.seed, number))
            file.flush()
            if number % 20 == 19:
                print(f"{number + 1} of {arguments.systems}", file=sys.stderr)


if __name__ == "__main__":
    main()
