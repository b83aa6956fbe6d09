"""Waits of streams that share a server: closed forms, and a plain recursion."""

import math

import numpy as np
import pytest

from tidings.model.laws import (
    Deterministic,
    Exponential,
    Gamma,
    HyperExponential,
    LogNormal,
    Uniform,
    Weibull,
)
from tidings.theory.delay.delays import from_law
from tidings.theory.delay.grids import Grid
from tidings.theory.queues.marked_queues import waits
from tidings.theory.queues.renewal_streams import poisson_stream, renewal_stream

GRID = Grid.spanning(1e-6, 1e4)
BURSTY = HyperExponential(weights=(0.95, 0.05), means_s=(0.005, 1.905))


@pytest.mark.parametrize("load", [0.1, 0.5, 0.9, 0.99])
def test_poisson_arrivals_and_exponential_services_are_the_mm1_queue(load):
    service = Exponential(mean_s=0.01)
    (wait,) = waits(GRID, [poisson_stream(load / 0.01)], service)
    response = wait.series(from_law(GRID, service))
    t_s = 0.01 / (1.0 - load) * np.array([[0.1, 1.0, 5.0, 9.0]])
    assert response.at(t_s) == pytest.approx(1.0 - np.exp(-t_s * (1.0 - load) / 0.01), abs=5e-6)
    assert float(wait.mean_s[0]) == pytest.approx(0.01 * load / (1.0 - load), rel=1e-9)
    assert float(wait.atom[0]) == pytest.approx(1.0 - load)


@pytest.mark.parametrize("service", [Deterministic(value_s=1.0), Uniform(low_s=0.0, high_s=2.0)])
def test_means_are_pollaczek_and_khinchines(service):
    (wait,) = waits(GRID, [poisson_stream(0.7)], service)
    assert float(wait.mean_s[0]) == pytest.approx(0.7 * (1.0 + service.scv) / 2.0 / 0.3, rel=1e-9)


def test_a_lone_renewal_stream_is_the_gim1_queue():
    # GI/M/1: an arrival finds a busy server with σ, the root of σ = h(μ(1 − σ)).
    interval, service = Gamma(mean_s=1.0, shape=3.0), Exponential(mean_s=0.8)
    sigma = 0.5
    for _ in range(500):
        sigma = float(interval.transform(np.array([(1.0 - sigma) / 0.8])).real[0])
    (wait,) = waits(GRID, [renewal_stream(1.0, interval.scv, interval)], service)
    assert float(wait.mean_s[0]) == pytest.approx(0.8 * sigma / (1.0 - sigma), rel=1e-8)
    assert float(wait.atom[0]) == pytest.approx(1.0 - sigma, rel=1e-8)


def test_a_bursty_stream_waits_behind_itself_and_a_poisson_one_sees_the_mean():
    service = Exponential(mean_s=0.01)
    streams = [renewal_stream(10.0, BURSTY.scv, BURSTY), poisson_stream(45.0)]
    on_time = [
        float(wait.series(from_law(GRID, service)).at(np.array([0.05]))[0])
        for wait in waits(GRID, streams, service)
    ]
    # Simulated over 20 million events: .218 and .791, both within .001.
    assert on_time == pytest.approx([0.2196, 0.7921], abs=5e-4)


def _recursion(intervals, service, events, seed):
    """Waits of every stream by Lindley's recursion: mean and standard error over 20 parts."""
    rng = np.random.default_rng(seed)
    times = [np.cumsum(law.sample(rng, events)) for law in intervals]
    end = min(each[-1] for each in times)
    mark = np.concatenate([np.full(each.size, index) for index, each in enumerate(times)])
    moments = np.concatenate(times)
    order = np.argsort(moments, kind="stable")
    order = order[moments[order] <= end]
    arrivals, mark = moments[order], mark[order]
    steps = service.sample(rng, arrivals.size)[:-1] - np.diff(arrivals)
    walk = np.concatenate([[0.0], np.cumsum(steps)])
    wait = walk - np.minimum.accumulate(walk)
    answers = []
    for index in range(len(intervals)):
        parts = np.array_split(wait[mark == index], 20)
        means = np.array([part.mean() for part in parts])
        answers.append((means.mean(), means.std(ddof=1) / math.sqrt(20)))
    return answers


@pytest.mark.statistical
@pytest.mark.parametrize(
    "service", [Exponential(mean_s=0.3), Uniform(low_s=0.0, high_s=0.6)], ids=["exp", "uniform"]
)
def test_streams_of_three_kinds_wait_as_in_a_recursion(service):
    intervals = [
        HyperExponential(weights=(0.8, 0.2), means_s=(0.25, 4.0)),
        Gamma(mean_s=1.0, shape=4.0),
        Exponential(mean_s=2.0),
    ]
    streams = [renewal_stream(1.0 / law.mean_s, law.scv, law) for law in intervals]
    predicted = [float(wait.mean_s[0]) for wait in waits(GRID, streams, service)]
    simulated = _recursion(intervals, service, 400_000, seed=5)
    for ours, (mean, error) in zip(predicted, simulated, strict=True):
        assert error < 0.03 * mean
        assert ours == pytest.approx(mean, abs=4.5 * error)


def test_rates_and_variability_are_those_asked_for():
    for scv in (0.2, 0.6, 3.0, 25.0):
        stream = renewal_stream(2.0, scv)
        exits = stream.arriving.sum(axis=1)
        initial = stream.arriving[np.argmax(exits)] / exits.max()
        inverse = np.linalg.inv(-stream.silent)
        mean = float((initial @ inverse).sum())
        square = 2.0 * float((initial @ inverse @ inverse).sum())
        assert mean == pytest.approx(0.5)
        assert square / mean**2 - 1.0 == pytest.approx(scv)


@pytest.mark.parametrize(
    "law",
    [
        Weibull(scale_s=1.0, shape=0.5),
        Uniform(low_s=0.0, high_s=2.0),
        LogNormal(mean_s=1.0, scv=0.5),
    ],
    ids=["weibull", "uniform", "lognormal"],
)
@pytest.mark.parametrize("scale_s", [0.02, 1.0])
def test_laws_without_phases_keep_mean_variability_and_short_intervals(law, scale_s):
    stream = renewal_stream(1.0 / law.mean_s, law.scv, law, scale_s)
    exits = stream.arriving.sum(axis=1)
    initial = stream.arriving[np.argmax(exits)] / exits.max()
    inverse = np.linalg.inv(-stream.silent)
    mean = float((initial @ inverse).sum())
    assert mean == pytest.approx(law.mean_s)
    assert 2.0 * float((initial @ inverse @ inverse).sum()) / mean**2 - 1.0 == pytest.approx(
        law.scv
    )
    at = np.linalg.inv(np.eye(exits.size) / scale_s - stream.silent)
    exact = float(law.transform(np.array([1.0 / scale_s])).real[0])
    assert float(initial @ at @ exits) == pytest.approx(exact, rel=0.1)
