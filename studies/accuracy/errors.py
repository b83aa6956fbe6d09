"""Errors of theory on random systems, row by row, with the regime of each.

    python studies/accuracy/errors.py

Answers every system of ``truth.csv`` by theory and writes ``errors.csv``, which is not kept: it
follows from the truth and from theory as it is now.
"""

from __future__ import annotations

import csv
import sys
import time
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
import pandas as pd
from accuracy.drawing import draw_system
from accuracy.truth import TRUTH

from tidings.errors import UnsupportedError
from tidings.theory.answer import answer_by_theory

ERRORS = Path(__file__).with_name("errors.csv")


def read_truth(path: Path = TRUTH) -> dict[tuple[int, int], dict[str, tuple[float, float]]]:
    """Read simulated shares and their standard errors, by system and subscriber."""
    systems: dict[tuple[int, int], dict[str, tuple[float, float]]] = defaultdict(dict)
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            known = systems[int(row["seed"]), int(row["number"])]
            known[row["subscriber"]] = (float(row["on_time"]), float(row["on_time_se"]))
    return systems


def error_rows(seed: int, number: int, truth: dict[str, tuple[float, float]]) -> pd.DataFrame:
    """Compare theory with the truth of one system; no rows where theory has no answer."""
    system, effect = draw_system(seed, number)
    began = time.process_time()
    try:
        answer = answer_by_theory(system, delays=False, causes=False)
    except UnsupportedError:
        return pd.DataFrame()
    except (ArithmeticError, ValueError, RuntimeError) as failure:  # simulated by predict, too
        print(f"seed {seed}, system {number}: {failure}", file=sys.stderr)
        return pd.DataFrame()
    seconds = time.process_time() - began
    shares = answer.outcome.subscribers[["subscriber", "on_time"]]
    rows = pd.concat([shares, answer.regimes], axis=1).assign(roughness=answer.roughness)
    rows = rows[rows["subscriber"].isin(list(truth))].copy()
    rows["truth"] = [truth[name][0] for name in rows["subscriber"]]
    rows["truth_se"] = [truth[name][1] for name in rows["subscriber"]]
    rows["error"] = np.abs(rows["on_time"] - rows["truth"])
    rows.insert(0, "effect", effect)
    rows.insert(0, "number", number)
    rows.insert(0, "seed", seed)
    rows["cpu_s"] = seconds
    return rows


def main() -> None:
    """Answer all systems and write the rows."""
    truth = read_truth()
    parts = []
    for place, ((seed, number), known) in enumerate(sorted(truth.items())):
        parts.append(error_rows(seed, number, known))
        if place % 50 == 49:
            print(f"{place + 1} of {len(truth)}", file=sys.stderr)
    pd.concat(parts).to_csv(ERRORS, index=False)


if __name__ == "__main__":
    main()
