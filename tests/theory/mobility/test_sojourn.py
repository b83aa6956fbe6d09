from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.sparse import linalg

from tidings.errors import UnstableError
from tidings.model.laws import (
    Deterministic,
    Exponential,
    Gamma,
    HyperExponential,
    LogNormal,
    PhaseType,
)
from tidings.theory.mobility.arrivals import PoissonArrivals
from tidings.theory.mobility.centre import (
    OnOff,
    exponential_centre,
    mean_response_s,
    published_response_s,
)
from tidings.theory.mobility.completion import absence_stage, completion
from tidings.theory.mobility.periods import low_load_response_s, period_chain, regularity
from tidings.theory.mobility.sojourn import (
    fitted_sojourn_stage,
    phase_type_sojourn,
    sojourn_law,
    sojourn_stage,
)
from tidings.theory.path_laws import Workshop, path_law
from tidings.theory.queues import mean_wait_s, whole_law
from tidings.theory.stages import in_series

POINTS = np.linspace(0.04, 0.99, 20)  # of the law, where distributions are compared


def queue_with_breakdowns_mean_s(service_s, on_s, off_s, rate):
    """E[N]/λ from the stationary chain on (level, up or down), by its matrix-geometric form.

    In rational numbers: near saturation, rounding would grow beyond what is compared.
    """
    served, leaves, back = (1 / Fraction(each) for each in (service_s, on_s, off_s))
    one, rate = np.array([[Fraction(1), Fraction(0)], [Fraction(0), Fraction(1)]]), Fraction(rate)
    up = rate * one
    down = served * np.diag([1, 0])
    periods = np.array([[-leaves, leaves], [back, -back]])
    local = periods - up - down
    # A departure happens while up only, so G = [1, 0] in both rows, and R follows from it.
    first_passage = np.array([[1, 0], [1, 0]])
    climbs = up @ inverse(-(local + up @ first_passage))
    assert not (up + climbs @ local + climbs @ climbs @ down).any()
    above = inverse(one - climbs)
    balance = periods - up + climbs @ down
    balance[:, 0] = above.sum(axis=1)
    empty = inverse(balance)[0]
    return float((empty @ climbs @ above @ above).sum() / rate)


def inverse(matrix):
    (a, b), (c, d) = matrix
    return np.array([[d, -b], [-c, a]]) / (a * d - b * c)


@pytest.mark.parametrize("load", [0.01, 0.3, 0.7, 0.95])
@pytest.mark.parametrize(
    ("service_s", "on_s", "off_s"),
    [(0.125, 20.0, 20.0), (0.0625, 109.0, 121.5), (1.0, 1.0, 1.0), (2.0, 0.5, 3.0)],
)
def test_the_theorem_is_the_exact_queue_with_breakdowns(service_s, on_s, off_s, load):
    rate = load / (service_s * (on_s + off_s) / on_s)
    exact = queue_with_breakdowns_mean_s(service_s, on_s, off_s, rate)
    published = published_response_s(rate, service_s=service_s, on_s=on_s, off_s=off_s)
    assert published == pytest.approx(exact, rel=1e-12)


@settings(deadline=None, max_examples=80)
@given(
    service_s=st.floats(1e-4, 1e2),
    on_s=st.floats(1e-2, 1e4),
    off_s=st.floats(1e-2, 1e4),
    load=st.floats(1e-6, 0.99),
)
def test_mean_of_the_whole_law_is_the_theorem(service_s, on_s, off_s, load):
    centre = exponential_centre(service_s, on_s, off_s)
    rate = load * centre.most_per_s
    law = sojourn_law(centre, rate)
    published = published_response_s(rate, service_s=service_s, on_s=on_s, off_s=off_s)
    assert law.mean_s == pytest.approx(published, rel=1e-12)
    # its transform is T*(z) = (C/g)(z + g)/(z² + (μ + g − λ)z + C)
    g, z = 1 / on_s + 1 / off_s, 0.7 / published
    c = g / (service_s * centre.slowdown) * (1 - load)
    exact = c / g * (z + g) / (z**2 + (1 / service_s + g - rate) * z + c)
    assert law.transform(z).real == pytest.approx(exact, rel=1e-11)


@pytest.mark.parametrize("load", [0.1, 0.6, 0.9])
def test_three_ways_to_the_law_agree(load):
    centre = exponential_centre(0.5, 3.0, 2.0)
    rate = load * centre.most_per_s
    closed = sojourn_law(centre, rate)
    t = closed.quantile(POINTS)
    assert phase_type_sojourn(centre, rate, regularity(centre)).cdf(t) == pytest.approx(
        closed.cdf(t), abs=1e-12
    )
    parts = in_series(absence_stage(centre), whole_law(rate, completion(centre)))
    decomposed = path_law(parts, Workshop())
    assert decomposed.cdf(t).value == pytest.approx(closed.cdf(t), abs=1e-12)
    assert decomposed.mean_s == pytest.approx(closed.mean_s, rel=1e-12)


CENTRES = {
    "exponential": (exponential_centre(0.25, 2.0, 1.0), 0.6),
    "constant service": (
        OnOff(
            service=Deterministic(value_s=0.25),
            on=Exponential(mean_s=2.0),
            off=Exponential(mean_s=1.0),
        ),
        0.7,
    ),
    "any OFF": (
        OnOff(
            service=Gamma(mean_s=0.25, shape=1.5),
            on=Exponential(mean_s=2.0),
            off=LogNormal(mean_s=1.0, scv=0.9),
        ),
        0.6,
    ),
    "constant OFF": (
        OnOff(
            service=Exponential(mean_s=0.25),
            on=Exponential(mean_s=2.0),
            off=Deterministic(value_s=1.0),
        ),
        0.6,
    ),
    "phases": (
        OnOff(
            service=Gamma(mean_s=0.25, shape=2),
            on=Gamma(mean_s=2.0, shape=3),
            off=HyperExponential(weights=(0.7, 0.3), means_s=(0.4, 2.0)),
        ),
        0.7,
    ),
}


@pytest.mark.statistical
@pytest.mark.parametrize("name", CENTRES)
def test_simulated_distribution_agrees_at_twenty_points(name, naive):
    centre, load = CENTRES[name]
    rate = load * centre.most_per_s
    law = path_law(sojourn_stage(centre, rate), Workshop())
    sample = [
        np.sort(naive.sojourns(rng, centre, rate, until_s=40_000.0, warmup_s=300.0))
        for rng in np.random.default_rng(20261).spawn(30)
    ]
    t = np.quantile(sample[0], POINTS) + 1e-9  # where to look, steps safely passed
    runs = [np.searchsorted(found, t, side="right") / found.size for found in sample]
    noise = np.std(runs, axis=0, ddof=1) / math.sqrt(len(runs))
    assert noise.max() <= 0.002  # sharp enough to notice a wrong formula
    difference = np.mean(runs, axis=0) - law.cdf(t).value
    assert np.all(np.abs(difference) <= 4.5 * noise + 1e-6)


def test_phases_give_the_mean_of_the_whole_chain():
    centre, load = CENTRES["phases"]
    rate = load * centre.most_per_s
    exact = _mean_of_a_long_chain_s(rate, levels=250)
    assert phase_type_sojourn(centre, rate, regularity(centre)).mean_s == pytest.approx(
        exact, rel=1e-11
    )


def _mean_of_a_long_chain_s(rate, levels):
    """E[N]/λ of the centre "phases", written out state by state up to so many events."""
    states = [(0, period, 0) for period in range(5)]
    states += itertools.product(range(1, levels + 1), range(5), range(2))
    place = {state: index for index, state in enumerate(states)}
    chain = sparse.lil_array((len(states), len(states)))
    next_period = {0: {1: 1.5}, 1: {2: 1.5}, 2: {3: 1.05, 4: 0.45}, 3: {0: 2.5}, 4: {0: 0.5}}
    for count, period, stage in states:
        moves = {(count, other, stage): r for other, r in next_period[period].items()}
        if count < levels:
            moves[count + 1, period, stage] = rate
        if count > 0 and period < 3:
            moves[(count, period, 1) if stage == 0 else (count - 1, period, 0)] = 8.0
        own = place[count, period, stage]
        for state, per_s in moves.items():
            chain[own, place[state]] += per_s
            chain[own, own] -= per_s
    balance = chain.T.tolil()
    balance[0, :] = 1.0
    wanted = np.zeros(len(states))
    wanted[0] = 1.0
    shares = linalg.spsolve(balance.tocsc(), wanted)
    return shares @ np.array([state[0] for state in states]) / rate


@pytest.mark.parametrize("name", [each for each in CENTRES if each != "phases"])
def test_mean_of_every_stage_with_memoryless_on_is_the_closed_form(name):
    centre, load = CENTRES[name]
    rate = load * centre.most_per_s
    exact = mean_response_s(centre, rate)
    assert sojourn_stage(centre, rate).mean_s == pytest.approx(exact, rel=1e-12)


def test_few_events_wait_for_the_second_moment_of_off():
    centre, _ = CENTRES["phases"]
    # Services are short against ON, so that hardly any is interrupted by more than the mean says.
    brief = OnOff(service=Exponential(mean_s=1e-5), on=centre.on, off=centre.off)
    found = phase_type_sojourn(brief, 1e-6, regularity(brief)).mean_s
    assert found == pytest.approx(low_load_response_s(brief), rel=1e-4)


def test_few_events_wait_for_half_of_a_constant_absence():
    """No phases are as regular as a constant; a lattice of time is."""
    centre = OnOff(
        service=Exponential(mean_s=1e-5),
        on=Gamma(mean_s=4.0, shape=2),
        off=Deterministic(value_s=2.0),
    )
    exact_s = centre.away * 1.0 + centre.demand_s
    assert low_load_response_s(centre) == pytest.approx(exact_s, rel=1e-12)
    # Long ON periods leave the lattice 32 steps per mean ON: an error of 1/32² of it.
    assert sojourn_stage(centre, 1e-6).mean_s == pytest.approx(exact_s, rel=1e-3)


REGULAR = {
    "constant OFF": (Exponential(mean_s=0.25), Gamma(mean_s=4.0, shape=2)),
    "constant ON and OFF": (Exponential(mean_s=0.25), Deterministic(value_s=4.0)),
    "all constant": (Deterministic(value_s=0.25), Deterministic(value_s=4.0)),
}


@pytest.mark.statistical
@pytest.mark.parametrize("name", REGULAR)
def test_periods_more_regular_than_phases_have_their_mean_response(name, naive):
    service, on = REGULAR[name]
    centre = OnOff(service=service, on=on, off=Deterministic(value_s=2.0))
    rate = 0.6 * centre.most_per_s
    runs = [
        naive.sojourns(rng, centre, rate, until_s=30_000.0, warmup_s=300.0).mean()
        for rng in np.random.default_rng(5).spawn(20)
    ]
    truth, noise = np.mean(runs), np.std(runs, ddof=1) / math.sqrt(len(runs))
    assert noise < 0.005 * truth  # 24 phases alone are 2 to 4 % off
    found = sojourn_stage(centre, rate).mean_s
    assert found == pytest.approx(truth, abs=4.0 * noise)


def test_the_shape_of_on_matters_under_load():
    regular, _ = CENTRES["phases"]
    memoryless = OnOff(service=regular.service, on=Exponential(mean_s=2.0), off=regular.off)
    rate = 0.8 * regular.most_per_s
    assert phase_type_sojourn(regular, rate, regularity(regular)).mean_s < 0.98 * mean_response_s(
        memoryless, rate
    )


@pytest.mark.parametrize("scv", [1 / 24, 0.1, 0.37, 0.5, 0.999, 1.0, 3.0])
def test_periods_without_phases_keep_two_moments(scv):
    law = LogNormal(mean_s=3.0, scv=scv)
    initial, generator = period_chain(law, scv)
    chain = PhaseType(initial=tuple(initial), generator=tuple(map(tuple, generator)))
    assert chain.mean_s == pytest.approx(law.mean_s, rel=1e-12)
    assert chain.scv == pytest.approx(scv, rel=1e-9)


def test_completion_by_phases_and_by_transform_are_one_law():
    centre = OnOff(
        service=Gamma(mean_s=0.5, shape=2),
        on=Exponential(mean_s=2.0),
        off=HyperExponential(weights=(0.7, 0.3), means_s=(0.4, 2.0)),
    )
    chained = completion(centre)
    assert isinstance(chained, PhaseType)
    assert chained.mean_s == pytest.approx(centre.demand_s, rel=1e-13)
    square = chained.mean_s**2 * (1 + chained.scv)
    assert square == pytest.approx(centre.demand_square_s2, rel=1e-12)
    z = np.array([0.3, 1.0 + 2.0j])
    slowed = z + (1 - centre.off.transform(z)) / 2.0
    assert chained.transform(z) == pytest.approx(centre.service.transform(slowed), rel=1e-12)


def test_completion_by_transform_knows_its_law():
    centre, _ = CENTRES["constant service"]
    law = completion(centre)
    draws = np.sort(law.sample(np.random.default_rng(3), 200_000))
    t = np.array([0.2, 0.25, 0.5, 1.0, 3.0])
    found = np.searchsorted(draws, t, side="right") / draws.size
    assert law.cdf(t) == pytest.approx(found, abs=0.0045)  # four standard errors
    assert law.cdf(0.25) == pytest.approx(math.exp(-0.125), abs=1e-12)
    assert law.quantile(0.97) == pytest.approx(np.quantile(draws, 0.97), rel=0.02)
    assert law.scaled(2.0).cdf(2 * t) == pytest.approx(law.cdf(t), abs=1e-9)


def test_overload_is_said_and_loses_all():
    centre = exponential_centre(0.125, 20.0, 20.0)
    with pytest.raises(UnstableError, match="from 4/s on it never catches up"):
        sojourn_law(centre, 4.0)
    with pytest.raises(UnstableError):
        phase_type_sojourn(centre, 5.0, regularity(centre))
    assert sojourn_stage(centre, 4.0).lost == {"overload": 1.0}


def test_a_fitted_wait_of_the_poisson_mean_keeps_the_mean_response():
    centre, load = CENTRES["any OFF"]
    rate = load * centre.most_per_s
    wait = PoissonArrivals(rate_per_s=rate).completion_wait(centre)
    assert wait.mean_s == pytest.approx(mean_wait_s(rate, completion(centre)), rel=1e-12)
    stage = fitted_sojourn_stage(centre, wait)
    assert stage.mean_s == pytest.approx(mean_response_s(centre, rate), rel=1e-4)
