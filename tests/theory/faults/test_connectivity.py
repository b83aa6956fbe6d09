from __future__ import annotations

import itertools

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.theory.faults.components import Components, Path
from tidings.theory.faults.connectivity import Graph, connected, joined
from tidings.theory.faults.disjoint_paths import disjoint_path_bound
from tidings.theory.faults.disjoint_products import network, ways_used
from tidings.theory.faults.processes import exponential
from tidings.theory.faults.reachability import Reachability, cut_off
from tidings.theory.faults.sampled_connectivity import samples

SHARES = st.floats(0.05, 0.999)


@st.composite
def graphs(draw, most_brokers=5, most_links=6):
    """A small graph with all its availabilities."""
    brokers = draw(st.integers(2, most_brokers))
    pairs = list(itertools.combinations(range(brokers), 2))
    ends = draw(st.lists(st.sampled_from(pairs), min_size=1, max_size=most_links, unique=True))
    return Graph(
        brokers={broker: draw(SHARES) for broker in range(brokers)},
        links={pair: draw(SHARES) for pair in ends},
    )


def by_enumeration(faulty, graph, source, target):
    ends = list(graph.links)
    shares = [*graph.brokers.values(), *graph.links.values()]
    count = len(graph.brokers)
    total = 0.0
    for state, share in faulty.states(shares):
        brokers = {broker for broker in range(count) if state[broker]}
        links = [number for number in range(len(ends)) if state[count + number]]
        total += share * faulty.connected(brokers, links, ends, source, target)
    return total


@settings(deadline=None, max_examples=40)
@given(graph=graphs())
def test_connectivity_equals_brute_force(faulty, graph):
    target = len(graph.brokers) - 1
    exact = by_enumeration(faulty, graph, 0, target)
    assert connected(graph, 0, target) == pytest.approx(exact, abs=1e-12)
    assert connected(graph, target, 0) == pytest.approx(exact, abs=1e-12)
    assert disjoint_path_bound(graph, 0, target) <= exact + 1e-12


@settings(deadline=None, max_examples=40)
@given(graph=graphs(most_brokers=6, most_links=10), data=st.data())
def test_connectivity_rises_with_every_availability_and_is_a_probability(graph, data):
    target = len(graph.brokers) - 1
    before = connected(graph, 0, target)
    assert -1e-15 <= before <= graph.brokers[0] + 1e-15
    better = data.draw(st.floats(0.1, 1.0))
    if data.draw(st.booleans()):
        which = data.draw(st.sampled_from(sorted(graph.brokers)))
        share = graph.brokers[which]
        raised = Graph(
            brokers={**graph.brokers, which: share + better * (1 - share)}, links=graph.links
        )
    else:
        ends = data.draw(st.sampled_from(sorted(graph.links)))
        share = graph.links[ends]
        raised = Graph(
            brokers=graph.brokers, links={**graph.links, ends: share + better * (1 - share)}
        )
    assert connected(raised, 0, target) >= before - 1e-13


def test_all_ways_of_being_joined_add_up():
    graph = Graph(
        brokers={0: 0.9, 1: 0.8, 2: 0.7, 3: 0.6},
        links={(0, 1): 0.9, (1, 2): 0.9, (2, 3): 0.9, (0, 3): 0.5},
    )
    labels, shares = joined(graph, (0, 1, 2))
    assert shares.sum() == pytest.approx(0.9 * 0.7, abs=1e-14)  # with both ends up
    alone = shares[(labels == [1, 0, 3]).all(axis=1)].sum()
    around = 0.6 * 0.9 * 0.5
    assert alone == pytest.approx(0.9 * 0.2 * 0.7 * (1 - around), abs=1e-14)


def test_a_ladder_of_fifty_components_agrees_with_its_transfer_matrix():
    """Twelve rungs: 24 brokers and 34 links, by a transfer matrix over the states of a rung."""
    rungs, up, over = 12, 0.93, 0.97
    links = {}
    for rung in range(rungs):
        links[(2 * rung, 2 * rung + 1)] = over
        if rung:
            links[(2 * rung - 2, 2 * rung)] = over
            links[(2 * rung - 1, 2 * rung + 1)] = over
    graph = Graph(brokers=dict.fromkeys(range(2 * rungs), up), links=links)
    # Which of a rung's brokers are joined to the start. No way turns back: it would have to cross
    # between two rungs three times, and there are two links.
    reached = {(True, True): up * up * over, (True, False): up * (1 - up * over)}
    for _ in range(rungs - 1):
        new: dict[tuple[bool, bool], float] = {}
        for (first, second), share in reached.items():
            for ups in itertools.product((True, False), repeat=5):
                a, b, la, lb, across = ups
                chance = share
                for works, p in zip(ups, (up, up, over, over, over), strict=True):
                    chance *= p if works else 1 - p
                one, two = a and la and first, b and lb and second
                if across and a and b:
                    one = two = one or two
                if one or two:
                    new[(one, two)] = new.get((one, two), 0.0) + chance
        reached = new
    exact = sum(share for (first, _), share in reached.items() if first)
    assert connected(graph, 0, 2 * rungs - 2) == pytest.approx(exact, abs=1e-12)


def system_of(faulty, ends, brokers, groups=(), availability=0.9):
    """Components of a graph; groups are lists of ('b' or 'l', position)."""
    found = [exponential(faulty.failure(availability - 0.01 * i)) for i in range(brokers)]
    of_broker = [[i] for i in range(brokers)]
    of_link = []
    for number in range(len(ends)):
        found.append(exponential(faulty.failure(0.97 - 0.005 * number)))
        of_link.append([len(found) - 1])
    for members in groups:
        found.append(exponential(faulty.failure(0.95)))
        for kind, place in members:
            (of_broker if kind == "b" else of_link)[place].append(len(found) - 1)
    return Components(
        processes=tuple(found),
        of_broker=tuple(map(tuple, of_broker)),
        of_link=tuple(map(tuple, of_link)),
    )


ENDS = [(0, 1), (1, 2), (2, 3), (0, 4), (4, 3), (1, 4)]
USUAL = Path(brokers=(0, 1, 2, 3), links=(0, 1, 2))
GROUPS = [("b", 1), ("b", 4)], [("l", 2), ("b", 4)]


def grouped_by_enumeration(faulty, components, ends, source, target):
    total = 0.0
    for state, share in faulty.states([p.availability for p in components.processes]):
        brokers = {b for b, need in enumerate(components.of_broker) if all(state[p] for p in need)}
        links = [n for n, need in enumerate(components.of_link) if all(state[p] for p in need)]
        total += share * faulty.connected(brokers, links, ends, source, target)
    return total


@pytest.mark.parametrize("groups", [(), GROUPS])
def test_components_that_fail_together_are_exact_in_every_method(faulty, groups):
    components = system_of(faulty, ENDS, 5, groups)
    known = network(components, ENDS)
    exact = grouped_by_enumeration(faulty, components, ENDS, 0, 3)
    found = Reachability(network=known).between(USUAL)
    assert (found.method, found.error) == ("exact", 0.0)
    assert found.share == pytest.approx(exact, abs=1e-12)
    low, high = ways_used(known, USUAL, gap=0.01, most_cells=10_000).bounds
    assert low <= exact <= high <= low + 0.01 + 1e-12
    used = ways_used(known, USUAL, gap=0.0, most_cells=10**6)
    assert sum(used.shares.values()) == pytest.approx(exact, abs=1e-12)
    needed = {each for element in components.of_path(USUAL) for each in element}
    assert used.shares[USUAL] == pytest.approx(components.all_up(needed), abs=1e-14)
    assert cut_off(known, USUAL).shares.sum() == pytest.approx(
        1.0 - exact / components.all_up(components.of_broker[0]), abs=1e-12
    )


@pytest.mark.statistical
def test_samples_agree_within_their_standard_error(faulty):
    components = system_of(faulty, ENDS, 5, GROUPS)
    exact = grouped_by_enumeration(faulty, components, ENDS, 0, 3)
    seen = samples(network(components, ENDS)).connected(0, 3)
    assert seen.se < 0.003
    assert seen.share == pytest.approx(exact, abs=5.0 * seen.se)


def test_a_network_too_wide_is_bounded_or_sampled_and_says_so(faulty):
    dense = nx.random_regular_graph(12, 40, seed=3)
    ends = [tuple(sorted(each)) for each in dense.edges]
    usual = Path(brokers=ends[0], links=(0,))

    def found(availability):
        count = 40 + len(ends)
        components = Components(
            processes=tuple(exponential(faulty.failure(availability)) for _ in range(count)),
            of_broker=tuple((i,) for i in range(40)),
            of_link=tuple((40 + i,) for i in range(len(ends))),
        )
        return Reachability(network=network(components, ends)).between(usual)

    fair = found(0.95)  # twelve ways without a common broker bound it better than single cells
    assert fair.method == "bounds"
    assert 0.0 < fair.error < 1e-8
    assert fair.share == pytest.approx(0.95**2, abs=1.001 * fair.error)
    good, poor = found(0.9999), found(0.6)  # hardly ever cut off while both ends are up
    assert good.method == "bounds"
    assert good.error < 1e-12
    assert good.share == pytest.approx(0.9999**2, abs=1e-12)
    assert poor.method == "sampled"
    assert 0.0 < poor.error < 0.003
    assert poor.share == pytest.approx(0.36, abs=5.0 * poor.error)


def test_the_published_bound_takes_the_best_set_of_ways():
    """The best single way blocks two others that together are better."""
    brokers = dict.fromkeys(range(6), 1.0)
    links = {(0, 1): 0.9, (1, 2): 0.95, (2, 5): 0.9, (1, 3): 0.85, (3, 5): 0.85, (0, 4): 0.85}
    links |= {(4, 2): 0.85}
    bound = disjoint_path_bound(Graph(brokers=brokers, links=links), 0, 5)
    apart = 1 - (1 - 0.9 * 0.85 * 0.85) * (1 - 0.85 * 0.85 * 0.9)
    assert bound == pytest.approx(max(apart, 0.9 * 0.95 * 0.9), abs=1e-14)
    assert apart > 0.9 * 0.95 * 0.9


def test_one_broker_and_a_tree_need_no_way_around():
    graph = Graph(brokers={0: 0.9, 1: 0.8, 2: 0.7}, links={(0, 1): 0.95, (1, 2): 0.85})
    assert connected(graph, 1, 1) == 0.8
    assert connected(graph, 0, 2) == pytest.approx(0.9 * 0.95 * 0.8 * 0.85 * 0.7, abs=1e-15)
    assert disjoint_path_bound(graph, 0, 2) == pytest.approx(connected(graph, 0, 2), abs=1e-14)
