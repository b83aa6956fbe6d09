"""The points of these experiments: which run each belongs to, and errors over groups of them."""

from __future__ import annotations

import pandas as pd

from studies.points_errors import errors

# What says which run a point belongs to.
RUN_COLUMNS = ("seed", "load", "utilisation", "rate_per_s", "publishing", "matching")
POINT_COLUMNS = (
    *RUN_COLUMNS,
    "model",
    "alpha",  # skewness of the content law that the prediction was made from; 1 is the truth
    "subscriber",
    "broker",
    "events",  # that the simulated share was counted over
    "predicted",
    "actual",
    "actual_se",
)
SETTING = ("load", "publishing", "matching", "model")
SKEWNESS = ("load", "alpha", "model")


def by_setting(points: pd.DataFrame) -> pd.DataFrame:
    """Errors for each load, setting and model, from predictions that knew the contents."""
    return errors(points[points["alpha"] == 1.0], SETTING)


def by_skewness(points: pd.DataFrame) -> pd.DataFrame:
    """Errors for each load, skewness α and model, where everything is exponential."""
    exponential = (points["publishing"] == "exponential") & (points["matching"] == "exponential")
    return errors(points[exponential], SKEWNESS)
