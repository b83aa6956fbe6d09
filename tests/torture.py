"""Disturb commands by the hundred, run them again, and print what was not as if undisturbed.

    python tests/torture.py [--runs 5] [--seed 1] [--fault FAULT] [--write] [SUBJECT ...]
    python tests/torture.py --run 17 --fault killed store     # one again

Each run is of one subject (a command or several) and one fault, at a moment drawn by the seed. What
is left of the disturbed command must be the old result or the new one; run again, it must come to
the undisturbed one, number by number, and leave no file or process more. Exit code 1 where anything
did not.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "src"), str(HERE.parent)]

from torturing.driving import Known, Trial, faults_of, known, trial
from torturing.page import write
from torturing.subjects import SUBJECTS


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("subjects", nargs="*", metavar="SUBJECT", help=", ".join(SUBJECTS))
    parser.add_argument("--runs", type=int, default=5, help="of each subject with each fault")
    parser.add_argument("--seed", type=int, default=1, help="number of the first run")
    parser.add_argument("--fault", action="append", help="only this one; can be repeated")
    parser.add_argument("--run", type=int, help="only the run of this number")
    parser.add_argument("--write", action="store_true", help="keep the page of the docs")
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what runs is ended, too
    numbers = range(asked.seed, asked.seed + asked.runs) if asked.run is None else [asked.run]
    trials: list[Trial] = []
    for name in asked.subjects or SUBJECTS:
        with known(name, SUBJECTS[name]) as undisturbed:
            _say_known(undisturbed)
            for fault in faults_of(undisturbed.subject):
                if asked.fault and fault not in asked.fault:
                    continue
                trials += [_tried(undisturbed, fault, each) for each in numbers]
        if asked.write:
            write(trials)
    _show(trials)
    return 1 if any(each.problems for each in trials) else 0


def _say_known(of: Known) -> None:
    for stage in of.stages:
        print(
            f"{of.name}: undisturbed in {stage.seconds:.1f} s, {len(stage.after)} numbers,"
            f" {stage.steps} steps on files, {stage.most_bytes:,} bytes",
            flush=True,
        )


def _tried(of: Known, fault: str, number: int) -> Trial:
    begun = time.monotonic()
    found = trial(of, fault, number)
    verdict = "as undisturbed" if not found.problems else "NOT AS UNDISTURBED"
    seconds = time.monotonic() - begun
    print(
        f"{of.name}, {fault}, run {number} ({found.when}): {verdict}, {seconds:.0f} s", flush=True
    )
    for problem in found.problems:
        print(f"    {problem}", flush=True)
    return found


def _show(trials: list[Trial]) -> None:
    print(f"\n{'subject':<14} {'fault':<28} {'runs':>5} {'struck':>7} {'failed':>7}")
    rows: Counter[tuple[str, str]] = Counter((each.subject, each.fault) for each in trials)
    for (subject, fault), runs in rows.items():
        mine = [each for each in trials if (each.subject, each.fault) == (subject, fault)]
        struck = sum(each.struck for each in mine)
        failed = sum(bool(each.problems) for each in mine)
        print(f"{subject:<14} {fault:<28} {runs:>5} {struck:>7} {failed:>7}")
    failed = sum(bool(each.problems) for each in trials)
    numbers = sum(each.numbers for each in trials)
    print(f"{len(trials)} runs, {failed} failed; {numbers:,} numbers compared")


if __name__ == "__main__":
    sys.exit(main())
