from __future__ import annotations

import numpy as np
import pytest
from scipy import linalg

from studies.mobile_onoff.centre import OnOff, exponential_centre, mean_response_s
from studies.mobile_onoff.varying import varying_response
from tidings.errors import UnstableError, UnsupportedError
from tidings.model.behaviour import DailyRates
from tidings.model.laws import Deterministic, Exponential

CENTRE = exponential_centre(1.0, 4.0, 4.0)


def test_a_rate_that_never_changes_gives_the_stationary_mean():
    found = varying_response(CENTRE, DailyRates(slot_s=30.0, per_s=(0.3, 0.3, 0.3)))
    assert found.response_s == pytest.approx(mean_response_s(CENTRE, 0.3), rel=1e-7)
    assert found.by_slot_s == pytest.approx([found.response_s] * 3, rel=1e-6)


def test_slots_that_outlast_every_memory_are_each_stationary():
    rates = DailyRates(slot_s=1e4, per_s=(0.1, 0.3, 0.0))
    found = varying_response(CENTRE, rates)
    each = [mean_response_s(CENTRE, rate) for rate in (0.1, 0.3)]
    assert found.response_s == pytest.approx((0.1 * each[0] + 0.3 * each[1]) / 0.4, rel=3e-3)
    assert np.isnan(found.by_slot_s[2])


def test_slots_shorter_than_a_service_are_one_rate():
    rates = DailyRates(slot_s=0.01, per_s=(0.0, 0.6))
    found = varying_response(CENTRE, rates)
    assert found.response_s == pytest.approx(mean_response_s(CENTRE, 0.3), rel=1e-3)


def test_an_overloaded_slot_is_made_up_for_by_others_exactly():
    per_s, slot_s, bound = (1.1, 0.0, 0.0), 12.0, 100
    found = varying_response(CENTRE, DailyRates(slot_s=slot_s, per_s=per_s))
    # The slow obvious way: matrix exponentials in fine steps of dense matrices.
    size = 2 * (bound + 1)
    parts = []
    for rate in per_s:
        moves = np.zeros((size, size))
        for n in range(bound + 1):
            moves[2 * n, 2 * n + 1] = moves[2 * n + 1, 2 * n] = 0.25
            if n < bound:
                moves[2 * n, 2 * n + 2] = moves[2 * n + 1, 2 * n + 3] = rate
            if n > 0:
                moves[2 * n, 2 * n - 2] = 1.0
        parts.append(linalg.expm((moves - np.diag(moves.sum(axis=1))) * slot_s / 48))
    numbers = np.repeat(np.arange(bound + 1), 2)
    state = np.zeros(size)
    state[0] = 1.0
    for _ in range(40):
        totals = []
        for step in parts:
            path = [state]
            for _ in range(48):
                path.append(path[-1] @ step)
            state, weights = path[-1], np.ones(49)
            weights[1:-1:2], weights[2:-1:2] = 4.0, 2.0  # Simpson's rule
            totals.append(weights @ (np.array(path) @ numbers) / weights.sum())
    exact = np.mean(totals) / np.mean(per_s)
    assert found.response_s == pytest.approx(exact, rel=3e-4)
    assert found.present == pytest.approx(totals, rel=1e-3)


def test_what_cannot_be_followed_is_said():
    rates = DailyRates(slot_s=600.0, per_s=(0.5, 0.7))
    with pytest.raises(UnstableError, match=r"from 0\.5/s on it never catches up"):
        varying_response(CENTRE, rates)
    regular = OnOff(service=Deterministic(value_s=1.0), on=CENTRE.on, off=Exponential(mean_s=1.0))
    with pytest.raises(UnsupportedError, match="service, ON and OFF are exponential"):
        varying_response(regular, DailyRates(slot_s=600.0, per_s=(0.1,)))


def test_rates_that_end_are_refused_and_rounds_that_never_settle_are_told(monkeypatch):
    with pytest.raises(UnsupportedError, match="repeat: false"):
        varying_response(CENTRE, DailyRates(slot_s=30.0, per_s=(0.3,), repeat=False))
    rates = DailyRates(slot_s=30.0, per_s=(0.1, 0.45))
    assert varying_response(CENTRE, rates).settled
    monkeypatch.setattr("studies.mobile_onoff.varying._MOST_ROUNDS", 1)
    assert not varying_response(CENTRE, rates).settled
