from __future__ import annotations

import math

import numpy as np
import pytest

from tidings.model.laws import Deterministic, Exponential, Gamma
from tidings.theory.mobility.backlog import backlog_sojourn
from tidings.theory.mobility.centre import OnOff
from tidings.theory.mobility.periods import regularity
from tidings.theory.mobility.sojourn import phase_type_sojourn, sojourn_stage

CONSTANT = OnOff(
    service=Deterministic(value_s=0.1),
    on=Deterministic(value_s=10.0),
    off=Deterministic(value_s=10.0),
)


@pytest.mark.parametrize(
    ("centre", "load"),
    [
        (
            OnOff(
                service=Exponential(mean_s=0.25),
                on=Gamma(mean_s=4.0, shape=8),
                off=Gamma(mean_s=2.0, shape=8),
            ),
            0.6,
        ),
        (
            OnOff(
                service=Gamma(mean_s=2.0, shape=2),
                on=Gamma(mean_s=4.0, shape=12),
                off=Exponential(mean_s=1.0),
            ),
            0.3,
        ),
    ],
)
def test_on_a_lattice_is_what_phases_say_exactly(centre, load):
    rate = load * centre.most_per_s
    exact, found = (
        phase_type_sojourn(centre, rate, regularity(centre)),
        backlog_sojourn(centre, rate),
    )
    t = exact.quantile(np.array([0.1, 0.3, 0.5, 0.8, 0.95, 0.99]))
    assert found.mean_s == pytest.approx(exact.mean_s, rel=1.5e-3)
    assert found.scv == pytest.approx(exact.scv, rel=5e-3)
    assert found.cdf(t) == pytest.approx(exact.cdf(t), abs=1e-3)


@pytest.mark.statistical
def test_constant_times_under_load_as_simulated(naive):
    rate = 0.8 * CONSTANT.most_per_s
    sample = [
        np.sort(naive.sojourns(rng, CONSTANT, rate, until_s=20_000.0, warmup_s=400.0))
        for rng in np.random.default_rng(8).spawn(20)
    ]
    means = [run.mean() for run in sample]
    noise = np.std(means, ddof=1) / math.sqrt(len(means))
    law = backlog_sojourn(CONSTANT, rate)
    assert noise < 0.003 * law.mean_s
    assert law.mean_s == pytest.approx(np.mean(means), abs=4.0 * noise + 0.002 * law.mean_s)
    t = np.quantile(sample[0], [0.05, 0.2, 0.35, 0.5, 0.65, 0.8, 0.95, 0.99]) + 1e-6
    runs = [np.searchsorted(run, t, side="right") / run.size for run in sample]
    noises = np.std(runs, axis=0, ddof=1) / math.sqrt(len(runs))
    assert noises.max() < 0.003
    assert np.all(np.abs(law.cdf(t) - np.mean(runs, axis=0)) <= 4.0 * noises + 0.004)


@pytest.mark.parametrize(("on_s", "off_s", "service_s"), [(10.0, 10.0, 0.1), (28800, 57600, 1.0)])
def test_the_more_load_the_longer(on_s, off_s, service_s):
    on, off, service = (Deterministic(value_s=float(x)) for x in (on_s, off_s, service_s))
    centre = OnOff(service=service, on=on, off=off)
    stages = [sojourn_stage(centre, x * centre.most_per_s) for x in (0.001, 0.6, 0.9)]
    means_s = [stage.mean_s for stage in stages]
    assert means_s == sorted(means_s)
    # Few events wait for half of an absence, or for a whole one if it begins amid their service.
    interrupted = (1.0 - centre.away) * service_s / on_s
    few_s = service_s + centre.away * 0.5 * off_s + interrupted * off_s
    assert means_s[0] == pytest.approx(few_s, rel=2e-3)
    for stage in stages:
        (delay,) = stage.delays
        below = delay.cdf(np.linspace(0.0, 3.0 * (on_s + off_s), 400))
        assert delay.variance_s2 > 0.0
        assert np.all(np.diff(below) >= 0.0)


def test_times_too_different_for_a_lattice_are_left_to_phases():
    centre = OnOff(
        service=Exponential(mean_s=1.0),
        on=Deterministic(value_s=1.0),
        off=Deterministic(value_s=1e5),
    )
    rate = 0.3 * centre.most_per_s
    assert backlog_sojourn(centre, rate) is None
    exact = phase_type_sojourn(centre, rate, regularity(centre))
    assert sojourn_stage(centre, rate).mean_s == exact.mean_s
