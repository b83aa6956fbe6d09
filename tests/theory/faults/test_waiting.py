from __future__ import annotations

import itertools
import math
from dataclasses import replace
from functools import reduce

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import linalg

from tidings.model.behaviour import Failure
from tidings.model.laws import (
    Deterministic,
    Exponential,
    HyperExponential,
    ended_share,
    phases,
)
from tidings.theory.faults.buffer_delays import (
    CountedJumps,
    SolvedWait,
    buffer_delay,
)
from tidings.theory.faults.buffered_ways import hops, stationary_wait
from tidings.theory.faults.components import Components, Path
from tidings.theory.faults.merging import put_together
from tidings.theory.faults.passages import CrossingWait
from tidings.theory.faults.phase_fits import fit
from tidings.theory.faults.processes import alternating, exponential
from tidings.theory.faults.waiting import Start, tracked, up_start, wait
from tidings.theory.lattice import Lattice

LOW_END = (0.92, 0.99, 0.93, 0.99, 0.91, 0.99, 0.95)


def path(brokers):
    return Path(brokers=tuple(range(brokers)), links=tuple(range(brokers - 1)))


def way(components):
    """The wait over the whole of a row of components."""
    found = hops(components, path(len(components.of_broker)))
    return wait(components.processes, found, up_start(components.processes, (0,)))


def cdf(found, times_s):
    return ended_share(found.initial, found.generator.toarray(), times_s)


def published_chain(sender, link, receiver, period_s=60_000.0):
    """The published chain of 8 states (4[receiver] + 2[link] + [sender]) with its errata mended."""
    rates = [(1 / (a * period_s), 1 / ((1 - a) * period_s)) for a in (sender, link, receiver)]
    chain = np.zeros((8, 8))
    for state in range(7):
        for bit, (fails, repaired) in enumerate(rates):
            chain[state, state ^ (1 << bit)] = fails if state >> bit & 1 else repaired
    chain -= np.diag(chain.sum(axis=1))
    start = np.zeros(7)
    start[0b001] = (1 - link) * (1 - receiver)
    start[0b011] = link * (1 - receiver)
    start[0b101] = (1 - link) * receiver
    return start, chain[:7, :7]


def hop_cdf(row, first, times_s):
    start, chain = published_chain(*row[first : first + 3])
    later = linalg.expm(chain * np.asarray(times_s)[:, None, None])
    return 1.0 - start @ later.sum(axis=2).T


@pytest.mark.parametrize("row", [(0.9, 0.99, 0.95), (0.99, 0.9, 0.999), (0.5, 0.6, 0.7)])
def test_one_hop_is_the_published_chain_of_eight_states(faulty, row):
    times_s = np.array([0.0, 1.0, 600.0, 3600.0, 1e5])
    found = way(faulty.row(row))
    assert found.initial.size == 7
    assert found.atom == pytest.approx(row[1] * row[2], abs=1e-15)
    assert cdf(found, times_s) == pytest.approx(hop_cdf(row, 0, times_s), abs=1e-13)


def test_a_way_is_the_numerical_convolution_of_its_hops(faulty):
    """Block chain against Gauss's rule on hop laws that are computed apart: to 1e-8."""
    nodes, weights = np.polynomial.legendre.leggauss(24)
    end_s = 3600.0

    def densities(first, times_s):
        start, chain = published_chain(*LOW_END[first : first + 3])
        return start @ linalg.expm(chain * times_s[:, None, None]) @ -chain.sum(axis=1)

    def convolved(first, times_s):
        """P[hops from ``first`` on take at most t], at each of some times."""
        if first == 4:
            return hop_cdf(LOW_END, first, times_s)
        atom = LOW_END[first + 1] * LOW_END[first + 2]
        found = atom * convolved(first + 2, times_s)
        for place, t in enumerate(times_s):
            at = 0.5 * t * (1.0 + nodes)
            after = convolved(first + 2, t - at)
            found[place] += 0.5 * t * (weights * densities(first, at)) @ after
        return found

    assert cdf(way(faulty.row(LOW_END)), end_s) == pytest.approx(
        convolved(0, np.array([end_s]))[0], abs=1e-8
    )


@pytest.mark.slow
def test_knowing_all_stationary_processes_changes_nothing(faulty):
    """With exponential times the waits of successive hops are independent."""
    components = faulty.row(LOW_END)
    processes = components.processes
    shares = reduce(np.kron, [processes[0].found_up, *(p.stationary for p in processes[1:])])
    start = Start(processes=tuple(range(7)), shares=shares)
    joint = wait(processes, hops(components, path(4)), start)
    assert joint.initial.size > 100
    times_s = np.array([0.0, 10.0, 3600.0, 1e5])
    assert cdf(joint, times_s) == pytest.approx(cdf(way(components), times_s), abs=1e-13)
    small = buffer_delay(way(components))
    counted, solved = CountedJumps(wait=joint), SolvedWait(wait=joint)
    crossed = CrossingWait(crossing=joint.crossing, held=joint.crossing.held)
    assert counted.cdf(times_s) == pytest.approx(small.cdf(times_s), abs=1e-12)
    z = np.array([[1e-4 + 1e-3j, 0.1 + 0.0j], [1e-6 + 0.0j, 2.0 + 3.0j]])
    for delay in (buffer_delay(joint), counted, solved):
        assert delay.atom == pytest.approx(small.atom, rel=1e-12)
        assert delay.mean_s == pytest.approx(small.mean_s, rel=1e-11)
        assert delay.variance_s2 == pytest.approx(small.variance_s2, rel=1e-11)
        assert delay.transform(z) == pytest.approx(small.transform(z), abs=1e-12)
    lattice = Lattice(step_s=2.0, points=2048)
    exact = np.array(small.on_lattice(lattice))
    assert np.abs(np.array(counted.on_lattice(lattice)) - exact).max() < 1e-10
    assert np.abs(np.array(crossed.on_lattice(lattice)) - exact).max() < 1e-4


def test_limits(faulty):
    found = way(faulty.row(LOW_END))
    assert cdf(found, 0.0) == pytest.approx(math.prod(LOW_END[1:]), abs=1e-15)
    assert cdf(found, 1e9) == pytest.approx(1.0, abs=1e-12)
    assert way(faulty.row((0.9,))).initial.size == 0


@settings(deadline=None, max_examples=25)
@given(
    row=st.lists(st.floats(0.5, 0.999), min_size=5, max_size=5),
    which=st.integers(0, 4),
    better=st.floats(0.05, 0.95),
    times_s=st.lists(st.floats(0.0, 1e6), min_size=2, max_size=2),
)
def test_on_time_rises_with_the_lifetime_and_with_every_availability(
    faulty, row, which, better, times_s
):
    """Of events published anywhere: a_b0 · P[wait ≤ t], the mean time down of the others kept."""
    improved = list(row)
    improved[which] += better * (1.0 - row[which])
    times_s = np.sort(times_s)
    shares = [row[0] * cdf(way(faulty.row(row)), times_s)]
    shares.append(improved[0] * cdf(way(faulty.row(improved)), times_s))
    assert np.all(np.diff(shares, axis=1) >= -1e-13)
    assert np.all(np.diff(shares, axis=0) >= -1e-13)
    assert np.all(shares[0] <= row[0] + 1e-13)


def test_phases_that_do_not_differ_are_as_good_as_one(faulty):
    failing = [faulty.failure(a) for a in (0.9, 0.97, 0.92, 0.99, 0.95)]
    doubled = [
        alternating(
            *(
                (np.array([0.3, 0.7]), np.diag([-1.0 / law.mean_s] * 2))
                for law in (each.up, each.down)
            )
        )
        for each in failing
    ]
    plain = faulty.row((0.9, 0.97, 0.92, 0.99, 0.95))
    needs = [{i: doubled[i].up for i in (k, k + 1, k + 2)} for k in (0, 2)]
    found = wait(doubled, needs, up_start(doubled, (0,)))
    times_s = np.array([0.0, 500.0, 3600.0, 1e5])
    assert cdf(found, times_s) == pytest.approx(cdf(way(plain), times_s), abs=1e-12)


def of_phases(failure):
    return alternating(*(tuple(phases(law))[:2] for law in (failure.up, failure.down)))


@pytest.mark.statistical
def test_the_phase_of_the_receiving_broker_is_carried_on(faulty):
    """Against following every component; taking hops as independent would be noticed.

    A broker that has just been repaired mostly fails again soon, before the next one is up.
    """
    fickle = Failure(
        up=HyperExponential(weights=(0.9, 0.1), means_s=(50.0, 20_000.0)),
        down=Exponential(mean_s=2_000.0),
    )
    often = Failure(up=Exponential(mean_s=500.0), down=Exponential(mean_s=500.0))
    failing = [often, often, fickle, often, often]
    processes = [of_phases(each) for each in failing]
    needs = [{i: processes[i].up for i in (k, k + 1, k + 2)} for k in (0, 2)]
    found = wait(processes, needs, up_start(processes, (0,)))
    naive = faulty.naive_processes(failing, 200_000, np.random.default_rng(5))
    reached = naive.waits([(0, 1, 2), (2, 3, 4)], (0,))
    home = np.isfinite(reached)
    for time_s in (100.0, 2000.0, 8000.0):
        share = float(cdf(found, time_s))
        error = math.sqrt(share * (1.0 - share) / home.sum())
        assert np.mean(reached[home] <= time_s) == pytest.approx(share, abs=5.0 * error)
    times_s = np.linspace(0.0, 8000.0, 2001)
    hop_laws = [
        wait(processes, [hop], up_start(processes, (2 * i,))) for i, hop in enumerate(needs)
    ]
    first, second = (cdf(each, times_s) for each in hop_laws)
    middles = 0.5 * (second[1:] + second[:-1])[::-1]
    independent = first[0] * second[-1] + float(np.diff(first) @ middles)
    assert abs(independent - share) > 20.0 * error


def uneven_way():
    """Two hops: uneven times up and down, a broker more beside them, a group of constant repair."""
    uneven = HyperExponential(weights=(0.2, 0.8), means_s=(9.0, 0.4))
    broker = alternating((np.array([0.3, 0.7]), np.diag([-1e-2, -1e-3])), fit(uneven).chain)
    group = alternating((np.ones(1), np.array([[-2e-3]])), fit(Deterministic(value_s=5.0)).chain)
    processes = (broker, broker, broker, group)
    return processes, [{0: broker.up, 1: broker.up, 3: group.up}, {1: broker.up, 2: broker.up}]


def test_hops_crossed_one_by_one_are_the_whole_chain():
    processes, needed = uneven_way()
    everything = reduce(np.kron, [processes[0].found_up, *(p.stationary for p in processes[1:])])
    shares = everything * np.linspace(0.1, 0.9, everything.size)  # as if some found a way around
    for start in (up_start(processes, (0,)), Start(processes=(0, 1, 2, 3), shares=shares)):
        whole = wait(processes, needed, start)
        assert whole.initial.size > 200
        solved = SolvedWait(wait=whole)
        crossed = CrossingWait(crossing=whole.crossing, held=float(whole.initial.sum()))
        assert crossed.atom == pytest.approx(solved.atom, rel=1e-12)
        assert crossed.mean_s == pytest.approx(solved.mean_s, rel=1e-9)
        assert crossed.variance_s2 == pytest.approx(solved.variance_s2, rel=1e-7)
        z = np.array([[1e-3 + 1e-2j, 0.5 + 0.0j], [1e-6 + 0.0j, 2.0 + 30.0j]])
        assert crossed.transform(z) == pytest.approx(solved.transform(z), abs=1e-12)
        halved = whole.scaled(0.5)
        half = CrossingWait(crossing=halved.crossing, held=float(halved.initial.sum()))
        wanted = SolvedWait(wait=halved).transform(z)
        assert half.transform(z) == pytest.approx(wanted, abs=1e-12)


def test_what_has_too_many_states_is_made_simpler_and_that_is_said():
    processes, _ = uneven_way()
    row = Components(
        processes=(*processes[:3], *([processes[3]] * 3)),
        of_broker=((0, 3, 4, 5), (1, 3, 4, 5)),
        of_link=((2,),),
    )
    found = stationary_wait(row, path(2))
    assert found.simplified == ("times up and down taken as exponential, as states are too many",)
    assert found.wait.initial.size < 2**6
    # What is up how often, and how long for, has not changed.
    for before, after in zip(row.processes, found.wait.crossing.processes, strict=True):
        assert after.availability == pytest.approx(before.availability, rel=1e-12)
        assert after.breaks_per_s == pytest.approx(before.breaks_per_s, rel=1e-12)
    uneven = replace(row, processes=processes[:1] * 7, of_broker=((0, 3, 4, 5, 6), (1, 3, 4, 5, 6)))
    found = stationary_wait(uneven, path(2))
    assert found.simplified == ("times up taken as exponential, as states are too many",)
    kept = found.wait.crossing.processes[0]
    assert kept.breaks_per_s == pytest.approx(processes[0].breaks_per_s, rel=1e-12)
    slow = processes[0].slowest_repair_per_s
    assert kept.slowest_repair_per_s == pytest.approx(slow, rel=1e-9)
    assert stationary_wait(replace(row, of_broker=((0,), (1,))), path(2)).simplified == ()


@pytest.mark.statistical
def test_a_group_met_again_later_is_remembered(faulty):
    """The first and the last broker share a group: not the same as two of their own."""
    failing = [faulty.failure(0.9), faulty.failure(0.97), faulty.failure(0.92), faulty.failure(0.9)]
    processes = [exponential(each) for each in failing]
    group = 3
    needs = [{0, 1, 2, group}, {2, 1, group}]
    needed = [{i: processes[i].up for i in hop} for hop in needs]
    start = up_start(processes, (0, group))
    assert tracked(needed, start.processes) == [(0, 1, 2, 3), (1, 2, 3)]
    found = wait(processes, needed, start)
    naive = faulty.naive_processes(failing, 400_000, np.random.default_rng(6))
    reached = naive.waits([sorted(hop) for hop in needs], (0, group))
    home = np.isfinite(reached)
    for time_s in (0.0, 600.0, 3600.0, 20_000.0):
        share = float(cdf(found, time_s))
        error = math.sqrt(share * (1.0 - share) / home.sum())
        assert np.mean(reached[home] <= time_s) == pytest.approx(share, abs=5.0 * error)


def unlike(count):
    """Processes of two phases whose times differ by the powers of two."""
    return [
        exponential(
            Failure(up=Exponential(mean_s=50.0 * 2**i + i), down=Exponential(mean_s=1.0 * 2**i))
        )
        for i in range(count)
    ]


def test_processes_put_together_keep_availability_failures_and_two_moments_of_the_wait():
    processes = [*unlike(5), uneven_way()[0][0]]
    needed = [{each: processes[each].up for each in each_hop} for each_hop in ((0, 1, 2), (3, 4))]
    for each_hop in needed:
        start = Start(processes=(), shares=np.ones(1))
        whole = SolvedWait(wait=wait(processes, [each_hop], start))
        merged, hops_left, _ = put_together(processes, [each_hop], ())
        found = SolvedWait(wait=wait(merged, hops_left, start))
        assert len(hops_left[0]) == 1
        assert found.atom == pytest.approx(whole.atom, abs=1e-14)
        assert found.mean_s == pytest.approx(whole.mean_s, rel=1e-10)
        assert found.variance_s2 == pytest.approx(whole.variance_s2, rel=1e-10)
        together = merged[next(iter(hops_left[0]))]
        ups = math.prod(processes[each].availability for each in each_hop)
        fails = sum(processes[e].breaks_per_s / processes[e].availability for e in each_hop)
        assert together.breaks_per_s == pytest.approx(ups * fails, rel=1e-12)
    both = [needed[0] | {5: processes[5].up}, needed[0] | needed[1]]
    _, kept, first = put_together(processes, both, (0,))
    assert [len(each_hop) for each_hop in kept] == [3, 3]  # what is known at the start stays apart
    assert first == (0,)


def test_groups_beyond_all_bounds_still_give_an_answer_that_says_how():
    """Thirty groups take both brokers of a hop down: 2³³ states; three hops share all of them."""
    processes = tuple(unlike(8)[i % 8] for i in range(37))
    groups = tuple(range(7, 37))
    row = Components(
        processes=processes,
        of_broker=tuple((broker, *groups) for broker in range(4)),
        of_link=((4,), (5,), (6,)),
    )
    found = stationary_wait(row, path(4))
    assert found.simplified == ("what is needed together taken as one, as states are too many",)
    # The home is up, so are its groups, which are all there are.
    others = math.prod(processes[each].availability for each in range(1, 7))
    assert found.wait.atom == pytest.approx(others, rel=1e-10)


def test_groups_that_tie_far_hops_together_are_met_anew_where_they_are_too_many():
    """Every two of eight brokers fail together by a group of their own: 28 groups, all unlike."""
    pairs = list(itertools.combinations(range(8), 2))
    mine = [[15 + n for n, pair in enumerate(pairs) if broker in pair] for broker in range(8)]
    processes = tuple(unlike(8)[i % 8] for i in range(15 + len(pairs)))
    row = Components(
        processes=processes,
        of_broker=tuple((broker, *groups) for broker, groups in enumerate(mine)),
        of_link=tuple((8 + link,) for link in range(7)),
    )
    found = stationary_wait(row, path(8))
    assert found.simplified == (
        "what is needed together taken as one, as states are too many",
        "failure groups taken as independent from hop to hop",
    )
    assert 0.0 < found.wait.atom < 1.0
    delay = buffer_delay(found.wait)
    assert delay is not None
    assert math.isfinite(delay.mean_s)
