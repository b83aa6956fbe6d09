from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.model.laws import HyperExponential, phases, residual
from tidings.theory.faults.components import Components, Path
from tidings.theory.faults.processes import alternating, exponential, forgetting
from tidings.theory.faults.refresh import Refresh, bounded_passed, exact_passed

LOW_END = (0.92, 0.99, 0.93, 0.99, 0.91)


def path(brokers):
    return Path(brokers=tuple(range(brokers)), links=tuple(range(brokers - 1)))


def passed(components, refresh):
    count = len(components.of_broker)
    return exact_passed(components, path(count), refresh, (0.0,) * count)


def bounds(components, refresh):
    count = len(components.of_broker)
    found = bounded_passed(components, path(count), refresh, (0.0,) * count)
    return found.table[-1] - found.off, found.table[-1] + found.off


@pytest.mark.parametrize("every_s", [1.0, 900.0, 50_000.0, 1e6])
@pytest.mark.parametrize("availability", [0.5, 0.9, 0.999])
def test_one_broker_costs_the_textbook_share(faulty, availability, every_s):
    """a (1 − e^{−γT})/(γT)."""
    found = passed(faulty.row((availability,)), Refresh(every_s=every_s))
    x = every_s / (availability * 60_000.0)
    assert found.table[0] == pytest.approx(availability * -math.expm1(-x) / x, rel=1e-12)
    assert found.up[0] == pytest.approx(availability, rel=1e-12)


@pytest.mark.parametrize("every_s", [60.0, 900.0, 7200.0])
def test_a_way_lies_between_the_bounds_and_costs_more_the_rarer_the_refresh(faulty, every_s):
    components = faulty.row(LOW_END)
    low, high = bounds(components, Refresh(every_s=every_s))
    exact = passed(components, Refresh(every_s=every_s)).table[-1]
    assert low < exact < high
    rarer = passed(components, Refresh(every_s=1.5 * every_s)).table[-1]
    assert rarer < exact < math.prod(LOW_END)


@pytest.mark.parametrize("share", [0.4, 1.0])
def test_a_time_out_before_the_next_refresh_leaves_the_lower_bound_exactly(faulty, share):
    components = faulty.row(LOW_END)
    refresh = Refresh(every_s=900.0, timeout_s=900.0 * share)
    low, high = bounds(components, refresh)
    assert high == pytest.approx(low, abs=1e-14)
    assert passed(components, refresh).table[-1] == pytest.approx(low, abs=1e-12)


def test_the_longer_the_time_out_the_better_up_to_none(faulty):
    components = faulty.row(LOW_END[:3])
    shares = [
        passed(components, Refresh(every_s=900.0, timeout_s=timeout_s)).table[-1]
        for timeout_s in (450.0, 900.0, 1350.0, 2700.0, 27_000.0)
    ]
    without = passed(components, Refresh(every_s=900.0)).table[-1]
    assert np.all(np.diff([*shares, without]) > 0.0)
    assert shares[-1] == pytest.approx(without, abs=2e-4)


def test_a_perfect_way_passes_all_unless_tables_time_out():
    perfect = Components(processes=(), of_broker=((), ()), of_link=((),))
    assert passed(perfect, Refresh(every_s=60.0)).table == pytest.approx((1.0,) * 3, abs=1e-13)
    early = passed(perfect, Refresh(every_s=60.0, timeout_s=15.0))
    assert early.table == pytest.approx((0.25,) * 3, abs=1e-13)


def test_any_law_of_times_up_costs_by_its_residual(faulty):
    """One broker: a times the mean over U of P[residual time up > U]."""
    up = HyperExponential(weights=(0.6, 0.4), means_s=(200.0, 9_000.0))
    down = HyperExponential(weights=(0.5, 0.5), means_s=(50.0, 500.0))
    process = alternating(*(tuple(phases(law))[:2] for law in (up, down)))
    components = Components(processes=(process,), of_broker=((0,),), of_link=())
    moments = np.linspace(0.0, 3600.0, 200_001)
    left = 1.0 - residual(up).cdf(moments)
    mean = float(np.trapezoid(left, moments)) / 3600.0
    found = passed(components, Refresh(every_s=3600.0))
    assert found.table[0] == pytest.approx(process.availability * mean, rel=1e-9)
    ready = forgetting(process, 3600.0)
    assert ready.stationary @ ready.generator == pytest.approx(np.zeros(6), abs=1e-15)
    assert ready.availability == pytest.approx(process.availability, rel=1e-12)
    assert ready.stationary[ready.able].sum() == pytest.approx(found.table[0], rel=1e-6)


@settings(deadline=None, max_examples=15)
@given(row=st.lists(st.floats(0.5, 0.999), min_size=3, max_size=3), every_s=st.floats(1.0, 1e5))
def test_checks_only_lose_and_stay_between_the_bounds(faulty, row, every_s):
    components = faulty.row(row)
    found = passed(components, Refresh(every_s=every_s))
    order = [each for pair in zip(found.up, found.table, strict=True) for each in pair]
    assert np.all(np.diff([row[0], *order]) <= 1e-11)
    low, high = bounds(components, Refresh(every_s=every_s))
    assert low - 1e-11 <= found.table[-1] <= high + 1e-11


def naive_share(faulty, failing, every_s, timeout_s, copies):
    """Follow refreshes and crashes of a way of two brokers; one event a copy at the end."""
    rng = np.random.default_rng(8)
    naive = faulty.naive_processes(failing, copies, rng)
    everyone = np.arange(copies)
    heard = np.full((2, copies), -math.inf)  # when each broker last heard of the subscription
    phase = rng.random(copies) * every_s
    rounds = 30
    for number in range(rounds + 1):
        now = phase + number * every_s
        last = number == rounds
        if last:  # the event, uniform between two rounds
            now = now - rng.random(copies) * every_s
        for place in range(3):
            while True:  # toggle by toggle, so that no crash between two rounds is missed
                due = naive.toggle[place] <= now
                if not due.any():
                    break
                if place != 1:
                    heard[place // 2, due] = -math.inf
                naive.advance(place, everyone[due], naive.toggle[place, due])
        if not last:
            reached = naive.up[2]
            heard[1, reached] = now[reached]
            reached = reached & naive.up[1] & naive.up[0]
            heard[0, reached] = now[reached]
    limit = math.inf if timeout_s is None else timeout_s
    fresh = (now - heard <= limit).all(axis=0) & np.isfinite(heard).all(axis=0)
    return float(np.mean(naive.up.all(axis=0) & fresh))


@pytest.mark.statistical
@pytest.mark.parametrize("timeout_s", [None, 5_000.0])
def test_the_chain_of_refreshes_is_what_following_them_gives(faulty, timeout_s):
    failing = [faulty.failure(0.8, 20_000.0), faulty.failure(0.7, 10_000.0)]
    failing.append(faulty.failure(0.75, 20_000.0))
    components = Components(
        processes=tuple(exponential(each) for each in failing),
        of_broker=((0,), (2,)),
        of_link=((1,),),
    )
    refresh = Refresh(every_s=2_000.0, timeout_s=timeout_s)
    exact = passed(components, refresh).table[-1]
    copies = 80_000
    seen = naive_share(faulty, failing, 2_000.0, timeout_s, copies)
    error = math.sqrt(exact * (1.0 - exact) / copies)
    assert seen == pytest.approx(exact, abs=5.0 * error)
    low, high = bounds(components, refresh)
    assert high - low > 20.0 * error  # so that the bounds themselves would not do
