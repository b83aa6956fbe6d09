"""One ON/OFF centre: the published theorem, any times OFF, and times ON by phases."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.sparse import linalg

from studies.mobile_onoff.centre import (
    OnOff,
    exponential_centre,
    mean_response_s,
    published_response_s,
    response_quantiles_s,
)
from studies.mobile_onoff.phased import period_phases, phased_response_s
from tidings.model.laws import (
    Deterministic,
    Exponential,
    Gamma,
    HyperExponential,
    LogNormal,
    PhaseType,
)

TIMES = st.floats(1e-3, 1e3)


def queue_with_breakdowns_mean_s(service_s, on_s, off_s, rate):
    """E[N]/λ from the stationary chain on (level, up or down), by its matrix-geometric form."""
    served, leaves, back = 1 / service_s, 1 / on_s, 1 / off_s
    up = rate * np.eye(2)
    down = np.diag([served, 0.0])
    periods = np.array([[-leaves, leaves], [back, -back]])
    local = periods - up - down
    # A departure happens while up only, so G = [1, 0] in both rows, and R follows from it.
    first_passage = np.array([[1.0, 0.0], [1.0, 0.0]])
    climbs = up @ np.linalg.inv(-(local + up @ first_passage))
    assert np.abs(up + climbs @ local + climbs @ climbs @ down).max() < 1e-9 * served
    above = np.linalg.inv(np.eye(2) - climbs)
    balance = periods - up + climbs @ down
    balance[:, 0] = above.sum(axis=1)
    empty = np.linalg.solve(balance.T, np.array([1.0, 0.0]))
    return (empty @ climbs @ above @ above).sum() / rate


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
    on, off = Exponential(mean_s=on_s), Exponential(mean_s=off_s)
    assert phased_response_s(on, off, service_s, rate) == pytest.approx(exact, rel=1e-10)


@settings(deadline=None, max_examples=60)
@given(service_s=TIMES, on_s=TIMES, off_s=TIMES, load=st.floats(0.0, 0.99))
def test_moments_of_a_completion_give_the_published_theorem(service_s, on_s, off_s, load):
    centre = exponential_centre(service_s, on_s, off_s)
    rate = load * centre.most_per_s
    published = published_response_s(rate, service_s=service_s, on_s=on_s, off_s=off_s)
    assert mean_response_s(centre, rate) == pytest.approx(published, rel=1e-12)


@pytest.mark.parametrize("rate", [0.0, 0.5, 1.9])
def test_never_away_is_a_plain_queue(rate):
    found = published_response_s(rate, service_s=0.5, on_s=3.0, off_s=0.0)
    assert found == pytest.approx(1.0 / (2.0 - rate), rel=1e-14)


def test_saturation_begins_at_the_largest_rate_and_not_before():
    centre = exponential_centre(0.125, 20.0, 20.0)
    assert centre.most_per_s == 4.0
    assert mean_response_s(centre, 4.0) == math.inf
    assert published_response_s(4.0, service_s=0.125, on_s=20.0, off_s=20.0) == math.inf
    assert mean_response_s(centre, 3.999) < math.inf
    assert centre.is_overloaded(4.0)
    assert not centre.is_overloaded(3.999)


def test_no_service_waits_for_the_peer_only():
    centre = OnOff(
        service=Deterministic(value_s=0.0),
        on=Exponential(mean_s=30.0),
        off=Deterministic(value_s=10.0),
    )
    assert mean_response_s(centre, 1e6) == pytest.approx(0.25 * 5.0, rel=1e-14)
    assert centre.most_per_s == math.inf


@pytest.mark.parametrize("load", [0.1, 0.6, 0.9])
def test_quantiles_are_those_of_two_exponential_times(load):
    """T*(z) = (C/g)(z + g)/(z² + (μ + g − λ)z + C): the closed form, split by its roots."""
    centre = exponential_centre(0.5, 3.0, 2.0)
    rate = load * centre.most_per_s
    served, both = 2.0, 1 / 3 + 1 / 2
    constant = served / 2.0 - rate * both
    slow, fast = np.sort(-np.roots([1.0, served + both - rate, constant]))
    weights = constant / both * np.array([(both - slow) / slow, (fast - both) / fast])
    weights /= fast - slow
    assert weights.sum() == pytest.approx(1.0, rel=1e-12)
    shares = (0.05, 0.5, 0.95)
    times_s = response_quantiles_s(centre, rate, shares)
    left = weights @ np.exp(-np.outer([slow, fast], times_s))
    assert 1.0 - left == pytest.approx(shares, abs=1e-5)


# ---- times ON by phases --------------------------------------------------------------------------

PHASED = OnOff(
    service=Exponential(mean_s=0.25),
    on=Gamma(mean_s=2.0, shape=3),
    off=HyperExponential(weights=(0.7, 0.3), means_s=(0.4, 2.0)),
)


def test_phases_give_the_mean_of_the_whole_chain():
    rate = 0.7 * PHASED.most_per_s
    exact = mean_of_a_long_chain_s(rate, levels=400)
    assert mean_response_s(PHASED, rate) == pytest.approx(exact, rel=1e-10)


def mean_of_a_long_chain_s(rate, levels):
    """E[N]/λ of ``PHASED``, written out state by state up to so many events."""
    states = list(itertools.product(range(levels + 1), range(5)))
    place = {state: index for index, state in enumerate(states)}
    chain = sparse.lil_array((len(states), len(states)))
    next_period = {0: {1: 1.5}, 1: {2: 1.5}, 2: {3: 1.05, 4: 0.45}, 3: {0: 2.5}, 4: {0: 0.5}}
    for count, period in states:
        moves = {(count, other): r for other, r in next_period[period].items()}
        if count < levels:
            moves[count + 1, period] = rate
        if count > 0 and period < 3:
            moves[count - 1, period] = 4.0
        for target, r in moves.items():
            chain[place[target], place[count, period]] += r
            chain[place[count, period], place[count, period]] -= r
    chain[0, :] = 1.0
    wanted = np.zeros(len(states))
    wanted[0] = 1.0
    shares = linalg.spsolve(chain.tocsc(), wanted)
    assert shares[-5:].sum() < 1e-13
    return shares @ np.array([count for count, _ in states]) / rate


@pytest.mark.parametrize("scv", [1 / 24, 0.1, 0.37, 0.5, 0.999, 1.0, 3.0])
def test_periods_without_phases_keep_two_moments(scv):
    initial, generator = period_phases(LogNormal(mean_s=3.0, scv=scv))
    chain = PhaseType(initial=tuple(initial), generator=tuple(map(tuple, generator)))
    assert chain.mean_s == pytest.approx(3.0, rel=1e-12)
    assert chain.scv == pytest.approx(scv, rel=1e-9)
