"""Waits for repairs, against small Markov chains of everything that fails."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import linalg

from systems import small_failing as systems
from tidings.model.laws import Exponential, Weibull, phases, residual
from tidings.theory.delay.grids import Grid
from tidings.theory.repairs.components import Components, Path, alternating
from tidings.theory.repairs.phase_fits import fit
from tidings.theory.repairs.waits import at_the_end, before_hop

TIMES_S = np.array([0.5, 3.0, 20.0, 60.0, 200.0])
ERLANG = (np.array([1.0, 0.0]), np.array([[-0.05, 0.05], [0.0, -0.05]]))
UNEVEN = (np.array([0.7, 0.3]), np.array([[-0.2, 0.0], [0.0, -0.02]]))


def process(availability):
    fails, repairs = systems.rates(availability)
    one = np.ones(1)
    return alternating((one, np.array([[-fails]])), (one, np.array([[-repairs]])))


def waited(processes, hops, kept, first):
    """P[wait ≤ t] at some times: hops from the last to the first, then inverted."""
    grid = Grid.spanning(0.01, 3000.0)
    remaining = at_the_end(grid.z)
    for needed, keeping in reversed(list(zip(hops, kept, strict=True))):
        remaining = before_hop(processes, needed, remaining, keeping, grid.z)
    below, _ = grid.invert(remaining.given(processes, first)[None, :])
    return np.interp(np.log(TIMES_S), np.log(grid.times_s), below[0])


def followed(processes, hops, first):
    """The same by one chain of all processes and the hop at which an event is."""
    sizes = [each.up.size for each in processes]
    rates = np.zeros((1, 1))
    for each in processes:
        rates = np.kron(rates, np.eye(each.up.size)) + np.kron(np.eye(len(rates)), each.generator)
    phase = list(itertools.product(*(range(size) for size in sizes)))
    up = np.array([[p.up[at] for p, at in zip(processes, state, strict=True)] for state in phase])
    met = [up[:, list(needed)].all(axis=1) for needed in hops]

    def passed(hop, state):
        while hop < len(hops) and met[hop][state]:
            hop += 1
        return hop

    count = len(phase)
    chain = np.zeros(((len(hops) + 1) * count,) * 2)
    for hop, state in itertools.product(range(len(hops)), range(count)):
        for goal in np.flatnonzero(rates[state]):
            chain[hop * count + state, passed(hop, goal) * count + goal] += rates[state, goal]
    shares = np.ones(1)
    for index, each in enumerate(processes):
        shares = np.kron(shares, each.given_up if index in first else each.stationary)
    start = np.zeros(len(chain))
    for state, share in enumerate(shares):
        start[passed(0, state) * count + state] += share
    return [float((start @ linalg.expm(chain * t))[-count:].sum()) for t in TIMES_S]


CASES = {
    "exponential times": ([0.9, 0.8, 0.85, 0.9, 0.7], [(0, 1, 2), (2, 3, 4)], None),
    "a group met twice": ([0.9, 0.8, 0.85, 0.9, 0.7], [(0, 1, 4), (1, 2), (2, 3, 4)], {4}),
}


@pytest.mark.parametrize("case", CASES)
def test_waits_are_those_of_the_joint_chain(case):
    shares, hops, shared = CASES[case]
    processes = [process(each) for each in shares]
    kept = [{0}, *({2} for _ in hops[1:])]
    kept = [each | (shared or set()) for each in kept]
    if shared:
        kept[1] = {1, 4}
    first = {0}
    expected = followed(processes, hops, first)
    assert waited(processes, hops, kept, first) == pytest.approx(expected, abs=2e-4)


def test_phases_up_are_carried_on_to_the_next_hop():
    """The broker between fails again soon after most repairs; forgetting that would show."""
    often_again = alternating(UNEVEN, ERLANG)
    processes = [process(0.9), often_again, process(0.8)]
    hops, first = [(0, 1), (1, 2)], {0}
    expected = followed(processes, hops, first)
    assert waited(processes, hops, [{0}, {1}], first) == pytest.approx(expected, abs=2e-4)
    forgotten = waited(processes, hops, [{0}, set()], first)
    assert np.abs(forgotten - expected).max() > 0.01


def test_a_start_in_known_phases_is_weighted():
    """All of a path known, as where detours leave an event waiting."""
    processes = [process(each) for each in (0.9, 0.8, 0.85, 0.7, 0.9)]
    grid = Grid.spanning(0.01, 3000.0)
    remaining = at_the_end(grid.z)
    for needed in ((2, 3, 4), (0, 1, 2)):
        remaining = before_hop(processes, needed, remaining, range(5), grid.z)
    shares = np.random.default_rng(1).dirichlet(np.ones(32))
    below, _ = grid.invert(remaining.weighted(processes, shares, range(5))[None, :])
    # The twin has states as bits, 1 is up, the first component lowest; phase 0 is up.
    law = np.zeros(32)
    for index, phase in enumerate(itertools.product((0, 1), repeat=5)):
        law[sum((1 - at) << bit for bit, at in enumerate(phase))] = shares[index]
    at = np.interp(np.log(20.0), np.log(grid.times_s), below[0])
    assert at == pytest.approx(systems.arrived_by([0.9, 0.8, 0.85, 0.7, 0.9], law, 20.0), abs=2e-4)


def test_one_hop_of_exponential_times_is_a_ratio():
    """A receiver that alone fails: the wait is 0 with a, else its time down."""
    fails, repairs = systems.rates(0.8)
    z = np.array([0.01 + 0.2j, 3.0])
    before = before_hop([process(0.8)], (0,), at_the_end(z), (), z)
    assert before.values == pytest.approx(0.8 + 0.2 * repairs / (repairs + z), abs=1e-13)
    assert fails > 0.0


def test_a_group_counts_once():
    path = Path((0, 1), (0,))
    parts = Components(
        processes=(process(0.9), process(0.8)),
        of_broker=((0, 1), (1,)),
        of_link=((1,),),
        ends=((0, 1),),
    )
    assert parts.all_up(each for needed in parts.of_path(path) for each in needed) == (
        pytest.approx(0.72)
    )
    assert parts.shared == {1}


# ---- fitted times --------------------------------------------------------------------------------


def distance(law, chain):
    initial, generator = chain
    times_s = law.quantile(np.linspace(0.02, 0.995, 40))
    ended = [1.0 - float(initial @ linalg.expm(generator * t).sum(axis=1)) for t in times_s]
    return np.abs(ended - law.cdf(times_s)).max()


@pytest.mark.parametrize("shape", [0.4, 0.6, 1.5])
def test_fitted_times_keep_the_mean_and_come_near(shape):
    law = Weibull(scale_s=10.0, shape=shape)
    initial, generator = fit(law, 4)
    assert initial.sum() == pytest.approx(1.0)
    mean_s = float(initial @ np.linalg.solve(-generator, np.ones(initial.size)))
    assert mean_s == pytest.approx(law.mean_s)
    exponential = phases(Exponential(mean_s=law.mean_s))
    far = distance(law, (exponential.initial, exponential.generator))
    assert distance(law, (initial, generator)) < 0.3 * far
    spent_s = np.linalg.solve(-generator.T, initial)
    assert distance(residual(law), (spent_s / spent_s.sum(), generator)) < 0.03
