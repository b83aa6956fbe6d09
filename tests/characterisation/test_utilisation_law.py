from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tidings.characterisation.fit.utilisation_law import fit_services, regression

COLUMNS = ["broker", "resource", "until_ns", "interval_ns", "busy", "type", "completed"]
S = 10**9


def usage(rates, services, *, noise=0.0, seed=1, resource="cpu", background=0.0):
    """Samples of ten seconds: what was done of each type, and how busy that kept the resource."""
    rng = np.random.default_rng(seed)
    rows = []
    for at, mix in enumerate(rates, start=1):
        done = {kind: round(10 * rate) for kind, rate in mix.items()}
        busy = background + sum(done[kind] / 10 * services[kind] for kind in mix)
        busy += noise * rng.normal()
        for kind, count in done.items():
            rows.append(("hub", resource, 10 * S * at, 10 * S, busy, kind, count))
    return pd.DataFrame(rows, columns=COLUMNS)


def test_one_type_is_utilisation_over_throughput():
    rows = [
        ("hub", "cpu", 10 * S, 10 * S, 0.3, "a", 100),
        ("hub", "cpu", 30 * S, 20 * S, 0.3, "a", 200),
        ("hub", "cpu", 40 * S, 10 * S, 0.0, None, 0),
    ]
    (fit,) = fit_services(pd.DataFrame(rows, columns=COLUMNS))
    assert fit.services_s == {"a": pytest.approx(0.03, rel=1e-12)}
    assert fit.samples == 3
    assert fit.refusal == ""
    assert fit.explained == pytest.approx(1.0)


def test_several_types_are_told_apart_exactly_without_noise():
    mixes = [(10, 1, 4), (2, 8, 4), (5, 5, 1), (1, 1, 9), (7, 3, 3)]
    rates = [dict(zip("abc", mix, strict=True)) for mix in mixes]
    services = {"a": 0.01, "b": 0.05, "c": 0.002}
    (fit,) = fit_services(usage(rates, services))
    assert fit.services_s == {kind: pytest.approx(s, rel=1e-10) for kind, s in services.items()}


@pytest.mark.statistical
def test_standard_errors_are_those_of_many_repetitions():
    """Where samples scatter so little that no background load worth a word can hide."""
    services = {"a": 0.01, "b": 0.03}
    rng = np.random.default_rng(7)
    rates = [{"a": rng.uniform(5, 30), "b": rng.uniform(2, 10)} for _ in range(120)]
    fits = [fit_services(usage(rates, services, noise=0.01, seed=seed))[0] for seed in range(300)]
    assert all(fit.hidden == 0.0 for fit in fits)
    for kind, truth in services.items():
        found = np.array([fit.services_s[kind] for fit in fits])
        told = np.array([fit.services_se_s[kind] for fit in fits])
        assert found.mean() == pytest.approx(truth, abs=5 * found.std() / np.sqrt(300))
        assert told.mean() == pytest.approx(found.std(ddof=1), rel=0.2)
        assert np.mean(np.abs(found - truth) < 1.96 * told) == pytest.approx(0.95, abs=0.05)


def test_types_that_rise_and_fall_together_are_refused_by_name():
    rates = [{"a": 2 * n, "b": 3 * n} for n in range(1, 20)]
    (fit,) = fit_services(usage(rates, {"a": 0.01, "b": 0.02}))
    assert fit.services_s == {}
    assert fit.refusal.startswith("cpu of hub: the throughputs of a, b change together")
    assert "one type at a time" in fit.refusal


def test_an_answer_that_might_as_well_be_nothing_is_refused():
    rates = [{"a": 10 + n % 2, "b": 5 + (n // 2) % 2} for n in range(8)]
    (fit,) = fit_services(usage(rates, {"a": 0.02, "b": 0.0001}, noise=0.05))
    assert "the 95 % interval of the service time of" in fit.refusal


def test_a_background_load_is_told_apart_from_the_service_times():
    rng = np.random.default_rng(4)
    rates = [{"a": rng.uniform(2, 20), "b": rng.uniform(1, 8)} for _ in range(60)]
    services = {"a": 0.01, "b": 0.03}
    (fit,) = fit_services(usage(rates, services, background=0.08))
    assert fit.background == pytest.approx(0.08, rel=1e-9)
    assert fit.services_s == {kind: pytest.approx(s, rel=1e-9) for kind, s in services.items()}
    (none,) = fit_services(usage(rates, services, noise=0.01))
    assert none.background == 0.0


def test_a_background_that_cannot_be_seen_widens_the_errors_and_is_told():
    """A rate of 100 ± 0.3 per second: U = 0.3 + 100 · 2 ms is as well 100 · 5 ms."""
    rng = np.random.default_rng(11)
    steady = [{"a": rng.normal(100.0, 0.3)} for _ in range(60)]
    (fit,) = fit_services(usage(steady, {"a": 0.002}, background=0.3, noise=0.005))
    assert fit.background == 0.0
    assert fit.hidden > 0.3
    assert abs(fit.services_s["a"] - 0.002) < 1.96 * fit.services_se_s["a"]
    # Without a background but at many rates nothing is hidden, and errors are small.
    varied = [{"a": rng.uniform(20.0, 180.0)} for _ in range(60)]
    (clear,) = fit_services(usage(varied, {"a": 0.005}, noise=0.005))
    assert clear.hidden == 0.0
    assert clear.services_se_s["a"] < 1e-5
    # At one rate alone all of it may be background.
    (one,) = fit_services(usage([{"a": 100.0}] * 20, {"a": 0.005}))
    assert one.hidden == pytest.approx(0.5, rel=1e-12)
    assert one.services_se_s["a"] == pytest.approx(0.005 / 1.96, rel=1e-9)


def test_long_intervals_count_by_their_length():
    """Weighted least squares: S = Σ T X U / Σ T X², through the origin."""
    lengths, done, busy = [1, 4, 10], [10, 60, 90], [0.21, 0.28, 0.19]
    ends = np.cumsum(lengths)
    rows = [
        ("hub", "cpu", int(end) * S, length * S, used, "a", count)
        for end, length, count, used in zip(ends, lengths, done, busy, strict=True)
    ]
    (fit,) = fit_services(pd.DataFrame(rows, columns=COLUMNS))
    top = sum(count * used for count, used in zip(done, busy, strict=True))
    bottom = sum(count**2 / length for count, length in zip(done, lengths, strict=True))
    assert fit.background == 0.0
    assert fit.services_s["a"] == pytest.approx(top / bottom, rel=1e-12)


@pytest.mark.statistical
def test_background_and_services_are_right_within_their_errors():
    rng = np.random.default_rng(5)
    services = {"a": 0.01, "b": 0.03}
    rates = [{"a": rng.uniform(2, 20), "b": rng.uniform(1, 8)} for _ in range(80)]
    fits = [
        fit_services(usage(rates, services, noise=0.01, seed=seed, background=0.1))[0]
        for seed in range(100)
    ]
    off = np.array([(fit.background - 0.1) / fit.background_se for fit in fits])
    assert abs(off.mean()) < 5 / np.sqrt(100)
    assert off.std() == pytest.approx(1.0, rel=0.35)
    found = np.array([fit.services_s["b"] for fit in fits])
    assert abs(found.mean() - 0.03) < 5 * found.std() / np.sqrt(100)


def test_a_type_that_does_not_use_a_resource_takes_no_time_there():
    rng = np.random.default_rng(6)
    rates = [{"order": rng.uniform(2, 20), "quote": rng.uniform(2, 20)} for _ in range(60)]
    (fit,) = fit_services(usage(rates, {"order": 0.03, "quote": 0.0}, noise=0.01, resource="disk"))
    assert fit.refusal == ""
    assert fit.services_s["quote"] == 0.0
    assert fit.services_se_s["quote"] > 0.0
    assert abs(fit.services_s["order"] - 0.03) < 5 * fit.services_se_s["order"]
    (exact,) = fit_services(usage(rates, {"order": 0.03, "quote": 0.0}, resource="disk"))
    assert exact.services_s == {"order": pytest.approx(0.03, rel=1e-9), "quote": 0.0}
    # A little is not nothing where it can be told.
    (little,) = fit_services(usage(rates, {"order": 0.03, "quote": 0.001}, noise=0.0005))
    assert abs(little.services_s["quote"] - 0.001) < 5 * little.services_se_s["quote"]
    assert little.services_s["quote"] > 0.0


def test_too_few_samples_and_nothing_done_are_refused():
    (few,) = fit_services(usage([{"a": 1, "b": 2}, {"a": 2, "b": 1}], {"a": 0.1, "b": 0.1}))
    assert "2 samples are too few for 2 event types" in few.refusal
    idle = pd.DataFrame([("hub", "disk", S, S, 0.1, None, 0)], columns=COLUMNS)
    (nothing,) = fit_services(idle)
    assert nothing.refusal == "disk of hub: no event was completed while it was sampled"


def test_the_regression_is_that_of_least_squares():
    rng = np.random.default_rng(3)
    rates, busy = rng.random((50, 3)), rng.random(50)
    found, errors, explained = regression(rates, busy)
    assert found == pytest.approx(np.linalg.lstsq(rates, busy, rcond=None)[0], rel=1e-10)
    assert (errors > 0).all()
    assert explained < 1.0
