from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tidings.characterisation.fit.stationarity import (
    CANNOT_TELL,
    DRIFTS,
    STEADY,
    drift_notes,
    even_batches_s,
    rates_over_time,
    stationarity,
)
from tidings.characterisation.statistics import BATCHES, batch_lengths_s, batches_of


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
    found = stationarity(table, {f"p{i}": scv for i in range(400)}, even_batches_s(BATCHES))
    # the mean of χ²/(m − 1) is 1, its standard error √(2/(31 · 400)) = 0.0127
    assert found["dispersion"].mean() == pytest.approx(1.0, abs=5 * 0.0127 + 0.02)
    assert (found["verdict"] == STEADY).mean() > 0.99


def test_drifting_and_thin_publishers_are_told_apart():
    rng = np.random.default_rng(1)
    day = 200 * (1 + 0.3 * np.sin(np.arange(BATCHES) / BATCHES * 2 * np.pi))
    table = counts(daily=rng.poisson(day), rare=rng.poisson(1.0, BATCHES))
    found = stationarity(table, {"daily": 1.0}, even_batches_s(2.0 * BATCHES)).set_index(
        "publisher"
    )
    assert found["verdict"].to_dict() == {"daily": DRIFTS, "rare": CANNOT_TELL}
    assert found.loc["daily", "most_per_s"] == pytest.approx(130, rel=0.15)
    (note,) = drift_notes(found.reset_index())
    assert "rate of daily changes over time" in note
    assert drift_notes(found.loc[["rare"]].reset_index()) == []


def test_days_of_different_length_make_no_drift():
    """A day and an hour: some batches of both together are twice as long as others."""
    hour_ns, per_s = 3600 * 10**9, 0.25
    lengths_ns = [24 * hour_ns, hour_ns]
    goes_to = batches_of(lengths_ns)
    fine_s = np.repeat([24 * 3600 / BATCHES, 3600 / BATCHES], BATCHES)
    rows = np.zeros(BATCHES)
    np.add.at(rows, goes_to, per_s * fine_s)
    lengths_s = np.array(batch_lengths_s(lengths_ns, lengths_ns))
    assert lengths_s.sum() == 25 * 3600
    assert lengths_s.max() == 2 * np.median(lengths_s) > 6 * lengths_s.min()
    found = stationarity(counts(steady=rows), {}, lengths_s).iloc[0]
    assert found["verdict"] == STEADY
    assert found["dispersion"] == pytest.approx(0.0, abs=1e-12)
    assert (found["least_per_s"], found["most_per_s"]) == pytest.approx((per_s, per_s), rel=1e-12)
    over_time = rates_over_time(counts(steady=rows), lengths_s)
    assert over_time["per_s"].to_numpy() == pytest.approx(per_s, rel=1e-12)
    assert over_time["at_s"].is_monotonic_increasing
    as_if_even = stationarity(counts(steady=rows), {}, even_batches_s(25 * 3600))
    assert as_if_even["verdict"].tolist() == [DRIFTS]  # what lengths are for


def test_what_is_left_to_settle_is_not_counted_as_watched():
    lengths_s = batch_lengths_s([3200 * 10**9], [3050 * 10**9])
    assert lengths_s == (100.0,) * 30 + (50.0, 0.0)
    settled = np.array([10] * 30 + [5, 0])
    found = stationarity(counts(steady=settled), {}, np.array(lengths_s)).iloc[0]
    assert (found["verdict"], found["dispersion"]) == (STEADY, 0.0)
