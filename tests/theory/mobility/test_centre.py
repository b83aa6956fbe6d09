from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.model.laws import Deterministic, Exponential, Gamma, PhaseType
from tidings.theory.mobility.centre import (
    OnOff,
    effective_demand_s,
    exponential_centre,
    mean_response_s,
    published_response_s,
)
from tidings.theory.mobility.completion import completion
from tidings.theory.queues import mean_wait_s

TIMES = st.floats(1e-3, 1e3)


@settings(deadline=None, max_examples=60)
@given(service_s=TIMES, on_s=TIMES, off_s=TIMES, load=st.floats(0.0, 0.99))
def test_three_moments_of_a_completion_give_the_published_theorem(service_s, on_s, off_s, load):
    centre = exponential_centre(service_s, on_s, off_s)
    rate = load * centre.most_per_s
    published = published_response_s(rate, service_s=service_s, on_s=on_s, off_s=off_s)
    assert mean_response_s(centre, rate) == pytest.approx(published, rel=1e-12)


@pytest.mark.parametrize("rate", [0.0, 0.5, 1.9])
def test_never_away_is_a_plain_queue(rate):
    plain = mean_wait_s(rate, Exponential(mean_s=0.5)) + 0.5
    found = published_response_s(rate, service_s=0.5, on_s=3.0, off_s=0.0)
    assert found == pytest.approx(plain, rel=1e-14)


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


@settings(deadline=None, max_examples=60)
@given(
    own=st.floats(0.01, 2.0),
    others=st.floats(0.0, 2.0),
    service_s=st.floats(0.01, 0.1),
    off_s=st.one_of(st.just(0.0), st.floats(0.1, 30.0)),
)
def test_effective_demand_alone_responds_as_all_together(own, others, service_s, off_s):
    times = {"on_s": 20.0, "off_s": off_s}
    together = published_response_s(own + others, service_s=service_s, **times)
    demand_s = effective_demand_s(own, others, service_s, **times)
    alone = published_response_s(own, service_s=demand_s, **times)
    assert alone == pytest.approx(together, rel=1e-9)


def test_effective_demand_of_a_plain_queue_is_the_published_one():
    assert effective_demand_s(3.0, 4.0, 0.1) == pytest.approx(0.1 / (1 - 0.4), rel=1e-14)
    assert effective_demand_s(3.0, 7.0, 0.1) == math.inf


@pytest.mark.parametrize(("work", "away"), [(1, 1), (3, 1), (1, 4), (2, 5)])
def test_three_moments_of_a_completion_are_those_of_its_phases(work, away):
    """E[Cⁿ] = n! initial (−generator)⁻ⁿ 1; gamma laws of whole shapes are phases."""
    centre = OnOff(
        service=Gamma(mean_s=0.7, shape=work),
        on=Exponential(mean_s=3.0),
        off=Gamma(mean_s=2.0, shape=away),
    )
    law = completion(centre)
    assert isinstance(law, PhaseType)
    stay_s = np.linalg.inv(-np.array(law.generator))
    first, second, third = (
        math.factorial(n) * (np.array(law.initial) @ np.linalg.matrix_power(stay_s, n)).sum()
        for n in (1, 2, 3)
    )
    assert centre.demand_s == pytest.approx(first, rel=1e-12)
    assert centre.demand_square_s2 == pytest.approx(second, rel=1e-12)
    assert centre.demand_cube_s3 == pytest.approx(third, rel=1e-12)
