"""The case study on real brokers: how it is set up, and what is made of what was measured.

Servers are run in tests/testbed; here simulated runs, as long as real ones, stand for measurements.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from studies.performance_methodology import TEXTS, real
from studies.performance_methodology.case_study import BROKERS, SCENARIOS
from studies.performance_methodology.real import RealPlan, real_system
from tidings.errors import InvalidInputError
from tidings.model.routes import route
from tidings.prediction.predict import predict
from tidings.reporting.study_page import render_study
from tidings.simulation.run import simulate
from tidings.testbed.calibrating import Bench
from tidings.testbed.reality import Reality, Repetition, apart
from tidings.testbed.runs import TestbedOptions
from tidings.validation.comparison import compare

SECONDS = 60.0


def test_times_are_scaled_and_loads_and_routing_stay():
    plan = RealPlan(factor=4.0)
    for scenario in SCENARIOS:
        system = real_system(scenario, plan)
        found = predict(system, delays=False, by="theory")
        per_s = found.brokers.set_index("broker")["arrivals_per_s"]
        assert len(per_s) == len(BROKERS) == 15
        assert (len(system.publishers), len(system.subscribers)) == (8, 16)
        for broker, stated in zip(BROKERS, scenario.throughput_per_s, strict=True):
            assert per_s[f"b{broker}"] == pytest.approx(stated / 4.0)
        loads = found.brokers["utilisation"]
        assert loads.max() == pytest.approx(0.00393 * scenario.throughput_per_s[0], rel=1e-3)
        assert system.lifetime.mean_s == pytest.approx(0.12)
        assert max(len(each.content.rows()) for each in system.publishers) < 20


def test_the_load_can_be_chosen():
    found = predict(real_system(SCENARIOS[0], RealPlan(load=0.6)), delays=False, by="theory")
    assert found.brokers["utilisation"].max() == pytest.approx(0.6)
    with pytest.raises(InvalidInputError, match="the load is 1"):
        RealPlan(load=1.0)
    with pytest.raises(InvalidInputError, match="factor is 0"):
        RealPlan(factor=0.0)


@pytest.fixture(scope="module")
def results():
    """As if reality were the model itself: three simulated runs stand for measured ones."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(real, "SCENARIOS", SCENARIOS[:1])
        patch.setattr(real, "calibrate", lambda bench, system, folder: None)
        patch.setattr(real, "confront", lambda bench, system, known, folder: as_if(system))
        bench = Bench(spark=None, options=TestbedOptions(duration_s=SECONDS))
        return real.measure_all(RealPlan(precision=0.05), bench, Path())


def forwarded(outcome):
    """As the servers would tell it: events that could go down an edge, and those that did."""
    arrivals = outcome.brokers.set_index("broker")["arrivals_per_s"]
    sent = outcome.links.set_index(["source", "target"])["events_per_s"]
    rows = []
    for edge, share in real.shares_down(outcome).items():
        upper, lower = edge.split("→")
        events = round(SECONDS * (arrivals[upper] - sent[lower, upper]))
        rows.append((upper, lower, events, round(share * events)))
    return pd.DataFrame(rows, columns=["source", "target", "events", "went"])


def as_if(system):
    predicted = predict(system, pairs=True, by="theory")
    runs = []
    for seed in (1, 2, 3):
        run = simulate(system, seed=seed, replications=1, duration_s=SECONDS)
        measured = replace(run, source="measured")
        compared = compare(predicted, measured)
        shares, delays = apart(measured, None, None)
        runs.append(
            Repetition(
                measured=measured,
                against_predicted=compared,
                against_simulated=compared,
                shares_apart=shares,
                delays_apart=delays,
                is_steady=True,
                duration_s=SECONDS,
                relays_late_s=0.0005,
                publishers_late_s=0.0002,
                timeline=(),
                doubts=() if seed < 3 else ("too busy",),
                subscription_spread=None,
                event_spread=None,
                forwarded=forwarded(measured),
                handled_again={},
            )
        )
    return Reality(
        fitted=system,
        load=0.37,
        predicted=predicted,
        simulated=simulate(system, seed=9, events=20_000),
        reconnection=None,
        repetitions=tuple(runs),
        notes=(),
    )


@pytest.mark.slow
def test_all_engines_stand_beside_what_was_measured(results):
    rates = results.throughputs.pivot_table(index="broker", columns="engine", values="per_s")
    assert set(rates.columns) == {"measured", *real.ENGINES}
    stated = SCENARIOS[0].throughput_per_s
    for engine in ("operational", "prediction"):
        assert rates[engine].to_numpy() * results.plan.factor == pytest.approx(stated)
    means = results.latencies.pivot_table(index="publisher", columns="engine", values="latency_s")
    assert list(means.index) == [f"p{number}" for number in range(1, 9)]
    off = (means.div(means["prediction"], axis=0) - 1.0).abs()
    assert off[["operational", "petri net", "simulation"]].to_numpy().max() < 0.05
    assert results.latencies.query("engine == 'petri net'")["on_time"].isna().all()


@pytest.mark.slow
def test_routing_is_compared_edge_by_edge_and_run_by_run(results):
    table = results.routing
    assert len(table) == 14 * 3
    system = real_system(SCENARIOS[0], results.plan)
    assert len(route(system).arcs) == 28
    for row in table.itertuples():
        broker = int(row.edge.rpartition("b")[2])
        assert row.predicted == pytest.approx(SCENARIOS[0].down(broker))
    off = table["off"]
    assert off.abs().max() < 4.5
    assert 0.5 < off.std() < 1.5  # neither too small nor too large a standard error


@pytest.mark.slow
def test_the_study_shows_both_tables_and_doubts_what_is_doubtful(results, monkeypatch):
    monkeypatch.setattr(real, "SCENARIOS", SCENARIOS[:1])
    study = real.real_study(TEXTS, results)
    page = render_study(study)
    assert "Table 1: broker throughput in events/s, scenario 1" in page
    assert "Table 2: delivery latency in ms to a subscriber at leaf 8, scenario 1" in page
    assert "Share within 90 ms" in page
    latency = [each for each in study.findings if "Mean latencies" in each.says]
    assert [each.holds for each in latency] == [True, True, True, None]
    assert "2 of 3 runs" in latency[0].case
    assert ["NOT RELIABLE" in each.found for each in latency] == [False, False, False, True]
