"""From traces of publishers in phase to a prediction: described by their clock, or replayed."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tidings import predict
from tidings.characterisation.fit.traffic import IN_PHASE
from tidings.characterisation.job import characterise
from tidings.characterisation.replaying import (
    FEW_EVENTS,
    UNSETTLED,
    keep_times,
    replayed,
    times_file,
)
from tidings.model.reading import load, loads, save
from tidings.simulation.recording import record, write_traces
from tidings.traces.reading import read_traces
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
    # Of independent streams at a load of 0.25, nearly all would be in time.
    alone = loads(SYSTEM.replace("clock: beat", "clock: nobody"))
    assert predicted["on_time"] < 0.75
    assert len(alone.publishers) == 5


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


def rates(per_s, window_s):
    middles = (np.arange(len(per_s)) + 0.5) * window_s / len(per_s)
    return pd.DataFrame({"publisher": "p", "at_s": middles, "per_s": per_s})


def test_blocks_are_of_whole_days_where_traffic_follows_them():
    steady = np.random.default_rng(2).poisson(1000.0, 32) / 100.0
    plain, unsure = replayed(rates(steady, 3200.0), pd.DataFrame({"kind": ["bursts"]}), 3200.0, "f")
    assert (plain.block_s, plain.cycle_s, unsure) == (100.0, None, ())
    daily = pd.DataFrame({"kind": ["by time of day"]})
    days, _ = replayed(rates(steady, 8 * 86400.0), daily, 8 * 86400.0, "f")
    assert (days.block_s, days.cycle_s) == (86400.0, 86400.0)
    weeks, _ = replayed(rates(steady, 60 * 86400.0), daily, 60 * 86400.0, "f")
    assert (weeks.block_s, weeks.cycle_s) == (7 * 86400.0, 7 * 86400.0)


def test_what_never_settles_is_said_to():
    rising = rates(np.arange(32.0) + 100.0, 3200.0)
    moving, unsure = replayed(rising, pd.DataFrame({"kind": ["bursts"]}), 3200.0, "f")
    assert moving.block_s == 800.0
    assert unsure == (UNSETTLED.format(block=800.0),)


def test_a_rate_that_is_hardly_known_is_said_to_be():
    clumps = np.where(np.arange(32) % 8 == 0, 40.0, 1.0) * np.repeat([1.0, 3.0, 0.5, 2.0], 8)
    _, unsure = replayed(rates(clumps, 3200.0), pd.DataFrame({"kind": ["bursts"]}), 3200.0, "f")
    eighths = clumps.reshape(8, 4).mean(axis=1)
    error = eighths.std(ddof=1) / eighths.mean() / np.sqrt(8.0)
    assert unsure == (FEW_EVENTS.format(error=error),)
