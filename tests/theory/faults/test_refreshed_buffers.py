"""Waits for refreshes by closed forms, and the numeric form they come in."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate

from tidings.theory.faults.buffer_delays import CountedJumps, DenseWait, TabulatedWait
from tidings.theory.faults.bypassing_ways import exact_wait
from tidings.theory.faults.components import Components, Path
from tidings.theory.faults.disjoint_products import network
from tidings.theory.faults.other_homes import OtherHome, helped_per_s
from tidings.theory.faults.reachability import Reachability, cut_off
from tidings.theory.faults.refresh import Refresh
from tidings.theory.faults.refresh_chain import Refreshes, refresh_chain
from tidings.theory.faults.refreshed_buffers import refreshed_wait
from tidings.theory.faults.waiting import Wait

SQUARE = ((0, 1), (1, 2), (0, 3), (3, 2))


def lone_broker_wait(faulty, every_s):
    graph = network(faulty.row((0.9,), 100.0), ())
    refreshes = Refreshes(own=Refresh(every_s=every_s), helped_per_s=(0.0,))
    return refreshed_wait(refresh_chain(graph, Path(brokers=(0,), links=()), refreshes))


@pytest.mark.parametrize("every_s", [2.0, 30.0])
def test_one_broker_waits_for_the_first_refresh_that_finds_it_up(faulty, every_s):
    found = lone_broker_wait(faulty, every_s)
    fails, repairs = 1 / 90.0, 1 / 10.0
    both = fails + repairs
    known = -math.expm1(-fails * every_s) / (fails * every_s)
    # Publications are taken in the middle of sixteen steps: so much is the midpoint rule off.
    assert found.atom == pytest.approx(known, abs=(fails * every_s / 16) ** 2 / 24)
    found_up = 0.9 * -math.expm1(-both * every_s)

    def wait_s(u):
        down = 0.1 * -math.expm1(-both * (every_s - u))
        return -math.expm1(-fails * u) * (every_s - u + down * every_s / found_up)

    exact_s = integrate.quad(wait_s, 0, every_s)[0] / every_s
    assert found.mean_s == pytest.approx(exact_s, rel=2e-3)


def test_refreshes_that_are_frequent_come_at_random_moments(faulty):
    """Beside repairs of 10 s, every 0.4 s: nearly the same wait, as a chain."""
    chain = lone_broker_wait(faulty, 0.4)
    table = lone_broker_wait(faulty, 0.6)
    assert isinstance(chain, Wait)
    assert isinstance(table, TabulatedWait)
    assert (1 - chain.atom) / 0.4 == pytest.approx((1 - table.atom) / 0.6, rel=2e-3)


def test_a_table_has_the_moments_and_the_transform_of_its_law():
    times_s = np.arange(0.0, 8.0, 0.01)
    found = TabulatedWait(step_s=0.01, left=0.6 * np.exp(-times_s), tail_per_s=1.0)
    assert found.atom == pytest.approx(0.4)
    assert found.mean_s == pytest.approx(0.6, rel=1e-4)
    assert found.variance_s2 == pytest.approx(2 * 0.6 - 0.36, rel=1e-4)
    z = np.array([0.1, 1.0, 3.0 + 4.0j])
    assert found.transform(z) == pytest.approx(0.4 + 0.6 / (1.0 + z), abs=1e-4)
    asked_s = np.array([-1.0, 0.0, 1.0, 20.0])
    exact = np.where(asked_s < 0.0, 0.0, 1.0 - 0.6 * np.exp(-asked_s))
    assert found.cdf(asked_s) == pytest.approx(exact, abs=1e-4)
    assert found.given_waiting().mean_s == pytest.approx(1.0, rel=1e-4)


def test_moments_by_counting_jumps_are_those_of_the_chain(faulty):
    components = faulty.row((0.9, 0.95, 0.8), 100.0)
    graph = network(components, ((0, 1),))
    path = Path(brokers=(0, 1), links=(0,))
    found = exact_wait(graph, path, 1.0)
    dense = DenseWait(initial=found.initial, generator=found.generator.toarray(), atom=found.atom)
    counted = CountedJumps(wait=found)
    assert counted.ends
    assert counted.mean_s == pytest.approx(dense.mean_s, rel=1e-11)
    assert counted.variance_s2 == pytest.approx(dense.variance_s2, rel=1e-11)


@pytest.mark.statistical
def test_partitions_seen_in_random_states_are_the_exact_ones(faulty):
    """Share by share of the way's joint phases, in standard errors; copies lost on the way too."""
    row = faulty.row((0.9, 0.95, 0.8, 0.9, 0.85, 0.9, 0.9, 0.95))
    components = Components(
        processes=row.processes,
        of_broker=((0,), (2,), (4,), (6,)),
        of_link=((1,), (3,), (5,), (7,)),
    )
    graph = network(components, SQUARE)
    path = Path(brokers=(0, 1, 2), links=(0, 1))
    exact = cut_off(graph, path, 0.8)
    start, error = Reachability(network=graph).sampled_cut_off(path, 0.8)
    assert start.processes == exact.processes
    assert error < 0.003
    noise = np.sqrt(np.maximum(exact.shares, 1e-5) / 40_000 / 0.9)
    assert (np.abs(start.shares - exact.shares) < 5.0 * noise).all()
    assert start.shares.sum() == pytest.approx(exact.shares.sum(), abs=5.0 * error)


def test_homes_help_the_brokers_before_the_one_where_they_come_to_the_way(faulty):
    components = faulty.row((0.9, 0.95, 0.9, 0.95, 0.9, 0.95, 0.9))
    path = Path(brokers=(0, 1, 2), links=(0, 1))
    at_broker = OtherHome(joins=1, branch=Path(brokers=(), links=()))
    behind = OtherHome(joins=2, branch=Path(brokers=(3,), links=(2,)))
    lone = helped_per_s(components, path, [at_broker], 60.0)
    assert lone[1] == lone[2] == 0.0
    # One's own and another's, uniform on an interval: a third of it since the last on average.
    rate = lone[0] * 60.0
    mean = 1 / rate + math.expm1(-rate) / rate**2
    assert mean == pytest.approx(1 / 3, abs=1e-12)
    both = helped_per_s(components, path, [at_broker, behind], 60.0)
    assert both[0] > lone[0] > both[1] > both[2] == 0.0  # not always up
