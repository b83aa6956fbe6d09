from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.reporting.page_data import (
    ENDLESS,
    MOST_CURVES,
    MOST_POINTS,
    number,
    page_data,
    reduce_curve,
    to_script,
)
from tidings.reporting.reasons import explain


@settings(deadline=None)
@given(st.recursive(st.text() | st.integers() | st.none(), lambda inner: st.lists(inner)))
def test_no_text_can_end_the_script_and_all_of_it_reads_back(value):
    script = to_script({"value": value})
    assert "<" not in script
    assert json.loads(script) == {"value": value}


@settings(deadline=None)
@given(st.floats(allow_nan=True, allow_infinity=True))
def test_numbers_keep_five_digits_and_are_always_json(value):
    found = number(value)
    json.dumps(found, allow_nan=False)
    if math.isnan(value):
        assert found is None
    elif abs(value) > ENDLESS:
        assert abs(found) == ENDLESS
    else:
        assert found == pytest.approx(value, rel=5e-5)


@settings(deadline=None)
@given(st.lists(st.floats(1e-3, 1.0), min_size=1, max_size=400))
def test_a_reduced_curve_stays_close_to_the_whole_one(steps):
    arrived = np.cumsum(steps) / sum(steps) * 0.9
    times = np.arange(1.0, len(steps) + 1)
    kept_times, kept = reduce_curve(times, arrived)
    assert len(kept) <= MOST_POINTS + 3
    assert (kept_times[0], kept_times[-1]) == (times[0], times[-1])
    between = np.interp(times, kept_times, kept)
    # Between two points that stay, the curve rises by less than one step, or in one jump.
    assert np.abs(between - arrived).max() <= 2 * 0.9 / MOST_POINTS + 1e-9


def test_a_jump_stays_a_jump():
    times, arrived = np.arange(1.0, 101.0), np.r_[np.full(50, 0.1), np.full(50, 0.9)]
    kept_times, kept = reduce_curve(times, arrived)
    assert np.interp(50.0, kept_times, kept) == pytest.approx(0.1)
    assert np.interp(51.0, kept_times, kept) == pytest.approx(0.9)


def test_an_empty_curve_is_empty():
    assert reduce_curve(np.array([]), np.array([])) == ([], [])


def test_rows_of_all_sources_stand_in_one_order(report):
    measured = report.outcomes["measured"]
    data = page_data(report.system, report.outcomes, explain(report.system, measured), None)
    names = [each["name"] for each in data.document["subscribers"]]
    for source, columns in data.document["outcomes"].items():
        table = report.outcomes[source].subscribers.set_index("subscriber")["on_time"]
        assert columns["on_time"] == pytest.approx([table[name] for name in names], rel=1e-4)
    assert data.omissions == ()
    assert data.document["sources"] == ["predicted", "simulated", "measured"]


def test_of_thousands_only_the_worst_keep_their_curves(make_report):
    report = make_report(subscribers=MOST_CURVES + 50, sources=("measured",))
    measured = report.outcomes["measured"]
    data = page_data(report.system, report.outcomes, explain(report.system, measured), None)
    kept = {int(index) for index in data.document["delays"]["measured"]}
    on_time = np.array(data.document["outcomes"]["measured"]["on_time"], dtype=float)
    assert len(kept) == MOST_CURVES
    assert on_time[sorted(kept)].max() <= np.delete(on_time, sorted(kept)).min()
    assert "lowest on-time" in data.omissions[0]
