"""Help and version: CPU seconds of starting the command, and how many times Python's own start.

Every line runs in a process of its own, ``--runs`` times; the least counts, for what else runs on a
machine only adds. *Slowest* is the help of the command, or command of a group, that takes longest.

    python benchmarks/help.py [--write] [--runs N]
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from recording import add_write_option, record
from typer.main import get_command

from tidings.cli.commands import COMMANDS, app

TIDINGS = (sys.executable, "-c", "from tidings.cli.main import main; main()")
PYTHON = (sys.executable, "-c", "pass")


def helps() -> Iterator[tuple[str, ...]]:
    """Ask for the help of every command, and of every command of a group."""
    root: Any = get_command(app)
    for name in COMMANDS:
        yield (name, "--help")
        command = root.get_command(None, name)
        if hasattr(command, "list_commands"):
            yield from ((name, each, "--help") for each in command.list_commands(None))


def cpu_s(words: Sequence[str], runs: int) -> float:
    """Measure the least CPU seconds, user and system, of a process with these words."""
    return min(_once(words) for _ in range(runs))


def _once(words: Sequence[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(words, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(runs: int) -> list[dict[str, Any]]:
    """Measure Python alone, the help, the version, and the slowest help of a command."""
    once = {words: cpu_s((*TIDINGS, *words), 1) for words in helps()}
    slow = sorted(once, key=lambda words: once[words])[-3:]  # one run may be slow by chance
    slowest = max(slow, key=lambda words: cpu_s((*TIDINGS, *words), runs))
    python_s = cpu_s(PYTHON, runs)
    rows = [{"line": "python -c pass", "cpu_s": round(python_s, 3), "times_python": 1.0}]
    for words in (("--help",), ("--version",), slowest):
        seconds = cpu_s((*TIDINGS, *words), runs)
        rows.append(
            {
                "line": " ".join(("tidings", *words)),
                "cpu_s": round(seconds, 3),
                "times_python": round(seconds / python_s, 1),
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    add_write_option(parser, "help")
    args = parser.parse_args()
    load = os.getloadavg()[0] / (os.cpu_count() or 1)
    rows = measure(args.runs)
    for row in rows:
        print(", ".join(f"{name} {value}" for name, value in row.items()), flush=True)
    print(f"processes that wanted to run, for each core, at the beginning: {load:.1f}")
    if args.write:
        record("help", {"runs": args.runs, "load_per_core": round(load, 1), "rows": rows})


if __name__ == "__main__":
    main()
