from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tidings.characterisation.cells import BATCHES
from tidings.characterisation.stationarity import (
    CANNOT_TELL,
    DRIFTS,
    STEADY,
    drift_notes,
    stationarity,
)


def counts(**by_publisher):
    parts = [
        pd.DataFrame({"publisher": name, "batch": range(BATCHES), "rows": rows})
        for name, rows in by_publisher.items()
    ]
    return pd.concat(parts, ignore_index=True)


def renewal_counts(rng, shape, rate):
    """Counts in parts of a renewal process with gamma intervals of c² = 1/shape."""
    times = np.cumsum(rng.gamma(shape, 1 / (shape * rate), int(rate * BATCHES * 1.2)))
    return np.histogram(times, bins=BATCHES, range=(0, BATCHES))[0]


@pytest.mark.statistical
@pytest.mark.parametrize(("shape", "scv"), [(1.0, 1.0), (4.0, 0.25), (0.25, 4.0)])
def test_steady_publishers_are_seldom_told_to_drift(shape, scv):
    rng = np.random.default_rng(5)
    table = counts(**{f"p{i}": renewal_counts(rng, shape, 200.0) for i in range(400)})
    found = stationarity(table, {f"p{i}": scv for i in range(400)}, window_s=BATCHES)
    # the mean of χ²/(m − 1) is 1, its standard error √(2/(31 · 400)) = 0.0127
    assert found["dispersion"].mean() == pytest.approx(1.0, abs=5 * 0.0127 + 0.02)
    assert (found["verdict"] == STEADY).mean() > 0.99


def test_drifting_and_thin_publishers_are_told_apart():
    rng = np.random.default_rng(1)
    day = 200 * (1 + 0.3 * np.sin(np.arange(BATCHES) / BATCHES * 2 * np.pi))
    table = counts(daily=rng.poisson(day), rare=rng.poisson(1.0, BATCHES))
    found = stationarity(table, {"daily": 1.0}, window_s=2.0 * BATCHES).set_index("publisher")
    assert found["verdict"].to_dict() == {"daily": DRIFTS, "rare": CANNOT_TELL}
    assert found.loc["daily", "most_per_s"] == pytest.approx(130, rel=0.15)
    (note,) = drift_notes(found.reset_index())
    assert "rate of daily does not stay" in note
    assert drift_notes(found.loc[["rare"]].reset_index()) == []
