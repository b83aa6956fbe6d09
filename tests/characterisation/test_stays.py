"""Subscribers that come and go, from traces: what they wanted, how long they stay and are away."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tidings.characterisation.count.cells import no_cells
from tidings.characterisation.count.deliveries import (
    SubscriptionSteps,
    delivery_statistics,
    find_churners,
    subscription_statistics,
)
from tidings.characterisation.count.periods import PERIOD_CELLS, stay_periods, stays
from tidings.characterisation.fit.connectivity import fit_stays, with_stays
from tidings.characterisation.fit.subscribers import changed_subscribers
from tidings.characterisation.job import characterise
from tidings.characterisation.statistics import UNASKED
from tidings.model import reading
from tidings.model.filters import as_filter
from tidings.model.laws import Exponential
from tidings.model.system import Subscriber
from tidings.model.trace_tables import DELIVERIES, PUBLICATIONS, SUBSCRIPTIONS
from tidings.prediction.predict import predict
from tidings.simulation.recording import record
from tidings.traces.actions import bring_here
from tidings.traces.reading import Traces
from tidings.traces.window import TraceWindow

S = 1_000_000_000
T0 = 1_700_000_000 * S + 1  # odd: no double holds it
WINDOW = TraceWindow(from_ns=T0, until_ns=T0 + 100 * S)
STOCK, FX = '{"topic":"stock"}', '{"topic":"fx"}'


def step(who, number, action, at_s, wants=STOCK):
    wants = wants if action == "subscribe" else None
    return (f"{who}/{number}", who, "hub", action, T0 + round(at_s * S), wants)


def life(who, number, begin_s, end_s, wants=STOCK):
    found = [step(who, number, "subscribe", begin_s, wants)]
    return found if end_s is None else [*found, step(who, number, "unsubscribe", end_s)]


STEPS = [
    *life("ann", 1, 0, 20),  # there when observation began
    *life("ann", 2, 30, 50),
    *life("ann", 3, 40, 60, FX),  # overlaps: one stay from 30 to 60
    *life("ann", 4, 60, 70),  # back at once: a stay of its own
    *life("ann", 5, 90, None),
    *life("bob", 1, 0, None),
]


@pytest.mark.parametrize(
    ("lives", "changed"),
    [
        ([life("ann", 1, 0, None), life("bob", 1, -5, None)], []),
        ([life("ann", 1, 0, None), life("bob", 1, 1, None)], ["bob"]),
        ([life("ann", 1, 0, 20), life("bob", 1, 0, None)], ["ann"]),
        ([life("ann", 1, 0, None), life("ann", 1, 5, None)], ["ann"]),
    ],
)
def test_where_nobody_comes_or_goes_there_are_no_stays_to_look_for(frame, lives, changed):
    subscriptions = frame([step for life in lives for step in life], SUBSCRIPTIONS.ddl)
    counted = bring_here(subscription_statistics(subscriptions), "subscriptions")
    assert changed_subscribers(counted, WINDOW) == changed
    cells = bring_here(stay_periods(subscriptions, WINDOW), "subscriptions")
    if not changed:  # which is what gathering puts in place of the query
        pd.testing.assert_frame_equal(cells, no_cells(PERIOD_CELLS))


def test_stays_are_subscriptions_that_overlap_and_cut_off_times_say_so(frame):
    subscriptions = frame(STEPS, SUBSCRIPTIONS.ddl)
    found = [row for row in stays(subscriptions).collect() if row.subscriber == "ann"]
    assert sorted((row.begun_ns - T0) // S for row in found) == [0, 30, 60, 90]
    cells = stay_periods(subscriptions, WINDOW).collect()
    assert sorted((c.path, c.connected, c.begun, c.ended, c.total_s) for c in cells) == [
        ("ann", False, True, True, 0.0),
        ("ann", False, True, True, 10.0),
        ("ann", False, True, True, 20.0),
        ("ann", True, False, True, 20.0),
        ("ann", True, True, False, 10.0),
        ("ann", True, True, True, 10.0),
        ("ann", True, True, True, 30.0),
    ]


def published(event, at_ns, content=STOCK):
    return (event, "ticker", "hub", at_ns, content, 5 * S, None)


def received(event, who, at_ns):
    return (event, who, "hub", at_ns)


def test_wanted_is_what_was_published_while_a_subscription_for_it_stood(frame):
    """To the nanosecond, at moments that doubles cannot tell apart."""
    last = T0 + 20 * S
    publications = frame(
        [
            published("before", last - 1),
            published("at-end", last),
            published("away", T0 + 25 * S),
            published("other", T0 + 31 * S, FX),
            published("missed", T0 + 32 * S),
            published("later", T0 + 49 * S),
            published("both", T0 + 45 * S, FX),
            published("late", T0 + 91 * S),
        ],
        PUBLICATIONS.ddl,
    )
    deliveries = frame(
        [
            received("before", "bob", last + 1),
            received("before", "ann", last),  # the stay has just ended
            received("at-end", "ann", T0 + 30 * S + 1),  # a later stay
            received("other", "ann", T0 + 42 * S),  # published before it was asked for
            received("later", "ann", T0 + 50 * S - 1),
            received("later", "ann", T0 + 50 * S + 1),
            received("both", "ann", T0 + 46 * S),
            received("late", "ann", T0 + 98 * S),
        ],
        DELIVERIES.ddl,
    )
    rows = frame(STEPS, SUBSCRIPTIONS.ddl)
    steps = SubscriptionSteps(rows=rows, counted=subscription_statistics(rows).toPandas())
    keys = publications.selectExpr("content", "xxhash64(content) as content_key").distinct()
    guests = find_churners(steps, publications, keys.toPandas(), WINDOW)
    pairs = {(row.event, row.subscriber, row.until_ns) for row in guests.pairs.collect()}
    assert pairs == {
        ("before", "ann", last),
        ("missed", "ann", T0 + 50 * S),
        ("later", "ann", T0 + 50 * S),
        ("both", "ann", T0 + 60 * S),
        ("late", "ann", 2**63 - 1),
    }
    found = delivery_statistics(deliveries, publications, WINDOW, guests).toPandas()
    by_pair = found[found["statistic"] == "pairs"].dropna(subset="subscriber")
    sums = by_pair.groupby("subscriber")[["rows", "wanted", "delivered", "on_time"]].sum()
    assert sums.loc["ann"].tolist() == [5, 5, 3, 2]  # a copy; 'late' takes longer than 5 s
    assert sums.loc["bob"].tolist() == [1, 0, 1, 1]  # what bob wants is not counted here
    quality = found[found["statistic"] == "quality"].set_index("reason")["rows"]
    assert quality[UNASKED] == 2
    assert quality.sum() == 8


def test_without_anybody_who_comes_and_goes_nothing_is_looked_up(frame):
    rows = frame(life("bob", 1, 0, None), SUBSCRIPTIONS.ddl)
    steps = SubscriptionSteps(rows=rows, counted=subscription_statistics(rows).toPandas())
    assert find_churners(steps, rows, pd.DataFrame(), WINDOW) is None


def cells(on_s, off_s):
    lengths = [(True, length) for length in on_s] + [(False, length) for length in off_s]
    columns = ["path", "connected", "begun", "ended", "bin", "count", "total_s"]
    rows = [
        ("ann", on, True, True, number, 1, length) for number, (on, length) in enumerate(lengths)
    ]
    cells = pd.DataFrame(rows, columns=columns)
    return cells.assign(lowest_s=cells["total_s"], highest_s=cells["total_s"])


@pytest.fixture
def ann():
    return Subscriber(name="ann", at="hub", wants=as_filter({}))


def test_who_is_always_back_at_once_is_never_away(ann):
    found, notes = fit_stays(cells([10.0, 30.0] * 4, [0.0] * 8))
    (changed,), (parameter,) = with_stays([ann], found)
    assert notes == []
    assert (changed.stays, changed.away) == (Exponential(mean_s=20.0), None)
    assert (parameter.path, parameter.estimate) == ("subscribers.ann.stays", 20.0)


def test_stays_that_are_all_alike_are_constant(ann):
    found, _ = fit_stays(cells([40.0] * 40, [5.0] * 40))
    (changed,), _ = with_stays([ann], found)
    assert (changed.stays.mean_s, changed.stays.scv) == (40.0, 0.0)


def churning():
    return reading.from_document(
        {
            "tidings": 1,
            "lifetime": "400ms",
            "brokers": {name: {"service": {"exponential": "5ms"}} for name in ("b0", "b1", "b2")},
            "links": [
                {"between": ["b0", "b1"], "delay": {"exponential": "80ms"}},
                {"between": ["b1", "b2"], "delay": "150ms", "reliability": 0.95},
            ],
            "publishers": {
                "p": {"at": "b0", "every": {"exponential": "100ms"},
                      "content": [{"p": 0.7, "event": {"x": 1}}, {"p": 0.3, "event": {"x": 2}}]},
            },
            "subscribers": {
                "often": {"at": "b2", "wants": {"x": 1}, "stays": {"exponential": "2s"},
                          "away": {"uniform": ["1s", "2s"]}},
                "back": {"at": "b1", "wants": {"x": 2}, "stays": {"uniform": ["1s", "5s"]}},
                "lasting": {"at": "b2", "wants": {"x": 2}},
            },
        }
    )  # fmt: skip


@pytest.fixture(scope="module")
def recorded():
    return record(churning(), duration_s=1500.0, warmup_s=20.0, seed=5, probes_per_s=1.0)


@pytest.fixture(scope="module")
def learnt(spark, recorded):
    tables = {name: spark.createDataFrame(table) for name, table in recorded.tables.items()}
    window = TraceWindow(from_ns=recorded.from_ns, until_ns=recorded.until_ns)
    return characterise(Traces(tables=tables, window=window, source="simulated", notes=()))


@pytest.mark.slow
def test_what_is_measured_of_a_recorded_run_is_what_was_simulated(recorded, learnt):
    columns = ["subscriber", "events", "delivered", "on_time", "late", "delay_mean_s"]
    truth, found = (
        outcome.subscribers[columns].set_index("subscriber").sort_index()
        for outcome in (recorded.outcome, learnt.measured)
    )
    np.testing.assert_allclose(found, truth, rtol=1e-6, atol=1e-9)


@pytest.mark.slow
@pytest.mark.statistical
def test_planted_stays_come_back_and_predict_what_was_measured(learnt):
    parameters = learnt.parameters.set_index("path")
    truth = {"often.stays": 2.0, "often.away": 1.5, "back.stays": 3.0}
    for name, mean_s in truth.items():
        row = parameters.loc[f"subscribers.{name}"]
        assert row["standard_error"] < 0.06 * mean_s
        assert abs(row["estimate"] - mean_s) < 5.0 * row["standard_error"]
    fitted = {each.name: each for each in learnt.system.subscribers}
    assert fitted["often"].away is not None
    assert fitted["back"].away is None
    assert fitted["lasting"].stays is None
    predicted = predict(learnt.system, error_bars=False, by="theory").subscribers.set_index(
        "subscriber"
    )
    measured = learnt.measured.subscribers.set_index("subscriber")
    # Who is back at once finds some of the last subscription still there; predictions warn of it.
    for name in ("often", "lasting"):
        off = predicted["on_time"][name] - measured["on_time"][name]
        assert abs(off) < 5.0 * measured["on_time_se"][name]
        assert measured["on_time_se"][name] < 0.02
