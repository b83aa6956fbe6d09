"""When reality agrees with its prediction: shares and waits, in errors of whole runs, if believed.

No servers here: runs are stated, so that every verdict is known beforehand.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from tidings.model.outcome import Outcome, table
from tidings.model.reading import loads
from tidings.prediction.predict import predict
from tidings.reporting.study_page import render_study
from tidings.simulation.run import simulate
from tidings.testbed.comparing import errors_by_calibration
from tidings.testbed.reality import RUNS_ALIKE, Apart, Reality, Repetition, apart
from tidings.testbed.reality_study import first_text, reality_study
from tidings.validation.comparison import compare

SYSTEM = """
tidings: 1
lifetime: 1s
brokers: {a: {service: {exponential: 10ms}}, b: {service: {exponential: 10ms}}}
links: [{between: [a, b], delay: 5ms}]
publishers: {p: {at: a, every: {rate: 20/s}, content: [{p: 1, event: {topic: x}}]}}
subscribers:
  near: {at: a, wants: {}}
  far: {at: b, wants: {}, link: {delay: 4ms}}
"""
ERRORS = "standard_errors: {brokers.a.service: 0.0002, brokers.b.service: 0.0002}\n"


def stated(source, on_time, delay_s, **errors):
    columns = {
        "subscriber": ["s"], "broker": ["b"], "count": [1.0], "wanted_per_s": [10.0],
        "events": [600.0], "on_time": [on_time], "delivered": [on_time], "late": [0.0],
        "lost_unexplained": [1.0 - on_time], "delay_mean_s": [delay_s],
        **{name: [value] for name, value in errors.items()},
    }  # fmt: skip
    return Outcome(source=source, subscribers=table("subscribers", columns))


PREDICTED = stated("predicted", 0.8, 0.30)
# One run in 200 varies by 0.05 (shares) and 80 ms (delays).
SIMULATED = stated(
    "simulated", 0.8, 0.30,
    on_time_se=0.05 / math.sqrt(RUNS_ALIKE), delay_mean_se_s=0.08 / math.sqrt(RUNS_ALIKE),
)  # fmt: skip


def repetition(on_time=0.8, delay_s=0.30, *, doubts=(), unsure=None, is_steady=False):
    measured = stated("measured", on_time, delay_s)
    shares, delays = apart(measured, SIMULATED, unsure)
    return Repetition(
        measured=measured,
        against_predicted=compare(PREDICTED, measured),
        against_simulated=compare(SIMULATED, measured),
        shares_apart=shares,
        delays_apart=delays,
        is_steady=is_steady,
        duration_s=60.0,
        relays_late_s=0.0002,
        publishers_late_s=0.0001,
        timeline=(),
        doubts=doubts,
        subscription_spread=None,
        event_spread=None,
        forwarded=pd.DataFrame(columns=["source", "target", "events", "went"]),
        handled_again={},
    )


def reality(*runs, doubts=()):
    return Reality(
        fitted=loads(SYSTEM), load=0.2, predicted=PREDICTED, simulated=SIMULATED,
        reconnection=None, repetitions=runs, notes=(), doubts=doubts,
    )  # fmt: skip


def test_a_run_is_held_to_its_waits_as_to_its_shares():
    late = repetition(delay_s=0.30 + 3.1 * 0.08)
    assert late.most_share_errors == 0.0
    assert late.most_delay_errors == pytest.approx(3.1)
    assert late.agrees is False
    assert repetition(delay_s=0.30 + 2.9 * 0.08).agrees is True
    assert repetition(on_time=0.8 - 3.1 * 0.05).agrees is False
    assert repetition(on_time=0.8 + 2.9 * 0.05).agrees is True


def test_a_steady_system_is_held_to_shares_and_to_delays():
    """0.02 and 5 % of what was measured; each by itself decides."""
    for on_time, delay_s, agrees in (
        (0.8 - 0.0199, 0.30 / 1.049, True),
        (0.8 - 0.0201, 0.30, False),
        (0.8, 0.30 / 1.051, False),
        (0.8, 0.30 / 0.949, False),
    ):
        one = repetition(on_time, delay_s, is_steady=True)
        assert one.agrees is agrees
        assert reality(one).agrees is agrees
    # Apart each is outside, together they are within.
    runs = [repetition(delay_s=delay_s, is_steady=True) for delay_s in (0.25, 0.35)]
    assert [each.agrees for each in runs] == [False, False]
    assert reality(*runs).agrees is True


def test_one_subscriber_beyond_chance_is_told_though_the_means_agree():
    sharp = stated("simulated", 0.8, 0.30, on_time_se=1e-4, delay_mean_se_s=1e-4)
    measured = stated("measured", 0.79, 0.30)
    shares, delays = apart(measured, sharp, None)
    one = replace(repetition(0.79, is_steady=True), shares_apart=shares, delays_apart=delays)
    found = reality(one, one)
    assert found.agrees is True
    assert found.beyond_chance == {"s": pytest.approx(0.01 / 1e-4 / math.sqrt(RUNS_ALIKE / 2))}
    told = reality_study(found, "x").findings[0].found
    assert "largest 0.0100" in told
    assert "the means agree, yet beyond chance, in standard errors of the runs: s (10.0)" in told
    calm = reality(repetition(0.79, is_steady=True), repetition(0.79, is_steady=True))
    assert calm.beyond_chance == {}
    assert "beyond chance" not in reality_study(calm, "x").findings[0].found


def test_largest_errors_are_of_all_runs_together():
    found = reality(repetition(0.7, 0.25), repetition(0.86, 0.40))
    assert found.largest_share_error == pytest.approx(0.02)
    assert found.largest_latency_error == pytest.approx(0.025 / 0.325)


def test_the_run_that_is_shown_is_named_and_has_the_errors_of_whole_runs():
    found = reality(repetition(0.1, doubts=("too busy",)), repetition(0.75), repetition())
    number, shown = found.first
    assert (number, shown.provenance["run"]) == (2, 2)
    assert shown.subscribers["on_time"].item() == 0.75
    assert shown.subscribers["on_time_se"].item() == pytest.approx(0.05)
    assert shown.subscribers["delay_mean_se_s"].item() == pytest.approx(0.08)
    assert "run 2 of 3, the first reliable one" in first_text(found)
    steady = reality(repetition(is_steady=True))
    number, shown = steady.first
    assert (number, shown.provenance["run"]) == (1, 1)
    assert shown.subscribers is steady.repetitions[0].measured.subscribers


def test_runs_together_are_held_to_smaller_errors():
    runs = [repetition(delay_s=0.30 + 2.0 * 0.08)] * 3
    assert [each.agrees for each in runs] == [True] * 3
    together = reality(*runs)
    assert together.most_delay_errors == pytest.approx(2.0 * math.sqrt(3.0))
    assert together.agrees is False
    mixed = reality(repetition(delay_s=0.30 + 2.0 * 0.08), repetition(delay_s=0.30 - 2.0 * 0.08))
    assert mixed.agrees is True


def test_what_was_calibrated_badly_is_not_averaged_out_by_more_runs():
    unsure = pd.DataFrame({"on_time": [0.0], "delay_mean_s": [0.06]}, index=["s"])
    runs = [repetition(delay_s=0.30 + 0.2, unsure=unsure)] * 4
    assert runs[0].most_delay_errors == pytest.approx(0.2 / 0.1)  # √(80² + 60²) = 100
    assert reality(*runs).most_delay_errors == pytest.approx(0.2 / math.hypot(0.04, 0.06))
    assert reality(*[repetition(delay_s=0.50)] * 4).most_delay_errors == pytest.approx(5.0)


def test_runs_that_are_not_believed_count_in_no_verdict():
    busy = repetition(on_time=0.1, delay_s=3.0, doubts=("too busy",))
    assert busy.agrees is None
    found = reality(busy, repetition(), repetition())
    assert found.agrees is True
    assert found.share_error == pytest.approx(0.0)
    assert found.counted == found.trusted == found.repetitions[1:]
    page = render_study(reality_study(found, "x"))
    assert "2 of 3 runs, the others not reliable" in page
    wrong = reality(repetition(), repetition(on_time=0.1), repetition(doubts=("too busy",)))
    assert wrong.agrees is False


def test_what_several_runs_were_late_for_is_told_once_with_their_names():
    late = "relays were late by {} ms (99th percentile), more than 5% of 8 ms, so what?"
    runs = [repetition(doubts=(late.format(each),)) for each in (1, 2)]
    found = reality(*runs, doubts=("repairs: gone, all", f"calibration: {late.format(3)}"))
    assert found.all_doubts == (
        "repairs: gone, all",
        "calibration: relays were late by 3 ms; run 1: relays were late by 1 ms; "
        "run 2: relays were late by 2 ms (99th percentile), more than 5% of 8 ms, so what?",
    )


@pytest.mark.parametrize("doubts", [("calibration: too busy",), ()])
def test_where_nothing_can_be_believed_there_is_no_verdict(doubts):
    run = repetition(doubts=() if doubts else ("too busy",))
    found = reality(run, run, doubts=doubts)
    assert found.agrees is None
    assert found.counted == found.repetitions  # numbers are shown all the same
    study = reality_study(found, "x")
    assert study.findings[0].holds is None
    assert (
        "the calibration, or every run, is not reliable on this machine now"
        in study.findings[0].found
    )
    assert "too busy" in study.findings[0].found


def test_the_page_says_what_was_lost_why_and_knows_no_nan():
    silent = replace(repetition(), measured=stated("measured", 0.0, math.nan))
    page = render_study(reality_study(reality(silent, repetition(on_time=0.7)), "x"))
    assert "nan" not in page.replace("tenant", "")
    assert "lost; the traces do not show why" in page
    assert "0.650 ± " in page  # lost: 1.0 and 0.3
    full = replace(PREDICTED, subscribers=PREDICTED.subscribers.assign(lost_overflow=0.2))
    lost = reality_study(replace(reality(repetition()), predicted=full), "x").sections[2]
    assert lost.exhibits[0].rows == (
        ("s", "dropped because a buffer was full", "–", "0.200", "0.000"),
        ("s", "lost; the traces do not show why", "0.200", "0.200", "0.200"),
    )
    nothing = reality(silent)
    assert "–" in {row[1] for row in reality_study(nothing, "x").sections[1].exhibits[2].rows}


def test_waits_that_nobody_had_are_not_held_against_a_run():
    measured = stated("measured", 0.8, math.nan)
    one = replace(repetition(), against_predicted=compare(PREDICTED, measured))
    assert math.isnan(one.most_delay_errors)
    assert one.agrees is True


def test_without_a_simulator_errors_are_of_stretches_of_the_run_itself():
    measured = stated("measured", 0.7, 0.4, on_time_se=0.03, delay_mean_se_s=0.02)
    shares, delays = apart(measured, None, None)
    assert (float(shares.of_run["s"]), float(delays.of_run["s"])) == (0.03, 0.02)


def test_what_timers_cannot_tell_apart_does_not_differ():
    zero = pd.Series([0.0])
    sure = Apart(of_run=zero, of_prediction=zero, least=1e-4)
    assert sure.in_standard_errors(pd.Series([0.9e-4])).item() == 0.0
    assert sure.in_standard_errors(pd.Series([4e-4])).item() == pytest.approx(4.0)


def test_services_fitted_together_are_wrong_together():
    system = loads(SYSTEM + ERRORS)
    found = errors_by_calibration(system)["delay_mean_s"]
    low, high = (
        predict(loads(SYSTEM.replace("10ms", each)), delays=False, by="theory").subscribers[
            "delay_mean_s"
        ]
        for each in ("9.8ms", "10.2ms")
    )
    assert found.to_numpy() == pytest.approx(((high - low) / 2.0).to_numpy(), rel=1e-6)
    assert found["far"] == pytest.approx(2.0 * found["near"], rel=1e-3)
    apart_ = loads(
        (SYSTEM + ERRORS).replace("b: {service: {exponential: 10ms}}", "b: {service: 10ms}")
    )
    alone = errors_by_calibration(apart_)["delay_mean_s"]
    assert alone["near"] == pytest.approx(found["near"])
    assert alone["far"] < 1.7 * alone["near"]  # two errors of their own add up as squares


def test_errors_of_subscribers_links_concern_themselves_alone():
    errors = "standard_errors: {subscribers.far.link.delay: 0.0005}\n"
    found = errors_by_calibration(loads(SYSTEM + errors))["delay_mean_s"]
    assert found["far"] == pytest.approx(0.0005, rel=1e-6)
    assert found["near"] == 0.0


@pytest.mark.slow
@pytest.mark.statistical
def test_mean_delays_of_runs_vary_as_much_as_simulation_says():
    """Clusters count: runs of a peer that is away for long vary far more than its events do."""
    roams = SYSTEM.replace(
        "wants: {}, link: {delay: 4ms}",
        "wants: {}, connectivity: {on: {exponential: 1s}, off: {exponential: 500ms}}",
    )
    system = loads(roams)
    told = simulate(system, seed=3, replications=RUNS_ALIKE, duration_s=20.0, warmup_s=2.0)
    _, delays = apart(told, told, None)
    runs = [
        simulate(system, seed=seed, replications=1, duration_s=20.0, warmup_s=2.0).subscribers
        for seed in range(100, 160)
    ]
    means = np.array([run.set_index("subscriber")["delay_mean_s"]["far"] for run in runs])
    spread = float(np.std(means, ddof=1))
    assert delays.of_run["far"] == pytest.approx(spread, rel=5.0 / math.sqrt(2 * len(runs)))
    of_events = float(runs[0].set_index("subscriber")["delay_mean_s"]["far"]) / math.sqrt(400)
    assert delays.of_run["far"] > 3.0 * of_events
