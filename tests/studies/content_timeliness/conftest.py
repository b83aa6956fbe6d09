"""Points made by hand, whose errors are known."""

from __future__ import annotations

import pandas as pd
import pytest

from studies.content_timeliness import POINT_COLUMNS

# (publishing, matching, model, alpha): [(predicted, actual), ...]
BY_HAND = {
    ("exponential", "exponential", "mm1", 1.0): [(0.50, 0.50), (0.40, 0.50)],
    ("exponential", "exponential", "gg1", 1.0): [(0.50, 0.50), (0.40, 0.50)],
    ("exponential", "exponential", "mm1", 0.5): [(0.60, 0.50), (0.20, 0.50)],
    ("exponential", "exponential", "mm1", 2.0): [(0.55, 0.50), (0.55, 0.50)],
    ("uniform", "exponential", "mm1", 1.0): [(0.30, 0.60), (0.70, 0.60)],
    ("uniform", "exponential", "gg1", 1.0): [(0.55, 0.60), (0.65, 0.60)],
}


@pytest.fixture
def points():
    """Two subscribers of one system in two settings, under one load."""
    rows = [
        {
            "seed": 1,
            "load": "high",
            "utilisation": 0.75,
            "rate_per_s": 1.0,
            "publishing": publishing,
            "matching": matching,
            "model": model,
            "alpha": alpha,
            "subscriber": f"s{number}",
            "broker": "b01",
            "events": 100.0,
            "predicted": predicted,
            "actual": actual,
            "actual_se": 0.01 * (1 + number),
        }
        for (publishing, matching, model, alpha), pairs in BY_HAND.items()
        for number, (predicted, actual) in enumerate(pairs)
    ]
    return pd.DataFrame(rows, columns=list(POINT_COLUMNS))
