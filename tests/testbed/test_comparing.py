"""A prediction from a calibration run beside reality: what goes into it, and what does not."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tidings.characterisation.fit.laws import fit_law
from tidings.characterisation.fit.samples import sample_of
from tidings.errors import UnstableError
from tidings.model.reading import loads
from tidings.reporting.study_page import render_study
from tidings.testbed import calibrating, comparing
from tidings.testbed.calibrating import (
    Bench,
    calibrate,
    scaled_rates,
    steady,
    together,
    with_measured,
)
from tidings.testbed.comparing import confront
from tidings.testbed.reality_study import reality_study
from tidings.testbed.runs import TestbedOptions

PAIR = """
tidings: 1
lifetime: 80ms
brokers: {a: {service: {exponential: 6ms}}, b: {service: {exponential: 8ms}}}
links: [{between: [a, b], delay: 5ms}]
publishers:
  p: {at: a, every: {rate: 20/s}, content: [{p: 1, event: {topic: x}}], link: {delay: 1ms}}
subscribers:
  s: {at: b, wants: {}}
"""


def test_rates_are_scaled_and_nothing_else():
    system = loads(PAIR)
    slow = scaled_rates(system, 0.25)
    assert slow.publishers[0].rate_per_s == pytest.approx(5.0)
    assert slow.brokers == system.brokers
    assert scaled_rates(slow, 4.0).publishers[0].every == system.publishers[0].every


def test_a_fitted_system_gets_the_workload_and_keeps_its_own_links():
    system = loads(PAIR)
    fitted = loads(
        PAIR.replace("20/s", "7/s").replace("link: {delay: 1ms}", "link: {delay: 2ms}")
        + "standard_errors: {publishers.p.every: 0.1, publishers.p.link.delay: 0.2,"
        + " brokers.a.service: 0.3}\n"
    )
    found = with_measured(system, fitted)
    assert found.publishers[0].every == system.publishers[0].every
    assert found.publishers[0].link.delay.mean_s == 0.002
    assert dict(found.standard_errors) == {"publishers.p.link.delay": 0.2, "brokers.a.service": 0.3}


def test_what_traces_cannot_tell_of_a_subscribers_link_stays_as_stated():
    lossy = loads(
        PAIR.replace("s: {at: b, wants: {}}", "s: {at: b, wants: {}, link: {reliability: 0.8}}")
    )
    seen = "s: {at: b, wants: {}, link: {delay: 2ms}}"
    link = (
        with_measured(lossy, loads(PAIR.replace("s: {at: b, wants: {}}", seen))).subscribers[0].link
    )
    assert (link.delay.mean_s, link.reliability) == (0.002, 0.8)
    told = seen.replace("2ms", "2ms, reliability: 0.7")
    told = PAIR.replace("s: {at: b, wants: {}}", told)
    told += "standard_errors: {subscribers.s.link.reliability: 0.01}\n"
    assert with_measured(lossy, loads(told)).subscribers[0].link.reliability == 0.7


def test_brokers_stated_alike_are_fitted_together_unless_they_are_not_alike():
    same = "brokers: {a: {service: 6ms}, b: {service: 6ms}, c: {service: 6ms}, d: {service: 9ms}}"
    lines = PAIR.splitlines()
    lines[3] = same
    lines[4] = "links: [{between: [a, b]}, {between: [b, c]}, {between: [c, d]}]"
    system = loads("\n".join(lines))
    seen = {"a": [0.004, 0.006, 0.008], "b": [0.005, 0.009], "c": [0.02, 0.021], "d": [0.007, 0.01]}
    laws = {f"brokers.{name}.service": fit_law(sample_of(times)) for name, times in seen.items()}
    found = together(system, system, laws)
    mean_s = {each.name: each.service.law.mean_s for each in found.brokers}
    everything = np.mean(seen["a"] + seen["b"] + seen["c"])
    assert mean_s["a"] == mean_s["b"] == pytest.approx(everything)
    assert mean_s["c"] == 0.006  # too far from the others: as it was fitted alone
    assert mean_s["d"] == pytest.approx(np.mean(seen["d"]))
    assert set(dict(found.standard_errors)) == {f"brokers.{name}.service" for name in "abd"}


def test_an_overloaded_system_is_not_compared(tmp_path):
    bench = Bench(spark=None, options=TestbedOptions())
    with pytest.raises(UnstableError, match=r"utilisation of 1"):
        calibrate(bench, loads(PAIR.replace("20/s", "300/s")), tmp_path)


@pytest.mark.parametrize(("rate", "calm"), [("50/s", 0.15 / 0.4), ("5/s", 1.0)])
def test_nobody_publishes_faster_in_a_calibration_than_stated(tmp_path, monkeypatch, rate, calm):
    """What is run is seen where it would begin; the busier broker takes 8 ms for every event."""

    class BegunError(Exception):
        pass

    def begin(system, *_):
        raise BegunError(system.publishers[0].rate_per_s)

    monkeypatch.setattr(calibrating, "recorded", begin)
    system = loads(PAIR.replace("20/s", rate))
    with pytest.raises(BegunError) as begun:
        calibrate(Bench(spark=None, options=TestbedOptions()), system, tmp_path)
    (per_s,) = begun.value.args
    assert per_s == pytest.approx(calm * system.publishers[0].rate_per_s)


def test_a_steady_system_has_nothing_that_fails_comes_or_goes():
    restless = PAIR.replace(
        "{exponential: 8ms}}", "{exponential: 8ms}, failure: {mtbf: 2s, mttr: 1s}}"
    )
    restless = restless.replace("wants: {}", "wants: {}, stays: 3s, away: 1s")
    recovery = "recovery: {scheme: periodic, refresh: 0s}\n"
    assert steady(loads(restless + recovery)) == loads(PAIR + recovery)
    assert steady(loads(PAIR)) == loads(PAIR)


@pytest.mark.spark
@pytest.mark.slow
def test_the_whole_comparison_leaves_everything_to_look_at(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(calibrating, "_REPAIRS", 1)
    monkeypatch.setattr(comparing, "RUNS_ALIKE", 8)
    failing = "{exponential: 8ms}, failure: {up: {uniform: [500ms, 1s]}, down: 600ms}}"
    system = loads(
        PAIR.replace("{exponential: 8ms}}", failing) + "recovery: {scheme: periodic, refresh: 0s}\n"
    )
    options = TestbedOptions(duration_s=1.6, warmup_s=0.0)
    bench = Bench(spark=spark, options=options, repetitions=1)
    known = calibrate(bench, system, tmp_path / "calibration")
    found = confront(bench, system, known, tmp_path)
    calibration, run = (
        json.loads((tmp_path / name / "traces.json").read_text(encoding="utf-8"))
        for name in ("calibration", "run-1")
    )
    assert calibration["seed"] != run["seed"]
    assert "outages" not in calibration
    assert run["outages"] > 0
    assert found.fitted.publishers[0].rate_per_s == pytest.approx(20.0)
    services = {each.name: each.service.law.mean_s for each in found.fitted.brokers}
    assert services["a"] != 0.006  # measured, not told
    joined = found.reconnection
    assert joined.repairs == 1
    assert 0.0 < joined.brokers_s < 1.2
    down_s = found.fitted.brokers[1].failure.down.mean_s
    assert down_s == pytest.approx(0.6 + joined.brokers_s)
    (one,) = found.repetitions
    assert not one.is_steady
    errors = one.shares_apart.of_prediction, one.delays_apart.of_prediction
    assert all(0.0 < each["s"] < 1.0 for each in errors)  # of what was calibrated
    assert one.against_predicted.summary.compared == 1
    assert {each.component for each in one.timeline} == {"b"}
    assert one.measured.source == "measured"
    page = render_study(reality_study(found, "a pair"))
    assert "Faults over time" in page
    assert "reconnecting took" in page
    assert "Losses by cause" in page
