"""CPU time of predictions now and at an earlier state, in turn on one machine.

    git archive COMMIT | tar -x -C FOLDER
    python benchmarks/since.py FOLDER [WORD ...]

Systems of the catalogue by parts of their names, or kinds; without any word all. Either state runs
in a process of its own, warmed up, with its own sources and its own catalogue; each system is
predicted by one and then the other, so that the ratio is little disturbed by what else the machine
does. What either refused does not count. *By simulation*: how many rows the present answers so for
the sake of its promise, where theory alone answered before, right or wrong; *theory now* is what
the present takes where that is all it is asked for.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parents[1]
THREADS = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
FORM = "{:58.58} {:>8} {:>8} {:>7} {:>11} {:>7} {:>14}"


def work() -> None:
    """Predict the systems whose names are read, and write what each cost."""
    import time

    import tidings as td
    from systems.catalogue import CATALOGUE

    def timed(**options: str) -> tuple[Any, float]:
        begun = time.process_time()
        rows = td.predict(system, **options).subscribers
        return rows, time.process_time() - begun

    for line in sys.stdin:
        system = CATALOGUE[json.loads(line)].make()
        try:
            rows, cpu_s = timed()
            said = {"cpu_s": cpu_s, "theory_s": cpu_s, "rows": len(rows)}
            if "by" in rows:
                said["by_simulation"] = int((rows["by"] == "simulation").sum())
                said["theory_s"] = timed(by="theory")[1]
        except td.errors.TidingsError as refused:
            said = {"refused": str(refused)}
        print(json.dumps(said), flush=True)


class State:
    """A process that predicts with the sources in a folder."""

    def __init__(self, folder: Path) -> None:
        places = os.pathsep.join(str(folder / part) for part in ("src", "tests", "."))
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--work"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **THREADS, "PYTHONPATH": places},
        )

    def predict(self, name: str) -> dict[str, Any]:
        """Predict a system: its CPU seconds, or why it was refused."""
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(json.dumps(name) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"the process that predicts ended at {name}")
        said: dict[str, Any] = json.loads(line)
        return said


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="the sources of the earlier state")
    parser.add_argument("words", nargs="*", metavar="WORD")
    args = parser.parse_args()
    sys.path[:0] = [str(HERE / "tests"), str(HERE)]
    from systems.catalogue import chosen
    from systems.freeze import WARMING

    states = State(args.folder.resolve()), State(HERE)
    for name in WARMING:
        for state in states:
            state.predict(name)
    print(FORM.format("system", "then", "now", "ratio", "theory now", "ratio", "by simulation"))
    known = []
    for case in chosen(args.words):
        then, now = (state.predict(case.name) for state in states)
        if "refused" in then or "refused" in now:
            print(f"{case.name:58.58}  refused", flush=True)
            continue
        known.append((then["cpu_s"], now["cpu_s"], now["theory_s"]))
        show(case.name, known[-1], f"{now['by_simulation']} of {now['rows']}")
    if known:
        cheaper = sum(now <= then for then, now, _ in known)
        total = tuple(sum(each) for each in zip(*known, strict=True))
        show(f"all, {cheaper} of {len(known)} cheaper", total, "")


def show(name: str, seconds: tuple[float, ...], answered: str) -> None:
    """Print CPU seconds then, now and by theory now, with ratios to those then."""
    then, now, theory = seconds
    cells = (
        f"{then:.2f}",
        f"{now:.2f}",
        f"{now / then:.2f}",
        f"{theory:.2f}",
        f"{theory / then:.2f}",
    )
    print(FORM.format(name, *cells, answered), flush=True)


if __name__ == "__main__":
    work() if sys.argv[1:] == ["--work"] else main()
