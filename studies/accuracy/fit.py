"""Fit the stated error of theory on some random systems, and test its coverage on others.

    python studies/accuracy/fit.py [--write]

Reads ``errors.csv``. Systems of seed 1 are fitted on, those of seed 2 only tested on. A regression
tree finds regimes in which theory is off by like multiples of the sensitivity (how much the share
moves if all waits are an eighth longer); each regime states the multiple that covers 97.5 % of its
rows. ``--write`` keeps the tree as the data that ``predict`` reads, and the page of the docs.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
import pandas as pd
from accuracy.errors import ERRORS
from sklearn.tree import DecisionTreeRegressor
from tidings.prediction.error_table import ErrorTable

from tidings.prediction.regimes import FEATURES

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "src" / "tidings" / "prediction" / "theory_errors.json"
PAGE = ROOT / "docs" / "accuracy.md"
FITTED, TESTED = 1, 2  # seeds
LEAST_MOVE = 0.004  # added to the sensitivity: what is off though waits do not matter
COVERED = 0.975
LEAST_ROWS, MOST_REGIMES = 120, 40
LOADS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


def fit(rows: pd.DataFrame) -> dict[str, Any]:
    """Fit the tree, as plain data."""
    ratio = rows["error"] / (rows["sensitivity"] + LEAST_MOVE)
    tree = DecisionTreeRegressor(
        min_samples_leaf=LEAST_ROWS, max_leaf_nodes=MOST_REGIMES, random_state=1
    ).fit(rows[list(FEATURES)].to_numpy(), np.log(ratio + 0.01))
    leaf_of = tree.apply(rows[list(FEATURES)].to_numpy())
    grown = tree.tree_
    slope = np.zeros(grown.node_count)
    for leaf in np.unique(leaf_of):
        slope[leaf] = _quantile(ratio[leaf_of == leaf].to_numpy())
    inner = grown.children_left >= 0
    return {
        "systems": int(rows.groupby(["seed", "number"]).ngroups),
        "rows": len(rows),
        "features": list(FEATURES),
        "feature": np.where(inner, grown.feature, -1).tolist(),
        "threshold": [round(float(each), 6) for each in np.where(inner, grown.threshold, 0.0)],
        "left": grown.children_left.tolist(),
        "right": grown.children_right.tolist(),
        "slope": [round(float(each), 4) for each in slope],
        "floor": [round(float(each) * LEAST_MOVE, 6) for each in slope],
        "low": [float(rows[name].min()) for name in FEATURES],
        "high": [round(float(rows[name].max()), 6) for name in FEATURES],
    }


def _quantile(ratios: np.ndarray[Any, np.dtype[np.float64]]) -> float:
    """The least value that covers the share wanted of a further row, too (split conformal)."""
    place = min(math.ceil((ratios.size + 1) * COVERED), ratios.size)
    return float(np.sort(ratios)[place - 1])


def coverage(rows: pd.DataFrame, table: ErrorTable) -> list[dict[str, Any]]:
    """Count, by load and by effect, how many rows lie within their stated error."""
    stated = table.errors(rows)
    rows = rows.assign(stated=stated, held=rows["error"] <= stated + 2.0 * rows["truth_se"])
    groups = [
        (f"load {low:g} to {high:g}", rows[(rows["load"] > low) & (rows["load"] <= high)])
        for low, high in itertools.pairwise(LOADS)
    ]
    groups += [
        (effect or "nothing fails, moves or churns", part)
        for effect, part in rows.fillna({"effect": ""}).groupby("effect")
    ]
    return [_line(name, part) for name, part in [*groups, ("all", rows)] if len(part)]


def _line(name: str, rows: pd.DataFrame) -> dict[str, Any]:
    small = rows[rows["stated"] <= 0.005]
    return {
        "regime": name,
        "systems": rows.groupby(["seed", "number"]).ngroups,
        "rows": len(rows),
        "mean error": rows["error"].mean(),
        "95 % of errors": rows["error"].quantile(0.95),
        "mean stated": rows["stated"].replace(np.inf, np.nan).mean(),
        "within stated": rows["held"].mean(),
        "stated <= .005": len(small) / len(rows),
        "of these held": small["held"].mean() if len(small) else math.nan,
        "their mean error": small["error"].mean() if len(small) else math.nan,
    }


def markdown(lines: list[dict[str, Any]]) -> str:
    """Write lines as a Markdown table."""
    heads = list(lines[0])
    text = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    for line in lines:
        cells = [f"{each:.4f}" if isinstance(each, float) else str(each) for each in line.values()]
        text.append("| " + " | ".join(cells) + " |")
    return "\n".join(text)


def main() -> None:
    """Fit, test, print, and keep if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    rows = pd.read_csv(ERRORS)
    document = fit(rows[rows["seed"] == FITTED])
    lines = coverage(rows[rows["seed"] == TESTED], ErrorTable.from_document(document))
    print(markdown(lines))
    if arguments.write:
        TABLE.write_text(json.dumps(document, separators=(",", ":")) + "\n", encoding="utf-8")
        PAGE.write_text(_page(document, rows, lines), encoding="utf-8")


def _page(document: dict[str, Any], rows: pd.DataFrame, lines: list[dict[str, Any]]) -> str:
    tested = rows[rows["seed"] == TESTED].groupby(["seed", "number"]).ngroups
    head = (Path(__file__).with_name("page.md")).read_text(encoding="utf-8")
    return head.format(
        fitted=document["systems"],
        tested=tested,
        regimes=sum(each < 0 for each in document["feature"]),
        table=markdown(lines),
    )


if __name__ == "__main__":
    main()
