"""A prediction from a calibration run beside reality: what goes into it, and what does not."""

from __future__ import annotations

import json

import pytest

from tidings.errors import UnstableError
from tidings.model.reading import loads
from tidings.testbed.comparing import Bench, calibrate, confront, scaled_rates, with_measured
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


def test_an_overloaded_system_is_not_compared(tmp_path):
    bench = Bench(spark=None, options=TestbedOptions())
    with pytest.raises(UnstableError, match=r"load of 1"):
        calibrate(bench, loads(PAIR.replace("20/s", "300/s")), tmp_path)


@pytest.mark.spark
@pytest.mark.slow
def test_the_whole_comparison_leaves_everything_to_look_at(spark, tmp_path):
    options, system = TestbedOptions(duration_s=3.0, warmup_s=0.5), loads(PAIR)
    bench = Bench(spark=spark, options=options, repetitions=1)
    known = calibrate(bench, system, tmp_path / "calibration")
    found = confront(bench, system, known, tmp_path)
    calibration, run = (
        json.loads((tmp_path / name / "traces.json").read_text(encoding="utf-8"))
        for name in ("calibration", "run-1")
    )
    assert calibration["seed"] != run["seed"]
    assert found.fitted.publishers[0].rate_per_s == pytest.approx(20.0)
    services = {each.name: each.service.law.mean_s for each in found.fitted.brokers}
    assert services["a"] != 0.006  # measured, not told
    assert found.load == pytest.approx(20.0 * max(services.values()))
    (one,) = found.repetitions
    assert one.against_predicted.summary.compared == 1
    assert one.latency_error > 0.0
    assert one.measured.source == "measured"
