from __future__ import annotations

import math

import pytest

from studies import mobile_onoff
from studies.harness import silent
from studies.mobile_onoff import Real, antennas, findings, simulating, study, work_out
from studies.mobile_onoff.centre import exponential_centre, published_response_s
from studies.mobile_onoff.scenarios import (
    SERVICE_S,
    TABLE_3,
    scenario_system,
)
from studies.mobile_onoff.simulating import (
    Effort,
    respond,
    respond_at_centre,
    respond_to_rates,
)
from studies.mobile_onoff.varying import varying_response
from tidings.prediction.predict import predict


def algorithm_1_s(scenario, plain_centres):
    """The paper's composition, centre by centre."""
    rate = scenario.rate_per_s
    peers = (scenario.publisher, scenario.subscriber)
    total = sum(
        published_response_s(rate, service_s=SERVICE_S, on_s=on_s, off_s=off_s)
        for on_s, off_s in peers
    )
    plain = published_response_s(rate, service_s=SERVICE_S, on_s=1.0, off_s=0.0)
    return total + plain_centres * plain


@pytest.mark.parametrize("scenario", TABLE_3, ids=lambda scenario: scenario.name)
@pytest.mark.parametrize("count", [4, 6])
def test_predicting_the_system_is_the_papers_composition(scenario, count):
    outcome = predict(scenario_system(scenario, count), model="mm1", delays=False, by="theory")
    found = outcome.subscribers["delay_mean_s"][0]
    assert found == pytest.approx(algorithm_1_s(scenario, count), rel=1e-12)
    assert outcome.delivered == 1.0


@pytest.mark.parametrize(("row", "paper_s"), [(0, 116.76), (1, 43.7)])
def test_metro_rows_come_out_with_four_centres(row, paper_s):
    assert algorithm_1_s(TABLE_3[row], 4) == pytest.approx(paper_s, rel=1e-3)


def test_which_rows_cannot_come_out():
    far = {
        scenario.name: algorithm_1_s(scenario, 4) / scenario.paper_analytic_s - 1.0
        for scenario in TABLE_3
    }
    assert far["voluntary"] > 15
    assert far["subscriber alone"] > 20
    assert abs(far["voluntary, .1/s"] + 0.0172) < 5e-4
    assert abs(far["degraded network"] - 0.0114) < 5e-4


@pytest.fixture(scope="module")
def results():
    few = [each for each in TABLE_3 if each.name in ("metro, evening", "degraded network")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mobile_onoff, "TABLE_3", few)
        patch.setattr(mobile_onoff, "CENTRE_COUNTS", (4,))
        patch.setattr(antennas, "DAYS", 1)
        return work_out(Effort(runs=0), Real(), silent)


def test_response_grows_with_the_rate_and_ends_at_saturation(results):
    for case, rows in results.by_rate.groupby("case"):
        assert rows["response_s"].is_monotonic_increasing, case
        assert rows["load"].max() < 1.0
        assert (rows["p95_s"] > rows["median_s"]).all()
    equal = results.by_rate[results.by_rate["case"].str.startswith("T_ON")]
    assert equal["rate_per_s"].max() == 3.9  # 4 events/s saturate


def test_findings_say_what_holds_and_what_does_not(results):
    found = {(each.case, each.says[:8]): each for each in findings(results.end_to_end)}
    assert found["metro, evening", "The resp"].holds
    assert not found["degraded network", "The resp"].holds
    assert not found["degraded network", "Analysis"].holds
    assert "6.2 %" in found["degraded network", "Analysis"].found


def test_nothing_is_simulated_unasked(results):
    made = study(results, Effort(runs=0), Real())
    assert made.to_document()["paper"] == "mobile-onoff"
    assert all(math.isnan(each) for each in results.end_to_end["simulated_s"])
    assert made.sections[-1].exhibits[0].rows[0][-1] == ""
    assert results.traced is None


def test_what_an_antennas_events_see_is_more_than_its_slots_do(results):
    table = results.antennas
    assert table["mean_per_s"].tolist() == pytest.approx([0.04, 0.075], rel=1e-12)
    assert (table["at_mean_s"] < table["by_slot_s"]).all()
    assert (table["by_slot_s"] < table["exact_s"]).all()


@pytest.mark.slow
@pytest.mark.statistical
def test_antennas_and_end_to_end_times_simulated_agree_with_theory():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(antennas, "DAYS", 1)
        rates = antennas.synthetic_rates(antennas.ANTENNAS[1])
    exact = varying_response(antennas.CENTRE, rates).response_s
    found = respond_to_rates(antennas.CENTRE, rates, Effort(runs=20, cycles=1000.0))
    assert found.error_s < 0.02 * exact
    assert abs(found.mean_s - exact) < 4.5 * found.error_s
    centre = exponential_centre(0.125, 20.0, 20.0)
    found = respond_at_centre(centre, 2.0, Effort(runs=20, cycles=2000.0))
    assert found.error_s < 0.02 * 20.5
    assert abs(found.mean_s - 20.5) < 4.5 * found.error_s
    degraded = next(each for each in TABLE_3 if each.name == "degraded network")
    system = scenario_system(degraded, 4)
    found = respond(system, Effort(runs=20, cycles=5000.0), cycle_s=3.0, rate_per_s=2.0, load=0.25)
    published = predict(system, model="mm1", delays=False, by="theory")
    poisson = float(published.subscribers["delay_mean_s"][0])
    assert poisson < found.mean_s - 10 * found.error_s  # the published assumption is optimistic


@pytest.mark.slow
@pytest.mark.statistical
def test_going_through_a_short_trace_in_turn_understates_delays(monkeypatch):
    monkeypatch.setattr(simulating, "TRACE_RATES_PER_S", (0.9,))
    monkeypatch.setattr(simulating, "TRACE_SERVICE_S", 0.625)
    (row,) = simulating.trace_rows(Effort(runs=40, cycles=1000.0))
    assert row["resampled_se_s"] < 0.05 * row["resampled_s"]
    assert abs(row["by_law_s"] - row["resampled_s"]) < 4 * row["resampled_se_s"]
    drawn, in_turn = row["resampled_s"], row["looped_s"]
    assert in_turn < drawn - 4 * math.hypot(row["resampled_se_s"], row["looped_se_s"])
