"""Waits at an ON/OFF publisher and at the queue behind it, as one."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse import linalg

from tidings.model.laws import Deterministic, Exponential
from tidings.theory.inversion import euler_rule
from tidings.theory.mobility.centre import OnOff, exponential_centre
from tidings.theory.mobility.gated import GatedWait, Served
from tidings.theory.queues import mean_wait_s

AT_ONCE = Deterministic(value_s=0.0)


def at_once(on_s, off_s):
    """A publisher that hands over without taking time."""
    return OnOff(service=AT_ONCE, on=Exponential(mean_s=on_s), off=Exponential(mean_s=off_s))


def gated(centre, queue, others=()):
    return GatedWait(centre=centre, rate_per_s=queue.own_per_s, slowest=queue, others=others)


def in_system(queue, on_s, off_s, size=90):
    """By Little's law: mean wait and service of the publisher's events, and P[ON, nobody there].

    The chain of (who is ON, own events gathered, events at the queue), cut off at ``size``; of the
    events at the queue it is counted how many of the publisher's are among them in all.
    """
    own, other, done = queue.own_per_s, queue.others_per_s, 1.0 / queue.service.mean_s
    number = np.arange(2 * size * size).reshape(2, size, size)  # [OFF or ON, gathered, there]
    moves = []

    def move(source, target, rate):
        moves.append((source.ravel(), target.ravel(), np.full(source.size, rate)))

    for state in (0, 1):
        move(number[state, :, :-1], number[state, :, 1:], other)
        move(number[state, :, 1:], number[state, :, :-1], done)
    move(number[1, :, :-1], number[1, :, 1:], own)
    move(number[0, :-1, :], number[0, 1:, :], own)
    move(number[1], number[0], 1.0 / on_s)
    for gathered in range(size):
        there = np.arange(size - gathered)
        move(
            number[0, gathered, there], number[1, np.zeros_like(there), there + gathered], 1 / off_s
        )
    row, column, rate = (np.concatenate(each) for each in zip(*moves, strict=True))
    matrix = sparse.coo_array((rate, (column, row)), shape=(number.size, number.size)).tolil()
    matrix.setdiag(-np.bincount(row, weights=rate, minlength=number.size))
    matrix[0, :] = 1.0
    wanted = np.zeros(number.size)
    wanted[0] = 1.0
    shares = linalg.spsolve(matrix.tocsc(), wanted).reshape(number.shape)
    gathered = (shares.sum(axis=(0, 2)) * np.arange(size)).sum()
    there = (shares.sum(axis=(0, 1)) * np.arange(size)).sum()
    return gathered, there, shares[1, 0, 0]


@pytest.mark.parametrize("others_per_s", [0.0, 0.5])
def test_waits_are_those_of_the_markov_chain(others_per_s):
    """Where all that waits is one publisher's, Little's law has its wait."""
    queue = Served(service=Exponential(mean_s=0.4), own_per_s=1.0, others_per_s=others_per_s)
    wait = gated(at_once(2.0, 1.0), queue)
    gathered, there, idle = in_system(queue, 2.0, 1.0, size=60)
    assert wait.atom == pytest.approx(idle, rel=1e-7)
    if others_per_s == 0.0:
        assert wait.mean_s + 0.4 == pytest.approx(gathered + there, rel=1e-7)


@pytest.mark.parametrize("service", [Exponential(mean_s=0.3), Deterministic(value_s=0.3)])
def test_one_that_is_hardly_ever_away_leaves_a_poisson_queue(service):
    queue = Served(service=service, own_per_s=1.0, others_per_s=1.0)
    wait = gated(at_once(1.0, 1e-7), queue)
    assert wait.mean_s == pytest.approx(mean_wait_s(2.0, service), rel=1e-5)
    assert wait.atom == pytest.approx(0.4, rel=1e-5)


def test_a_queue_that_takes_no_time_leaves_the_absence():
    """What is left of OFF, for the share of events that meet one."""
    queue = Served(service=Exponential(mean_s=1e-7), own_per_s=1.0, others_per_s=0.0)
    wait = gated(at_once(2.0, 1.0), queue)
    assert wait.mean_s == pytest.approx(1.0 / 3.0, rel=1e-5)
    assert wait.variance_s2 == pytest.approx(2.0 / 3.0 - 1.0 / 9.0, rel=1e-5)
    nodes, weights = euler_rule(17)
    below = (wait.transform(nodes / 0.5) / nodes).real @ weights
    assert below == pytest.approx(1.0 - np.exp(-0.5) / 3.0, abs=1e-6)


@pytest.mark.parametrize("hand_over_s", [0.0, 0.01, 0.025])
def test_a_wait_is_a_law(hand_over_s):
    """All of it is somewhere, none of it before 0, its atom is where the transform ends."""
    queue, fast = (
        Served(service=Exponential(mean_s=mean_s), own_per_s=10.0, others_per_s=1.0)
        for mean_s in (0.04, 0.03)
    )
    centre = exponential_centre(hand_over_s, 6.0, 3.0) if hand_over_s else at_once(6.0, 3.0)
    wait = gated(centre, queue, (fast,))
    ends = wait.transform(np.array([1e-7, 1e9], dtype=np.complex128)).real
    assert ends == pytest.approx([1.0, wait.atom], abs=1e-5)
    times_s = np.geomspace(1e-3, 60.0, 40)
    nodes, weights = euler_rule(17)
    z = nodes / times_s[:, None]
    below = (wait.transform(z) / z).real @ weights / times_s
    assert np.all(np.diff(below) > -1e-7)
    assert np.all((below > wait.atom - 1e-7) & (below < 1.0 + 1e-7))
