"""Runs of real brokers of this machine, written as samples: traces, truth and a data card each.

    python studies/dataset/make.py --into FOLDER [--only NAME] [--minutes N] [--tries 3]

One run after the other, in real time. A run in which this machine was too late to be believed is
made again, with the next seed, and not written. Each sample appears whole or not at all;
of those that are in the folder already only the card is written anew.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import pyarrow.parquet as pq

import tidings
from studies.dataset.card import card
from studies.dataset.counting import counted
from tidings.errors import EngineError
from tidings.model.outcome_files import save_outcome
from tidings.model.reading import load, save
from tidings.model.trace_tables import MANIFEST
from tidings.model.writing import new_folder, write_file
from tidings.samples.loading import CARD, MEASURED, SYSTEM
from tidings.testbed.mosquitto import Mosquitto
from tidings.testbed.running import run_testbed
from tidings.testbed.runs import Run, TestbedOptions
from tidings.testbed.servers import server_binary
from tidings.testbed.tables import doubts, manifest, trace_tables

SYSTEMS = Path(__file__).resolve().parents[2] / "examples" / "testbed"
MOST_EVENTS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of run: a system of ``examples/testbed``, on which brokers, and how long it is."""

    system: str
    broker: str = "nats"
    seconds: float = 30.0  # of the sample that comes with the package


KINDS = {
    "nats-steady": Kind(system="steady"),
    "nats-bursting": Kind(system="bursting"),
    "nats-failing": Kind(system="failing", seconds=40.0),
    "nats-storing": Kind(system="storing", seconds=40.0),
    "nats-mobile": Kind(system="mobile", seconds=40.0),
    "nats-churning": Kind(system="visiting", seconds=40.0),
    "nats-groups": Kind(system="groups", seconds=60.0),
    "mosquitto-steady": Kind(system="steady", broker="mosquitto"),
    "mosquitto-failing": Kind(system="failing", broker="mosquitto", seconds=100.0),
}


def make(name: str, into: Path, *, minutes: float | None, tries: int) -> None:
    """Play a kind of run until one can be believed, and write it as a sample."""
    kind = KINDS[name]
    options = TestbedOptions(
        duration_s=kind.seconds if minutes is None else 60.0 * minutes,
        broker=kind.broker,
        most_events=MOST_EVENTS,
    )
    system = load(SYSTEMS / f"{kind.system}.yaml")
    why: list[str] = []
    for turn in range(tries):
        run = run_testbed(system, replace(options, seed=options.seed + turn))
        why = doubts(run)
        if not why:
            write(run, into / name)
            return
        print(f"{name}: {'; '.join(why)}", flush=True)
    raise EngineError(f"{name}: none of {tries} runs can be believed: {'; '.join(why)}")


def write(run: Run, folder: Path) -> None:
    """Write a run as a sample: it appears whole or not at all."""
    said, tables = manifest(run), trace_tables(run)
    window_ns = (said["from_ns"], said["until_ns"])
    frames = {name: each.to_pandas() for name, each in tables.items()}
    truth = counted(run.system, frames, window_ns, facts(run))
    with new_folder(folder) as place:
        for name, each in tables.items():
            pq.write_table(each, place / f"{name}.parquet", compression="zstd")
        (place / MANIFEST).write_text(json.dumps(said, indent=1) + "\n", encoding="utf-8")
        save(run.system, place / SYSTEM)
        save_outcome(truth, place / MEASURED)
        (place / CARD).write_text(card(folder.name, place), encoding="utf-8")


def facts(run: Run) -> dict[str, str]:
    """Give where and with what a run was made, in words that name no machine."""
    return {
        "made": datetime.now(UTC).date().isoformat(),
        "servers": server_version(run.options.broker),
        "tidings": tidings.__version__,
        "python": platform.python_version(),
        "cores": str(os.cpu_count()),
        "machine": f"{platform.machine()}, {platform.system()}",
        "load": f"{os.getloadavg()[0]:.0f}",
    }


def server_version(broker: str) -> str:
    """Ask a server which version it is."""
    if broker == "nats":
        return _said(server_binary(), "--version").replace(": v", " ")
    program = Mosquitto({}, qos=0).command(Path(os.devnull))[0]
    return _said(program, "-h").replace(" version", "")  # says so in its first line


def _said(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip().splitlines()[0]


def main() -> None:
    """Make all samples, or those that are named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--into", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--only", choices=KINDS, action="append", metavar="NAME")
    parser.add_argument("--minutes", type=float, help="how long; else 30 or 40 s")
    parser.add_argument("--tries", type=int, default=3)
    given = parser.parse_args()
    for name in given.only or KINDS:
        place = given.into / name
        if place.exists():
            write_file(place / CARD, card(name, place).encode())
            print(f"{name}: is there, with a new card")
            continue
        make(name, given.into, minutes=given.minutes, tries=given.tries)
        print(f"{name}: made", flush=True)


if __name__ == "__main__":
    main()
