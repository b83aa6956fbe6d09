"""Waits on a lattice: exact where times are made of atoms, else as far off as they say at most."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import optimize

from tidings.model.laws import Deterministic, Empirical, Exponential, Gamma, Uniform
from tidings.model.reading import from_document
from tidings.theory.lone_streams import LoneStream, lone_wait
from tidings.theory.path_laws import Workshop, path_law
from tidings.theory.predicting import predict
from tidings.theory.queues import whole_law
from tidings.theory.renewal_waits import renewal_wait
from tidings.theory.stage_columns import columns_in_series, stage_columns
from tidings.theory.stages import Stage, in_series, law_stage

CONSTANT = Deterministic(value_s=1.0)


def uniform_m(load, t_s):
    """U/M/1: 1 − σ e^−xt, σ by iteration."""
    sigma = 0.0
    for _ in range(5_000):
        sigma = float(Uniform(low_s=0.0, high_s=2.0).transform((1.0 - sigma) / load).real)
    return 1.0 - sigma * np.exp(-(1.0 - sigma) / load * t_s)


def constant_erlang(load, t_s):
    """D/E₂/1: W* = Π r/(r + z) · ((μ + z)/μ)², the r being roots of (μ − s)² = μ² e^−s."""
    mu = 2.0 / load
    slow = optimize.brentq(lambda s: mu - s - mu * math.exp(-0.5 * s), 1e-3, mu, xtol=1e-15)
    fast = optimize.brentq(lambda s: mu - s + mu * math.exp(-0.5 * s), mu, 2.0 * mu, xtol=1e-15)
    found = 1.0
    for one, other in ((slow, fast), (fast, slow)):
        found = found - other * (mu - one) ** 2 / (mu**2 * (other - one)) * np.exp(-one * t_s)
    return found


def poisson_uniform(load, t_s):
    """M/U/1 by the geometric sum of residual services."""
    wait = whole_law(1.0, Uniform(low_s=0.0, high_s=2.0 * load)).delays[0]
    return path_law(Stage(delays=(wait,)), Workshop()).cdf(t_s).value


def poisson_constant(load, t_s):
    """M/D/1 by Crommelin: (1 − ρ) Σ (kD − t)ᵏ/k! e^−(kD − t)."""
    found = np.zeros(t_s.shape)
    for k in range(8):
        behind_s = np.minimum(k * load - t_s, 0.0)
        term = behind_s**k / math.factorial(k) * np.exp(-behind_s)
        found += np.where(k * load <= t_s * (1.0 + 1e-12), term, 0.0)
    return (1.0 - load) * found


@pytest.mark.parametrize("load", [0.5, 0.9])
@pytest.mark.parametrize(
    ("interval", "service", "exact"),
    [
        (Uniform(low_s=0.0, high_s=2.0), Exponential(mean_s=1.0), uniform_m),
        (CONSTANT, Gamma(mean_s=1.0, shape=2.0), constant_erlang),
        (Exponential(mean_s=1.0), Uniform(low_s=0.0, high_s=2.0), poisson_uniform),
        (Exponential(mean_s=1.0), CONSTANT, poisson_constant),
    ],
)
def test_a_wait_is_no_further_off_than_it_says(interval, service, exact, load):
    found = renewal_wait(interval, 1.0, service.scaled(load))
    t_s = load * np.linspace(0.0, 6.0, 6 * 512 + 1)  # the corners of M/D/1 among them
    off = np.abs(found.wait.cdf(t_s) - exact(load, t_s)).max()
    assert off <= found.error
    assert found.error < max(100.0 * off, 1e-6)  # and yet it says something


def test_what_a_wait_can_be_off_is_told_of_whatever_crosses_it(make):
    found = lone_wait(LoneStream(interval=CONSTANT), Gamma(mean_s=0.9, shape=2.0))
    stage = in_series(law_stage(found.law, cdf_error=found.law_error), law_stage(CONSTANT))
    assert path_law(stage, Workshop()).cdf(2.0).error >= found.law_error > 1e-7
    columns = stage_columns([stage])
    assert columns_in_series(columns, columns).law_error == pytest.approx(2.0 * found.law_error)
    system = from_document(_document({"gamma": {"mean": 0.9, "shape": 2}}, 2.0))
    assert predict(system).provenance["numerical_error"] >= found.law_error


def _document(service, lifetime_s, every=1.0):
    return {
        "tidings": 1,
        "lifetime": lifetime_s,
        "brokers": {"b": {"service": service}},
        "publishers": {"p": {"at": "b", "every": every, "content": {"event": {"k": 1}}}},
        "subscribers": {"s": {"at": "b", "wants": {"k": 1}}},
    }


def two_atoms(first_s, second_s, share):
    edges_s = (first_s, first_s, second_s, second_s)
    return Empirical(edges_s=edges_s, weights=(share, 0.0, 1.0 - share))


@pytest.mark.parametrize("unit_s", [1.0, 0.1, 1.0 / 3.0, 7e-4])
def test_a_wait_of_atoms_is_exact(unit_s):
    """Steps of ±.75 with probabilities .4 and .6: W/.75 is geometric, ratio 2/3."""
    edges_s = [unit_s * each for each in (0.25, 0.25, 1.75, 1.75)]
    service = {"histogram": {"edges": edges_s, "weights": [0.6, 0, 0.4]}}
    for lifetime_s, exact in ((2.4, 5 / 9), (2.5, 19 / 27), (2.6, 19 / 27)):
        system = from_document(_document(service, unit_s * lifetime_s, every=unit_s))
        outcome = predict(system)
        assert outcome.subscribers["on_time"][0] == pytest.approx(exact, abs=1e-11)
        assert outcome.provenance["numerical_error"] < 1e-8
        assert outcome.subscribers["delay_mean_s"][0] == pytest.approx(2.35 * unit_s, rel=1e-9)


def test_a_thinned_stream_of_constants_against_lindleys_recursion():
    """Services of 6 steps, intervals of 5 each of which half are kept."""
    found = renewal_wait(Deterministic(value_s=0.5), 0.5, Deterministic(value_s=0.6))
    wait = np.zeros(400)
    wait[0] = 1.0
    for _ in range(400):
        longer = np.concatenate([np.zeros(6), wait])
        after = np.zeros(406)
        for missed in range(1, 50):
            pause = 5 * missed
            after[0] += 0.5**missed * longer[: pause + 1].sum()
            after[1 : 406 - pause] += 0.5**missed * longer[pause + 1 :]
        wait = after[:400] / after[:400].sum()
    at = np.arange(60)
    assert found.wait.cdf(0.1 * at) == pytest.approx(np.cumsum(wait)[at], abs=1e-9)


def test_atoms_that_lie_on_no_lattice_are_left_to_curves():
    assert renewal_wait(CONSTANT, 1.0, two_atoms(0.25, math.pi / 2.0, 0.6)) is None
    mixed = Empirical(edges_s=(0.0, 0.5, 1.5, 1.5), weights=(0.7, 0.0, 0.3))
    assert renewal_wait(CONSTANT, 1.0, mixed) is None
    # No atom of a service is longer than the interval: the wait has none but at 0.
    early = Empirical(edges_s=(0.5, 0.5, 1.5), weights=(0.7, 0.3))
    assert renewal_wait(CONSTANT, 1.0, early) is not None
    system = _document({"histogram": {"edges": [0, 0.5, 1.5, 1.5], "weights": [0.7, 0, 0.3]}}, 2.0)
    said = predict(from_document(system)).provenance["approximations"]
    assert any("dispersion curves" in each for each in said)
