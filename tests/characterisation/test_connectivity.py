from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from tidings.characterisation.count.periods import PEER_PERIODS, PERIOD_CELLS, peer_periods
from tidings.characterisation.fit.connectivity import fit_connectivity, with_connectivity
from tidings.characterisation.fit.durations import durations_by_path
from tidings.characterisation.statistics import CHANGED_LATER
from tidings.model.behaviour import Connectivity
from tidings.model.filters import as_filter
from tidings.model.laws import Exponential, Weibull
from tidings.model.system import Subscriber
from tidings.model.trace_tables import SESSIONS
from tidings.traces.actions import bring_here
from tidings.traces.window import TraceWindow

S = 1_000_000_000
ON, OFF = Weibull(scale_s=60.0, shape=3.0), Exponential(mean_s=30.0)


def cells(peer, on_s, off_s):
    """Whole periods as Spark would have counted them, each in a bin of its own."""
    rows = [
        (peer, connected, True, True, bin_, 1, length_s, length_s, length_s)
        for connected, lengths_s in ((True, on_s), (False, off_s))
        for bin_, length_s in enumerate(lengths_s)
    ]
    names = [column.strip().split(" ")[0] for column in PERIOD_CELLS.split(",")]
    return pd.DataFrame(rows, columns=names)


@pytest.mark.statistical
def test_planted_times_come_back_within_their_standard_errors():
    rng = np.random.default_rng(3)
    seen = cells("ann", ON.sample(rng, 400), OFF.sample(rng, 400))
    found, notes = fit_connectivity(seen)
    assert notes == []
    for fitted, truth in ((found["ann"].on, ON), (found["ann"].off, OFF)):
        assert abs(fitted.law.mean_s - truth.mean_s) < 4.5 * fitted.mean_se_s
        exact_se_s = truth.mean_s * math.sqrt(truth.scv / 400)
        assert fitted.mean_se_s == pytest.approx(exact_se_s, rel=0.25)
        assert fitted.distance < 1.63 / math.sqrt(400)  # of the measured law, 1 in 100
    assert found["ann"].on.family == "weibull"
    assert found["ann"].on.law.scv == pytest.approx(ON.scv, rel=0.2)


@pytest.mark.statistical
def test_a_mean_beyond_what_was_seen_is_that_of_the_law():
    """Observation of 60 s at a time; times of 100 s on average: what was seen has a mean of 45."""
    rng = np.random.default_rng(11)
    truth = Exponential(mean_s=100.0)
    lengths_s = truth.sample(rng, 1500)
    seen = cells("ann", np.minimum(lengths_s, 60.0), [5.0] * 9)
    seen.loc[:1499, "ended"] = lengths_s <= 60.0
    found, _ = fit_connectivity(seen)
    fitted = found["ann"].on
    # 0.45 of the ends were seen; a Weibull law may be chosen, whose mean is less sure.
    assert fitted.law.mean_s == pytest.approx(100.0, rel=0.15)
    assert fitted.mean_se_s == pytest.approx(100.0 / math.sqrt(fitted.count), rel=0.3)


def test_who_hardly_ever_changed_is_named_and_left_as_it_was():
    seen = cells("ann", [10.0] * 4, [5.0] * 9)
    found, (note,) = fit_connectivity(seen)
    assert found == {}
    assert "ann connected and disconnected too rarely" in note


def test_peers_keep_what_sessions_do_not_tell():
    found, _ = fit_connectivity(cells("ann", [8.0, 12.0] * 4, [4.0, 6.0] * 4))
    service = Exponential(mean_s=0.1)
    old = Connectivity(on=OFF, off=OFF, service=service, buffer=3)
    ann, bob, cid = (
        Subscriber(name=name, at="hub", wants=as_filter({}), connectivity=each)
        for name, each in (("ann", old), ("bob", old), ("cid", None))
    )
    (new_ann, new_bob, new_cid), parameters, notes = with_connectivity(
        [ann, bob, cid], "subscribers", found
    )
    assert (new_bob, new_cid, notes) == (bob, cid, [])
    assert new_ann.connectivity == Connectivity(
        on=Exponential(mean_s=10.0), off=Exponential(mean_s=5.0), service=service, buffer=3
    )
    assert [(each.path, each.estimate, each.count) for each in parameters] == [
        ("subscribers.ann.connectivity.on", 10.0, 8),
        ("subscribers.ann.connectivity.off", 5.0, 8),
    ]
    wider = 2.4288 / 2.0  # Student's quantile of seven degrees of freedom at two standard errors
    assert parameters[0].standard_error == pytest.approx(wider * 2.0 / math.sqrt(7), rel=1e-4)
    _, _, (note,) = with_connectivity(
        [Subscriber(name="ann", at="hub", wants=ann.wants)], "s", found
    )
    assert "the hand-over time of ann was not recorded" in note


def test_periods_are_those_within_the_window_and_every_row_is_accounted_for(frame):
    changes = [
        ("ann", "disconnected", 0),
        ("ann", "connected", 5 * S),
        ("ann", "disconnected", 15 * S),
        ("bob", "connected", 7 * S),
        ("bob", "disconnected", 21 * S),
        ("bob", "asleep", 9 * S),
        ("", "connected", 9 * S),
    ]
    window = TraceWindow(from_ns=0, until_ns=20 * S)
    found = bring_here(peer_periods(frame(changes, SESSIONS.ddl), window), "sessions")
    assert set(found.columns) == {field.split()[0] for field in PEER_PERIODS.split(", ")}
    periods = found[found["path"].notna()]
    columns = ["path", "connected", "begun", "ended", "total_s"]
    assert sorted(periods[columns].itertuples(index=False, name=None)) == [
        ("ann", False, False, True, 5.0),
        ("ann", False, True, False, 5.0),
        ("ann", True, True, True, 10.0),
        ("bob", True, True, False, 13.0),
    ]
    assert periods["rows"].isna().all()
    counted = found[found["path"].isna()].fillna({"reason": "used"})
    assert dict(zip(counted["reason"], counted["rows"], strict=True)) == {
        "used": 4,
        CHANGED_LATER: 1,
        "state is not connected or disconnected": 1,
        "no peer": 1,
    }
    assert set(durations_by_path(found)) == {"ann", "bob"}
