"""The published lower bound of connectivity: parallel ways that share no broker but their ends."""

from __future__ import annotations

import itertools
import math
from functools import cache

import networkx as nx

from tidings.theory.faults.connectivity import Graph

_MOST_PATHS, _MOST_INNER = 2_000, 16  # beyond which not every set of ways is looked at


def disjoint_path_bound(graph: Graph, source: int, target: int) -> float:
    """a_s a_t (1 − Π (1 − r_i)), r_i the availability of way i between the two ends.

    Over the set of ways without a common broker that makes it largest; where there are too many
    ways to look at all of them, over the best way, then the best without its brokers, and so on.

    >>> square = {(0, 1): 0.9, (1, 3): 0.9, (0, 2): 0.8, (2, 3): 0.8}
    >>> bound = disjoint_path_bound(Graph(brokers=dict.fromkeys(range(4), 1.0), links=square), 0, 3)
    >>> round(bound, 12)
    0.9316
    """
    ends = graph.brokers[source]
    if source == target:
        return ends
    ends *= graph.brokers[target]
    part = graph.between(source, target)
    if len(part.brokers) - 2 > _MOST_INNER:
        return ends * (1.0 - math.exp(-_greedily(part, source, target)))
    links = nx.Graph(part.links.keys())
    links.add_nodes_from((source, target))
    found: dict[frozenset[int], float] = {}
    for number, path in enumerate(nx.all_simple_paths(links, source, target)):
        if number >= _MOST_PATHS:
            return ends * (1.0 - math.exp(-_greedily(part, source, target)))
        inner = frozenset(path[1:-1])
        found[inner] = max(found.get(inner, 0.0), _weight(part, path))
    return ends * (1.0 - math.exp(-_heaviest(found, set(part.brokers) - {source, target})))


def _weight(graph: Graph, path: list[int]) -> float:
    """−ln(1 − r), so that weights of parallel ways add up."""
    share = math.prod(graph.brokers[broker] for broker in path[1:-1])
    for first, second in itertools.pairwise(path):
        share *= graph.links.get((first, second), 0.0) or graph.links.get((second, first), 0.0)
    return -math.log1p(-share) if share < 1.0 else math.inf


def _heaviest(weights: dict[frozenset[int], float], inner: set[int]) -> float:
    """The largest sum of weights over disjoint sets of brokers."""
    kept = [
        (each, weight)
        for each, weight in weights.items()
        if not any(other < each and weights[other] >= weight for other in weights)
    ]
    starting: dict[int, list[tuple[frozenset[int], float]]] = {}
    for each, weight in kept:
        if each:
            starting.setdefault(min(each), []).append((each, weight))

    @cache
    def best(left: frozenset[int]) -> float:
        if not left:
            return 0.0
        first = min(left)
        found = best(left - {first})
        for each, weight in starting.get(first, ()):
            if each <= left:
                found = max(found, weight + best(left - each))
        return found

    return weights.get(frozenset(), 0.0) + best(frozenset(inner))


def _greedily(graph: Graph, source: int, target: int) -> float:
    links = nx.Graph()
    links.add_nodes_from((source, target))
    for (first, second), share in graph.links.items():
        lost = -math.log(max(share, 1e-300))
        for broker in (first, second):
            if broker not in (source, target):
                lost -= 0.5 * math.log(max(graph.brokers[broker], 1e-300))
        links.add_edge(first, second, lost=lost)
    total = 0.0
    while nx.has_path(links, source, target):
        path = nx.shortest_path(links, source, target, weight="lost")
        total += _weight(graph, path)
        if len(path) == 2:
            links.remove_edge(source, target)
        links.remove_nodes_from(path[1:-1])
    return total
