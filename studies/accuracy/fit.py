"""Test the coverage of theory's stated error on random systems, and fit it on others.

    python studies/accuracy/fit.py [--fit] [--write]

Reads ``errors.csv``. Systems of odd seeds are fitted on, those of even seeds only tested on. Tested
is the table that ``predict`` reads, on theory as it is now; with ``--fit`` one that is fitted anew.
Boosted trees predict what the logarithm of the error of a row stays below with 95 %, from its
regime; the margin that is added makes this hold for 98 % of the rows of systems left out of the
fit in turn. An error is what is left of the difference to the truth beyond one standard error of
the latter.
``--write`` writes the page of the docs, and keeps trees that were fitted anew as the data that
``predict`` reads. To fit needs scikit-learn.
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
from accuracy.drawing import FIRST_MIXED
from accuracy.errors import ERRORS

from tidings.theory.error_table import ErrorTable
from tidings.theory.feature_names import FEATURES, LEFT_OUT, NEVER_BELIEVED, OF_SHARES
from tidings.theory.network.regimes import MOST_LOAD

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "src" / "tidings" / "theory" / "theory_errors.json"
PAGE = ROOT / "docs" / "evidence" / "accuracy.md"
ELSEWHERE = (*NEVER_BELIEVED, *LEFT_OUT)  # answered without the trees
COLUMNS = [name for name in (*FEATURES, *OF_SHARES) if name not in ELSEWHERE]
# What makes theory an approximation: where none of it is, only arithmetic and chance are left.
ABSENT = ["approximate_hops", "failing", "peer", "mobile_publishers", "any_churn", "own_queue"]
LEAST = 2e-4  # added to every error: what nobody needs to know better
ASKED, COVERED = 0.95, 0.98
FOLDS = 8
LOADS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


def fit(rows: pd.DataFrame) -> dict[str, Any]:
    """Fit the trees and their margin, as plain data."""
    from sklearn.model_selection import GroupKFold

    wanted = np.log(np.maximum(rows["error"] - rows["truth_se"], 0.0) + LEAST)
    values = rows[COLUMNS].to_numpy()
    beyond = np.empty(len(rows))
    systems = rows["seed"].astype(str) + ":" + rows["number"].astype(str)
    for rest, left_out in GroupKFold(FOLDS).split(values, groups=systems):
        model = _model().fit(values[rest], wanted.iloc[rest])
        beyond[left_out] = wanted.iloc[left_out] - model.predict(values[left_out])
    model = _model().fit(values, wanted)
    return {
        "systems": int(systems.nunique()),
        "rows": len(rows),
        "features": COLUMNS,
        "low": [0.0] * len(COLUMNS),  # no load, no bursts, nothing that fails: the harmless end
        "high": [float(rows[name].max()) for name in COLUMNS],
        "start": float(model.init_.constant_.item()),
        "margin": round(float(np.quantile(beyond, COVERED)), 4),
        "trees": [_plain(each[0].tree_) for each in model.estimators_],
        "absent": ABSENT,
        "exact": _largest_where_exact(rows),
    }


def _largest_where_exact(rows: pd.DataFrame) -> float:
    """Measure how far theory is off, beyond what chance explains, where nothing is approximate."""
    exact = rows[(rows[ABSENT] == 0.0).all(axis=1)]
    return round(LEAST + float(np.maximum(exact["error"] - 2.0 * exact["truth_se"], 0.0).max()), 5)


def _model() -> Any:
    from sklearn.ensemble import GradientBoostingRegressor

    return GradientBoostingRegressor(
        loss="quantile",
        alpha=ASKED,
        n_estimators=_TREES,
        max_depth=5,
        learning_rate=_RATE,
        subsample=0.7,
        min_samples_leaf=20,
        random_state=1,
    )


_TREES, _RATE = 160, 0.07


def _plain(tree: Any) -> list[list[float]]:
    """One tree as lists: feature, threshold, left, right, value."""
    inner = tree.children_left >= 0
    return [
        np.where(inner, tree.feature, -1).tolist(),
        [float(f"{each:.6g}") for each in np.where(inner, tree.threshold, 0.0)],
        tree.children_left.tolist(),
        tree.children_right.tolist(),
        [float(f"{_RATE * each:.5g}") for each in tree.value[:, 0, 0]],
    ]


def coverage(rows: pd.DataFrame, table: ErrorTable) -> list[dict[str, Any]]:
    """Count, by load and by effect, how many rows lie within their stated error."""
    stated = np.maximum(table.errors(rows), rows["roughness"])
    rows = rows.assign(stated=stated, held=rows["error"] <= stated + 2.0 * rows["truth_se"])
    groups = [
        (f"load {low:g} to {high:g}", rows[(rows["load"] > low) & (rows["load"] <= high)])
        for low, high in itertools.pairwise(LOADS)
    ]
    groups += [
        (effect or "nothing fails, moves or churns", part)
        for effect, part in rows.fillna({"effect": ""}).groupby("effect")
    ]
    groups += [("drawn last", rows[rows["seed"] >= FIRST_MIXED]), ("all", rows)]
    return [_line(name, part) for name, part in groups if len(part)]


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
    """Fit if asked, test, print, and keep if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    rows = pd.read_csv(ERRORS)
    fitted = rows["seed"] % 2 == 1
    if arguments.fit:
        settled = rows["load_at_worst"] <= MOST_LOAD  # else theory is never believed
        settled &= (rows[list(NEVER_BELIEVED)] == 0.0).all(axis=1)
        document = fit(rows[settled & fitted])
    else:
        document = json.loads(TABLE.read_text(encoding="utf-8"))
    lines = coverage(rows[~fitted], ErrorTable.from_document(document))
    print(markdown(lines))
    if arguments.write:
        TABLE.write_text(json.dumps(document, separators=(",", ":")) + "\n", encoding="utf-8")
        PAGE.write_text(_page(document, rows, lines), encoding="utf-8")


def _page(document: dict[str, Any], rows: pd.DataFrame, lines: list[dict[str, Any]]) -> str:
    tested = rows[rows["seed"] % 2 == 0].groupby(["seed", "number"]).ngroups
    head = (Path(__file__).with_name("page.md")).read_text(encoding="utf-8")
    return head.format(
        fitted=document["systems"],
        tested=tested,
        margin=math.exp(document["margin"]),
        exact=document["exact"],
        table=markdown(lines),
    )


if __name__ == "__main__":
    main()
