"""How far predictions are from what was simulated: points, and errors over groups of points.

A point is one subscriber in one run, predicted by one model. Errors are predicted minus actual
on-time shares.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from tidings.model.outcome import Outcome
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
    """The points of one prediction: subscribers whose share is known on both sides."""
    both = compare(predicted, simulated).subscribers
    events = simulated.subscribers.set_index("subscriber")["events"]
    noise = simulated.subscribers.set_index("subscriber")["on_time_se"]
    found = pd.DataFrame(
        {
            "subscriber": both["subscriber"],
            "broker": both["broker"],
            "events": events.reindex(both["subscriber"]).to_numpy(),
            "predicted": both["on_time_a"],
            "actual": both["on_time_b"],
            "actual_se": noise.reindex(both["subscriber"]).to_numpy(),
        }
    )
    return found[found[["predicted", "actual"]].notna().all(axis=1)].reset_index(drop=True)


def errors(points: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """The errors over each group of points, in the order in which groups first appear.

    The noise is √(2/π) times the mean standard error of the simulated shares: what would be left of
    the mean absolute error if every prediction were exact.
    """
    rows = [
        {**dict(zip(by, key, strict=True)), **_errors_of(group)}
        for key, group in _groups(points, by)
    ]
    return pd.DataFrame(rows, columns=[*by, *ERROR_COLUMNS])


def _groups(
    points: pd.DataFrame, by: Sequence[str]
) -> Iterator[tuple[tuple[object, ...], pd.DataFrame]]:
    for key, group in points.groupby(list(by), sort=False):
        yield tuple(key), group


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
