"""The paper's closed form, its limits, and the exact share of couples."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate

from tidings.errors import InvalidInputError
from tidings.theory.peers.notification_loss import exact_share, notified_share, rapidity


@pytest.mark.parametrize("r", [0.3, 1.14, 4.0])
@pytest.mark.parametrize("stay_s", [20.0, 33.0, 400.0])
def test_the_closed_form_is_the_paper_s_integral(r, stay_s):
    """Equation 2 with the power laws of equations 3 and 4, T_sub = 12 s, T_diff = 8 s."""
    t_sub, t_diff = 12.0, 8.0
    rising, _ = integrate.quad(lambda t: (t / t_sub) ** (1 / r), 0, t_sub, epsabs=1e-13)
    falling, _ = integrate.quad(
        lambda t: ((t_diff - t) / t_diff) ** (1 / r), 0, t_diff, epsabs=1e-13
    )
    expected = (stay_s - t_sub - t_diff + rising + falling) / stay_s
    assert notified_share(stay_s, t_sub + t_diff, r) == pytest.approx(expected, abs=1e-9)
    assert rapidity(rising + falling, t_sub + t_diff) == pytest.approx(r, rel=1e-7)


@pytest.mark.parametrize("stay_s", [0.5, 7.0, 20.0, 31.0])
def test_short_stays_are_the_expectation_over_comonotone_delays(stay_s):
    """X = S u^r is the law whose sum of power laws grows together; E[(T − X)⁺]/T of it."""
    r, spread_s = 1.14, 20.0
    reached = min((stay_s / spread_s) ** (1 / r), 1.0)  # beyond, nothing is notified
    inside = stay_s * reached - spread_s * reached ** (r + 1) / (r + 1)  # ∫ (T − S u^r) du
    assert notified_share(stay_s, spread_s, r) == pytest.approx(inside / stay_s, abs=1e-12)


def test_limits():
    assert notified_share(5.0, 0.0, 1.0) == 1.0
    assert notified_share(1e12, 20.0, 1.14) == pytest.approx(1.0, abs=1e-10)
    both_sides = notified_share([20.0 - 1e-9, 20.0 + 1e-9], 20.0, 1.14)
    assert both_sides[0] == pytest.approx(both_sides[1], abs=1e-9)
    shares = notified_share(np.linspace(0.1, 60, 200), 20.0, 0.7)
    assert np.all(np.diff(shares) > 0)


def test_exact_shares_of_couples():
    delays_s = np.random.default_rng(3).exponential(3.0, 500)
    stays_s = np.array([0.01, 1.0, 5.0, 200.0])
    plain = [np.maximum(stay - delays_s, 0.0).mean() / stay for stay in stays_s]
    assert exact_share(stays_s, delays_s) == pytest.approx(plain, abs=1e-12)


def test_once_all_are_reached_only_the_mean_counts():
    """For T_ON of at least the longest X: d = 1 − E[X]/T_ON, the closed form with r by area."""
    delays_s = np.array([1.0, 4.0, 9.0])
    spread_s = 12.0
    r = rapidity(spread_s - delays_s.mean(), spread_s)
    assert exact_share(12.0, delays_s) == pytest.approx(
        float(notified_share(12.0, spread_s, r)), abs=1e-15
    )


@pytest.mark.parametrize("wrong", [(0.0, 1.0, 1.0), (1.0, -1.0, 1.0), (1.0, 1.0, 0.0)])
def test_impossible_times_are_refused(wrong):
    with pytest.raises(InvalidInputError, match="out of range"):
        notified_share(*wrong)
    with pytest.raises(InvalidInputError, match="area"):
        rapidity(5.0, 5.0)


@pytest.mark.parametrize(
    ("stay_s", "delays_s"),
    [(0.0, [1.0]), (-1.0, [1.0]), (np.nan, [1.0]), (2.0, [-1.0, 3.0]), (2.0, [np.nan]), (2.0, [])],
)
def test_what_no_couple_can_have_is_an_error(stay_s, delays_s):
    with pytest.raises(InvalidInputError, match="wants stays above 0 and at least one delay"):
        exact_share([1.0, stay_s], delays_s)


def test_numbers_that_are_none_are_an_error():
    for bad in ((np.nan, 20.0, 1.0), (30.0, np.nan, 1.0), (30.0, 20.0, np.nan)):
        with pytest.raises(InvalidInputError, match="out of range"):
            notified_share(*bad)
