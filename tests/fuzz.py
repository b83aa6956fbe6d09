"""Read spoilt documents of all kinds, a hundred thousand and more, and print what went wrong.

    python tests/fuzz.py [--cases 2000] [--seed 1] [--keep] [KIND ...]
    python tests/fuzz.py --case 1234 --seed 1 system      # one again, with its trace

A reader may refuse a document, in words; it may not raise anything else, die, or take longer than
its time. Exit code 1 where one does. ``--keep`` keeps such documents in ``tests/fuzzing/corpus``,
which every run of the tests reads again.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "src")]

from fuzzing.cases import LIMIT_S, Fault, document, fate, keep, read_apart
from fuzzing.targets import targets

SHOWN = 5  # faults of one sort


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=", ".join(targets()))
    parser.add_argument("--cases", type=int, default=2_000, help="documents of each kind")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--case", type=int, help="read this one alone, and show it")
    parser.add_argument("--keep", action="store_true", help="keep what is a fault in the corpus")
    asked = parser.parse_args()
    kinds = asked.kinds or list(targets())
    if asked.case is not None:
        return _one(kinds[0], asked.seed, asked.case)
    faults: list[Fault] = []
    total: Counter[str] = Counter()
    print(f"{'kind':<12} {'read':>8} {'accepted':>9} {'refused':>8} {'faults':>7} {'s':>7}")
    for kind in kinds:
        begun, fates = time.monotonic(), Counter[str]()
        for tally in read_apart(kind, asked.seed, range(asked.cases), LIMIT_S):
            fates += tally.fates
            faults += tally.faults
        numbers = (asked.cases, fates["accepted"], fates["refused"], fates["fault"])
        counts = " ".join(
            f"{number:>{width}}" for number, width in zip(numbers, (8, 9, 8, 7), strict=True)
        )
        print(f"{kind:<12} {counts} {time.monotonic() - begun:>7.0f}")
        _show([each for each in faults if each.target == kind])
        sys.stdout.flush()
        total += fates
    print(f"{total.total():,} documents, {total['fault']:,} faults")
    if asked.keep:
        for fault in {(each.target, each.what): each for each in faults}.values():
            print("kept", keep(fault))
    return 1 if faults else 0


def _show(faults: list[Fault]) -> None:
    sorts: dict[tuple[str, str], list[Fault]] = {}
    for fault in faults:
        sorts.setdefault((fault.target, fault.what), []).append(fault)
    for (target, what), alike in sorts.items():
        numbers = ", ".join(str(each.number) for each in alike[:SHOWN])
        print(f"  {what} ({len(alike)} times in {target}: --case {numbers})")


def _one(kind: str, seed: int, number: int) -> int:
    data = document(kind, seed, number)
    print(data.decode("utf-8", "backslashreplace"))
    kind_of_end, what, trace = fate(targets()[kind], data)
    print(f"\n{kind_of_end} {what}\n{trace}")
    return 1 if kind_of_end == "fault" else 0


if __name__ == "__main__":
    sys.exit(main())
