"""Which brokers reach each other, against every state of small networks one by one."""

from __future__ import annotations

import itertools
import math
import time

import networkx as nx
import numpy as np
import pytest

from tidings.theory.repairs.disjoint_paths import disjoint_path_bound
from tidings.theory.repairs.frontier import Graph, TooWideError, connected, joined


def random_graph(rng, count, share=0.7):
    pairs = [pair for pair in itertools.combinations(range(count), 2) if rng.random() < share]
    return Graph(
        brokers={broker: float(rng.choice([1.0, 0.9, 0.5])) for broker in range(count)},
        links={pair: float(rng.choice([1.0, 0.8, 0.3])) for pair in pairs},
    )


def states(graph):
    """Every combination of what is up, as a graph, with its probability."""
    shares = {**graph.brokers, **graph.links}
    for works in itertools.product((True, False), repeat=len(shares)):
        up = {each for each, is_up in zip(shares, works, strict=True) if is_up}
        share = math.prod(a if each in up else 1.0 - a for each, a in shares.items())
        if share > 0.0:
            standing = nx.Graph()
            standing.add_nodes_from(b for b in graph.brokers if b in up)
            standing.add_edges_from(
                pair for pair in graph.links if pair in up and up.issuperset(pair)
            )
            yield standing, share


@pytest.mark.parametrize("seed", range(6))
def test_all_pairs_are_what_counting_states_gives(seed):
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, int(rng.integers(2, 6)))
    counted = np.zeros((len(graph.brokers), len(graph.brokers)))
    for standing, share in states(graph):
        for part in nx.connected_components(standing):
            counted[np.ix_(list(part), list(part))] += share
    assert connected(graph) == pytest.approx(counted, abs=1e-13)


def test_states_of_brokers_that_are_kept_are_what_counting_gives():
    graph = random_graph(np.random.default_rng(8), 5, share=0.8)
    kept = (3, 0, 4)
    counted: dict[tuple[int, ...], float] = {}
    for standing, share in states(graph):
        if 3 in standing:
            part_of = {b: i for i, p in enumerate(nx.connected_components(standing)) for b in p}
            parts = [part_of.get(broker, -1) for broker in kept]
            state = tuple(0 if part < 0 else 1 + parts.index(part) for part in parts)
            counted[state] = counted.get(state, 0.0) + share
    labels, shares = joined(graph, kept, needed={3})
    followed = dict(zip(map(tuple, labels.tolist()), shares.tolist(), strict=True))
    assert followed == pytest.approx(counted, abs=1e-13)


def test_thirty_brokers_of_degree_three_take_seconds():
    """All pairs at once; two of them are checked by leaving one broker out after the other."""
    links = nx.random_regular_graph(3, 30, seed=5).edges
    graph = Graph(
        brokers=dict.fromkeys(range(30), 0.95),
        links={tuple(sorted(pair)): 0.99 for pair in links},
    )
    began = time.process_time()
    joins = connected(graph)
    assert time.process_time() - began < 10.0
    labels, shares = joined(graph, (7, 21))
    assert joins[7, 21] == pytest.approx(
        shares[(labels[:, 0] > 0) & (labels[:, 0] == labels[:, 1])].sum(), abs=1e-12
    )
    assert np.all(np.diag(joins) == pytest.approx(0.95))
    assert joins == pytest.approx(joins.T)


def test_a_network_that_is_too_wide_is_given_up():
    wide = nx.complete_graph(17)
    graph = Graph(brokers=dict.fromkeys(range(17), 0.9), links=dict.fromkeys(wide.edges, 0.9))
    with pytest.raises(TooWideError):
        connected(graph)


# ---- the published bound -------------------------------------------------------------------------


def best_set_of_paths(graph, source, target):
    """The largest bound over all sets of paths without a common inner broker, tried one by one."""
    network = nx.Graph(graph.links.keys())
    paths = [tuple(path) for path in nx.all_simple_paths(network, source, target)]

    def share(path):
        inner = math.prod(graph.brokers[broker] for broker in path[1:-1])
        pairs = (tuple(sorted(pair)) for pair in itertools.pairwise(path))
        return inner * math.prod(graph.links[pair] for pair in pairs)

    best = 0.0
    for size in range(len(paths) + 1):
        for chosen in itertools.combinations(paths, size):
            inner = [broker for path in chosen for broker in path[1:-1]]
            if len(inner) == len(set(inner)):
                best = max(best, 1.0 - math.prod(1.0 - share(path) for path in chosen))
    return graph.brokers[source] * graph.brokers[target] * best


@pytest.mark.parametrize("seed", range(5))
def test_the_bound_takes_the_best_set_of_disjoint_paths(seed):
    rng = np.random.default_rng(seed)
    pairs = list(itertools.combinations(range(4), 2))
    graph = Graph(
        brokers={broker: float(rng.uniform(0.5, 1.0)) for broker in range(4)},
        links={pair: float(rng.uniform(0.5, 1.0)) for pair in pairs},
    )
    bound = disjoint_path_bound(graph, 0, 3)
    assert bound == pytest.approx(best_set_of_paths(graph, 0, 3), abs=1e-13)
    assert bound <= connected(graph)[0, 3] + 1e-13


def test_a_good_direct_link_leaves_all_other_paths():
    """Of a triangle: 1 − (1 − a_l)(1 − a_l² a_b), not the direct link alone."""
    links = {(0, 1): 0.99, (0, 2): 0.9, (1, 2): 0.9}
    graph = Graph(brokers={0: 1.0, 1: 1.0, 2: 0.8}, links=links)
    both = 1.0 - (1.0 - 0.99) * (1.0 - 0.9**2 * 0.8)
    assert disjoint_path_bound(graph, 0, 1) == pytest.approx(both, abs=1e-15)
    assert connected(graph)[0, 1] == pytest.approx(both, abs=1e-15)  # here it is exact
    assert both > 0.99 + 0.006


def test_many_paths_are_chosen_one_after_the_other():
    """Twenty detours side by side and a direct link: all are disjoint, so nothing is lost."""
    links = {(0, 1): 0.5}
    for broker in range(2, 22):
        links |= {(0, broker): 0.3, (1, broker): 0.3}
    graph = Graph(brokers={0: 0.9, 1: 0.8, **dict.fromkeys(range(2, 22), 0.7)}, links=links)
    wanted = 0.9 * 0.8 * (1.0 - 0.5 * (1.0 - 0.7 * 0.09) ** 20)
    assert disjoint_path_bound(graph, 0, 1) == pytest.approx(wanted, abs=1e-13)
