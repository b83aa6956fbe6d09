"""Print how far predictions moved since the catalogue was frozen, and what they cost now.

    python tests/systems/compare_frozen.py [WORD ...] [--rows]

Words are parts of names, or kinds (plain, failing, mobile, ...); without any, all systems are
predicted, which takes a few minutes. ``error`` is the mean over subscribers of how far predicted
shares are from those simulated when frozen, and ``noise`` what a perfect prediction would show.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(name, "1")  # so that CPU times are those of one core
sys.path[:0] = [str(Path(__file__).resolve().parents[above]) for above in (1, 2)]

import numpy as np  # noqa: E402

import tidings as td  # noqa: E402
from systems import frozen  # noqa: E402
from systems.catalogue import chosen  # noqa: E402
from systems.describing import Case  # noqa: E402
from systems.freeze import warm_up  # noqa: E402
from tidings.errors import TidingsError  # noqa: E402

MEAN_SIZE = (2.0 / np.pi) ** 0.5  # of a normal variable, in standard deviations
HEAD = ("system", "moved", "error then", "now", "noise", "CPU s then", "now", "")
FORM = "{:58.58} {:>7} {:>10} {:>7} {:>7} {:>10} {:>8}  {}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One system: its subscribers then and now, and the CPU time of both predictions."""

    rows: list[frozen.Row]
    then_s: float
    now_s: float

    def error(self, *, then: bool) -> float:
        """Mean distance of predicted from simulated shares; NaN where there is none."""
        return _mean([row.error(row.before if then else row.now) for row in self.rows])

    @property
    def noise(self) -> float:
        """The mean distance that chance alone would give."""
        return MEAN_SIZE * _mean([row.simulated_se for row in self.rows])

    @property
    def moved(self) -> float:
        """The largest move of a share."""
        return max((row.moved for row in self.rows), default=0.0)

    @property
    def broken(self) -> list[frozen.Row]:
        """Subscribers whose answer is another, and no better."""
        return [row for row in self.rows if not row.holds]


def _mean(values: list[float]) -> float:
    return float(np.mean(values)) if values else np.nan


def compare(case: Case, record: frozen.Record) -> Comparison:
    """Predict a system and put it beside what is frozen."""
    begun = time.process_time()
    outcome = td.predict(case.make())
    now_s = time.process_time() - begun
    rows = frozen.rows(record, outcome)
    return Comparison(rows=rows, then_s=record["predicted"].get("cpu_s", np.nan), now_s=now_s)


def remark(found: Comparison) -> str:
    """Which engine answers, and how many subscribers got another answer that is no better."""
    simulated = sum(row.by == "simulation" for row in found.rows)
    parts = [f"{simulated} of {len(found.rows)} by simulation"] if simulated else []
    if found.broken:
        parts.append(f"{len(found.broken)} of {len(found.rows)} moved away")
    return ", ".join(parts)


def show(case: Case, found: Comparison) -> None:
    """Print the row of one system."""
    shares = (found.moved, found.error(then=True), found.error(then=False), found.noise)
    times = (f"{found.then_s:.2f}", f"{found.now_s:.2f}")
    print(FORM.format(case.name, *(f"{each:.4f}" for each in shares), *times, remark(found)))


def show_total(everything: list[Comparison]) -> None:
    """Print the last row: the largest move, mean errors over systems, CPU time of all."""
    known = [each for each in everything if not np.isnan(each.then_s)]
    moved = f"{max((each.moved for each in known), default=0.0):.4f}"
    then, now = (
        f"{np.nanmean([each.error(then=side) for each in known]):.4f}" for side in (True, False)
    )
    noise = f"{np.nanmean([each.noise for each in known]):.4f}"
    times = (f"{sum(each.then_s for each in known):.1f}", f"{sum(e.now_s for e in known):.1f}")
    broken = sum(bool(each.broken) for each in everything)
    print(
        FORM.format(
            f"all {len(known)}", moved, then, now, noise, *times, f"{broken} systems moved away"
        )
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("words", nargs="*", metavar="WORD", help="part of a name, or a kind")
    parser.add_argument("--rows", action="store_true", help="also subscribers that moved")
    args = parser.parse_args()
    records = frozen.load()
    warm_up()
    print(FORM.format(*HEAD))
    everything = []
    for case in chosen(args.words):
        if "predicted" not in records.get(case.name, {}):
            print(f"{case.name}: not frozen yet; run freeze.py --missing")
            continue
        try:
            found = compare(case, records[case.name])
        except TidingsError as error:
            print(f"{case.name}: refused, {str(error).partition(chr(10))[0]}")
            continue
        everything.append(found)
        show(case, found)
        if args.rows:
            print("".join(f"    {row}\n" for row in found.rows if row.moved > frozen.MOVED), end="")
    if everything:
        show_total(everything)


if __name__ == "__main__":
    main()
