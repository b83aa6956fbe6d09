"""From traces of publishers in phase to a prediction: described by their clock, or replayed."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from naive_traffic import interval_rows
from tidings import predict
from tidings.characterisation.fit.dispersion import batches_of, curve_of
from tidings.characterisation.fit.traffic import BURSTY, DAILY, IN_PHASE, Traffic
from tidings.characterisation.job import characterise
from tidings.characterisation.replaying import keep_times, replayed, times_file
from tidings.model.reading import load, loads, save
from tidings.simulation.recording import record, write_traces
from tidings.traces.reading import read_traces
from tidings.traces.window import TraceWindow
from tidings.validation.back_testing import BackTestVerdict, back_test

SENSORS = "\n".join(
    f"  s{n}: {{at: hub, content: {{event: {{sensor: {n}}}}}, lifetime: 250ms, "
    f"publishes: {{period: 2s, offset: {n}ms, clock: beat, jitter: {{uniform: [0s, 2ms]}}}}}}"
    for n in range(5)
)
SYSTEM = f"""
tidings: 1
brokers: {{hub: {{service: {{exponential: 100ms}}}}}}
publishers:
{SENSORS}
subscribers: {{all: {{at: hub, wants: {{}}}}}}
"""


@pytest.fixture(scope="module")
def in_phase(tmp_path_factory):
    """Traces of five sensors that publish within 6 ms of each other, every 2 s."""
    folder = tmp_path_factory.mktemp("in phase") / "traces"
    write_traces(record(loads(SYSTEM), seed=3, duration_s=2000.0, probes_per_s=0.1), folder)
    return folder


@pytest.fixture(scope="module")
def fitted(spark, few_rows, in_phase):
    return characterise(read_traces(spark, in_phase))


@pytest.mark.slow
@pytest.mark.statistical
def test_sensors_in_phase_are_predicted_as_measured(fitted):
    assert set(fitted.traffic["kind"]) == {IN_PHASE}
    assert {each.publishes.clock for each in fitted.system.publishers} == {"clock 1"}
    measured = fitted.measured.subscribers.iloc[0]
    predicted = predict(fitted.system).subscribers.iloc[0]
    error = np.hypot(predicted["on_time_se"], measured["on_time_se"])
    assert error < 0.01
    assert abs(predicted["on_time"] - measured["on_time"]) < 4.5 * error
    # Of as many events at random, far more are in time: an M/M/1 queue at a load of 0.25.
    assert predicted["on_time"] < 0.75 < 1.0 - np.exp(-(10.0 - 2.5) * 0.25)


@pytest.mark.slow
@pytest.mark.statistical
def test_recorded_times_are_replayed_from_beside_the_system(
    spark, fitted, in_phase, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    kept = keep_times(fitted, read_traces(spark, in_phase), times_file(tmp_path / "fitted.yaml"))
    save(kept.system, tmp_path / "fitted.yaml")
    again = load(tmp_path / "fitted.yaml")
    assert {each.publishes.recorded for each in again.publishers} == {
        str(tmp_path / "fitted-times.parquet")
    }
    times = pd.read_parquet(tmp_path / "fitted-times.parquet")
    assert len(times) == fitted.traffic["events"].sum()
    rates = {each.name: each.rate_per_s for each in fitted.system.publishers}
    assert {each.name: each.rate_per_s for each in again.publishers} == pytest.approx(
        rates, rel=1e-3
    )
    measured = fitted.measured.subscribers.iloc[0]
    predicted = predict(again).subscribers.iloc[0]
    error = np.hypot(predicted["on_time_se"], measured["on_time_se"])
    assert abs(predicted["on_time"] - measured["on_time"]) < 4.5 * error


@pytest.mark.slow
def test_a_back_test_says_what_it_comes_to(spark, few_rows, in_phase):
    tested = back_test(read_traces(spark, in_phase), replay=True)
    verdict = tested.verdict
    assert verdict.subscribers == 1
    assert verdict.mean_error == abs(verdict.predicted - verdict.unseen) < 0.05
    assert verdict.is_covered
    assert tested.to_document()["verdict"]["covered"] is True
    assert "covered" in verdict.text
    assert all(each.publishes.recorded for each in tested.first.system.publishers)


def test_a_test_whose_errors_do_not_hold_is_not_covered():
    verdict = BackTestVerdict(
        predicted=0.9, unseen=0.6, mean_error=0.3, worst_error=0.4, within_error=0.5, subscribers=4
    )
    assert not verdict.is_covered
    assert "do not plan with this fit" in verdict.text


def kinds(counts, window_s, kind=BURSTY, usual=None):
    """One publisher of a kind with such counts in equal parts of the time."""
    counts = np.asarray(counts, dtype=float)
    rows = interval_rows({"p": (np.arange(300) * window_s / 300 * 1e9)}, 0, int(window_s * 1e9))
    window = TraceWindow(from_ns=0, until_ns=int(window_s * 1e9))
    curve = curve_of(next(batches_of(rows, window)))
    usual = np.full(len(counts), counts.mean()) if usual is None else usual
    found = Traffic(publisher="p", kind=kind, why="", curve=curve, counts=counts, usual=usual)
    return {"p": found}


STEADY = np.random.default_rng(2).poisson(1000.0, 32)
DAY_S = 86_400.0


def test_blocks_are_of_whole_days_where_traffic_follows_them():
    plain, _ = replayed(kinds(STEADY, 3200.0), 3200.0, "f")
    assert (plain.block_s, plain.cycle_s) == (100.0, None)
    days, _ = replayed(kinds(STEADY, 8 * DAY_S, DAILY), 8 * DAY_S, "f")
    assert (days.block_s, days.cycle_s) == (DAY_S, DAY_S)
    weeks, _ = replayed(kinds(STEADY, 60 * DAY_S, DAILY), 60 * DAY_S, "f")
    assert (weeks.block_s, weeks.cycle_s) == (7 * DAY_S, 7 * DAY_S)


def test_what_never_settles_is_replayed_in_quarters():
    moving, spread = replayed(kinds(np.arange(32) + 300, 3200.0), 3200.0, "f")
    assert moving.block_s == 800.0
    eighths = np.arange(1.5, 32.0, 4.0) + 300.0
    assert spread == pytest.approx(eighths.std(ddof=1) / eighths.mean())


def test_what_hours_explain_is_no_trend():
    usual = np.linspace(500.0, 1500.0, 32)
    counts = np.random.default_rng(3).poisson(usual)
    explained, little = replayed(kinds(counts, 60 * DAY_S, DAILY, usual), 60 * DAY_S, "f")
    assert explained.block_s == 7 * DAY_S
    unexplained, much = replayed(kinds(counts, 60 * DAY_S, DAILY), 60 * DAY_S, "f")
    assert unexplained.block_s == 14 * DAY_S
    assert little < 0.1 * much
