"""How far predictions are from what was simulated: points, and errors over groups of points.

A point is one subscriber in one run, predicted by one model. Errors are predicted minus actual
on-time shares.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from studies.harness import Row, lines
from tidings.model.arrays import Floats
from tidings.model.outcome import Outcome
from tidings.model.study import Scatter
from tidings.validation.comparison import compare

ERROR_COLUMNS = (
    "points",
    "mean_absolute",
    "maximum",  # of absolute errors
    "mean_signed",  # above 0: predictions were too hopeful
    "noise",  # mean absolute error that a perfect prediction would show
    "at_most_actual",  # share of points whose prediction is at most what was simulated
)
# A normal error of standard deviation σ has a mean absolute value of σ times this.
MEAN_SIZE = math.sqrt(2.0 / math.pi)


def points_of(predicted: Outcome, simulated: Outcome) -> pd.DataFrame:
    """List the points of one prediction: subscribers whose share is known on both sides."""
    both = compare(predicted, simulated).subscribers
    actual = simulated.subscribers.set_index("subscriber").reindex(both["subscriber"])
    points = pd.DataFrame(
        {
            "subscriber": both["subscriber"],
            "broker": both["broker"],
            "events": actual["events"].to_numpy(),
            "predicted": both["on_time_a"],
            "actual": both["on_time_b"],
            "actual_se": actual["on_time_se"].to_numpy(),
        }
    )
    return points[points[["predicted", "actual"]].notna().all(axis=1)].reset_index(drop=True)


def errors(points: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Compute the errors over each group of points, in the order in which groups first appear.

    The noise is √(2/π) times the mean standard error of the simulated shares: what would be left of
    the mean absolute error if every prediction were exact.
    """
    rows = [
        {**dict(zip(by, key, strict=True)), **_errors_of(group)}
        for key, group in points.groupby(list(by), sort=False)
    ]
    return pd.DataFrame(rows, columns=[*by, *ERROR_COLUMNS])


def _errors_of(group: pd.DataFrame) -> dict[str, float]:
    difference = group["predicted"].to_numpy() - group["actual"].to_numpy()
    return {
        "points": len(group),
        "mean_absolute": float(np.abs(difference).mean()),
        "maximum": float(np.abs(difference).max()),
        "mean_signed": float(difference.mean()),
        "noise": MEAN_SIZE * float(group["actual_se"].mean()),
        "at_most_actual": float((difference <= 0).mean()),
    }


def side_by_side(table: pd.DataFrame, cell: str) -> tuple[list[Row], str]:
    """Make a row for each key of errors with a text for each model, and columns for the models."""
    keys = [name for name in table.columns if name not in (*ERROR_COLUMNS, "model")]
    models = list(dict.fromkeys(table["model"]))
    rows: list[Row] = []
    for _, group in table.groupby(keys, sort=False):
        by_model = {row["model"]: cell.format(**row) for row in group.to_dict("records")}
        rows.append({**dict.fromkeys(models), **group.iloc[0].to_dict(), **by_model})
    return rows, "".join(f" | {model} = {{{model}}}" for model in models)


def scatter(title: str, points: pd.DataFrame, series: int = 0, low: float = 0.0) -> Scatter:
    """Plot predicted against actual shares, a cloud for each system."""
    clouds = lines(points, "seed", "predicted", "actual", "system {}")
    return Scatter(title=title, clouds=clouds, series=series, low=low)


def zipf(count: int) -> Floats:
    """Compute probabilities proportional to 1/rank.

    >>> zipf(3).round(4).tolist()
    [0.5455, 0.2727, 0.1818]
    """
    weights = 1.0 / np.arange(1, count + 1)
    return np.asarray(weights / weights.sum())
