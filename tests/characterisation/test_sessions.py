from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from studies.mobile_onoff.activity import activity, activity_rates, daily_rates
from studies.mobile_onoff.connections import (
    OBSERVED,
    REPORTS,
    connections,
    trip_reports,
)
from tidings.characterisation.count.periods import (
    PERIOD_CELLS,
    period_cells,
    session_periods,
)
from tidings.characterisation.fit.duration_laws import fit
from tidings.characterisation.fit.durations import durations_by_path, measure
from tidings.errors import InvalidTracesError
from tidings.model.laws import Exponential, Weibull
from tidings.model.trace_tables import SESSIONS

S = 1_000_000_000


def rows_of(frame):
    return sorted(tuple(row) for row in frame.collect())


def test_periods_lie_between_changes_and_the_last_is_cut_off(frame):
    changes = [
        ("ann", "disconnected", 0),  # the state at the beginning, no change
        ("ann", "connected", 5 * S),
        ("ann", "connected", 6 * S),  # nothing new
        ("ann", "disconnected", 15 * S),
        ("ann", "connected", 18 * S),
        ("bob", "connected", 7 * S),
        ("bob", "gone", 8 * S),  # no state at all
    ]
    observed = [("ann", "metro", 0, 30 * S), ("bob", "bus", 0, 10 * S)]
    found = session_periods(frame(changes, SESSIONS.ddl), frame(observed, OBSERVED))
    assert rows_of(found) == [
        ("ann", "metro", False, 3.0, True, True),
        ("ann", "metro", False, 5.0, False, True),
        ("ann", "metro", True, 10.0, True, True),
        ("ann", "metro", True, 12.0, True, False),
        ("bob", "bus", True, 3.0, True, False),
    ]


def test_changes_after_the_observation_end_nothing(frame):
    changes = [("ann", "connected", 5 * S), ("ann", "disconnected", 50 * S)]
    observed = [("ann", "metro", 0, 20 * S)]
    found = session_periods(frame(changes, SESSIONS.ddl), frame(observed, OBSERVED))
    assert rows_of(found) == [("ann", "metro", True, 15.0, True, False)]


def test_periods_need_one_exchange_by_peer_and_no_python(frame, capsys):
    changes, observed = [("ann", "connected", S)], [("ann", "metro", 0, 2 * S)]
    periods = session_periods(frame(changes, SESSIONS.ddl), frame(observed, OBSERVED))
    period_cells(periods).explain()
    plan = capsys.readouterr().out
    assert "Python" not in plan
    assert plan.count("hashpartitioning(peer") == 1


def test_reports_become_changes_and_tell_how_long_a_journey_was_observed(frame):
    tuples = [
        ("j1", "A - B", "on", 100.0),
        ("j1", "A - B", "ON", 130.0),
        ("j1", "A - B", "OFF", 140.5),
        ("j1", "A - B", "OFF", 170.0),
        ("j1", "A - B", "what", 171.0),
    ]
    table = frame(tuples, "journey string, path string, state string, at_s double")
    found = connections(table, "here")
    assert rows_of(found.sessions) == [("j1", "disconnected", 140_500_000_000)]
    assert rows_of(found.observed) == [("j1", "A - B", 100 * S, 170 * S)]
    assert rows_of(found.set_aside) == [("state is neither ON nor OFF", 1)]


def test_throughput_below_the_threshold_is_disconnected(frame):
    seconds = [
        ("metro", "t1", 0, 1000, 900),
        ("metro", "t1", 1, 2000, 20),
        ("metro", "t1", 2, 1, 21),
    ]
    trips = frame(seconds, "mode string, trip string, seq int, duration_ms int, bandwidth_kbps int")
    reports = trip_reports(trips, off_kbps=20.0)
    assert reports.schema.simpleString() == frame([], REPORTS).schema.simpleString()
    assert rows_of(reports) == [
        ("metro t1", "metro", False, S, 3 * S),
        ("metro t1", "metro", True, 0, S),
        ("metro t1", "metro", True, 3 * S, 3_001_000_000),
    ]
    found = connections(trips, "here")
    assert rows_of(found.sessions) == [
        ("metro t1", "connected", 3 * S),
        ("metro t1", "disconnected", S),
    ]


def test_seconds_without_a_throughput_take_their_time_and_are_counted(frame):
    seconds = [
        ("t1", "0", "1000", "900"),
        ("t1", "1", "2000", "n/a"),  # nobody knows: nothing is seen to change
        ("t1", "2", "1000", "NaN"),
        ("t1", "3", "1000", "0"),
        ("t1", "4", "what", "0"),
        ("t1", "5", "0", "0"),
    ]
    trips = frame(seconds, "trip string, seq string, duration_ms string, bandwidth_kbps string")
    found = connections(trips, "here")
    assert rows_of(found.sessions) == [("t1", "disconnected", 4 * S)]
    assert rows_of(found.observed) == [("t1", "all", 0, 5 * S)]
    assert rows_of(found.set_aside) == [
        ("bandwidth_kbps is no number", 2),
        ("duration_ms is no number", 1),
        ("duration_ms is not above 0", 1),
    ]


def test_unknown_columns_are_refused_with_what_is_wanted(frame):
    with pytest.raises(InvalidTracesError, match="got the columns when; wants peer, state, at_ns"):
        connections(frame([(1,)], "when int"), "here")
    with pytest.raises(InvalidTracesError, match="got the columns when; wants antenna, at_s"):
        activity(frame([(1,)], "when int"), "here")


@pytest.mark.statistical
def test_planted_laws_come_back_from_journeys_that_end_too_early(frame):
    rng = np.random.default_rng(7)
    on, off = Weibull(scale_s=60.0, shape=1.5), Exponential(mean_s=30.0)
    changes, observed = [], []
    for number in range(300):
        name, at_s, until_s = f"j{number}", 0.0, rng.uniform(100.0, 400.0)
        observed.append((name, "line", 0, int(until_s * S)))
        while at_s < until_s:  # a journey begins by coming into the metro, seen
            for state, law in (("connected", on), ("disconnected", off)):
                if 0.0 < at_s < until_s:
                    changes.append((name, state, int(at_s * S)))
                at_s += float(law.sample(rng, 1)[0])
    periods = session_periods(frame(changes, SESSIONS.ddl), frame(observed, OBSERVED))
    seen = durations_by_path(period_cells(periods).toPandas())["line"]
    assert seen[True].cut_off > 0.1 * seen[True].whole
    for connected, law in ((True, on), (False, off)):
        found = measure(seen[connected])
        error_s = law.mean_s * law.scv**0.5 / seen[connected].whole ** 0.5
        assert abs(found.mean_s - law.mean_s) < 5 * error_s
    assert fit("weibull", seen[True]).aic < fit("exponential", seen[True]).aic - 20.0


def test_rates_are_counts_over_the_length_of_their_slot(frame):
    counts = [("9", 600.0, 30.0), ("9", 1799.0, 6.0), ("9", 1200.0, 6.0), ("24", 2400.0, 60.0)]
    found = activity_rates(frame(counts, "antenna string, at_s double, events double"), 600.0)
    rates = daily_rates(found.toPandas(), 600.0)
    assert rates["9"].per_s == (0.05, 0.02, 0.0, 0.0)
    assert rates["24"].per_s == (0.0, 0.0, 0.0, 0.1)


def test_activity_of_squares_is_read_with_its_milliseconds(frame):
    rows = [(5, 600_000, 12.0), (5, 1_200_000, None), (5, 1_800_000, -1.0)]
    squares = frame(rows, "square_id bigint, time_interval bigint, internet_total double")
    assert rows_of(activity(squares, "here")) == [("5", 600.0, 12.0)]


def test_lengths_in_one_bin_become_their_mean():
    cells = pd.DataFrame(
        [
            ("a", True, False, True, 250, 1, 0.5, 0.5, 0.5),
            ("a", True, True, True, 300, 2, 2.02, 1.0, 1.02),
            ("a", True, True, False, 310, 1, 1.5, 1.5, 1.5),
        ],
        columns=[column.split()[0] for column in PERIOD_CELLS.split(", ")],
    )
    found = durations_by_path(cells)["a"][True]
    assert found.lengths_s.tolist() == [1.01, 1.5]
    assert (found.whole, found.cut_off, found.older, found.ends) == (2, 1, 1, 3)
    assert found.total_s == pytest.approx(4.02, rel=1e-12)


def test_activity_without_any_is_an_error_and_silent_antennas_are_left_out(frame):
    dirty = [("a", 0.0, 6.0), ("a", 600.0, math.nan), ("b", 0.0, 0.0), ("a", 0.0, math.inf)]
    counts = activity(frame(dirty, "antenna string, at_s double, events double"), "here")
    found = daily_rates(activity_rates(counts, 600.0).toPandas(), 600.0)
    assert {name: rates.per_s for name, rates in found.items()} == {"a": (0.01,)}
    nothing = activity(frame([], "antenna string, at_s double, events double"), "here")
    with pytest.raises(InvalidTracesError, match="no activity"):
        daily_rates(activity_rates(nothing, 600.0).toPandas(), 600.0)
