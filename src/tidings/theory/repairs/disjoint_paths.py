"""The published lower bound of connectivity: parallel paths that share no broker but their ends."""

from __future__ import annotations

import itertools
import math
from functools import cache

import networkx as nx

from tidings.theory.repairs.frontier import Graph

_MOST_PATHS, _MOST_INNER = 2_000, 16  # beyond which paths are chosen one after the other


def disjoint_path_bound(graph: Graph, source: int, target: int) -> float:
    """Bound P[two brokers are up and joined] by a_s a_t (1 − Π (1 − r_i)).

    r_i is the availability of path i between its ends. The paths are the set without a common inner
    broker that makes the bound largest; a direct link has no inner broker and always belongs to it.
    Where there are too many paths to try all sets: the best path, then the best without its
    brokers, and so on.

    >>> square = {(0, 1): 0.9, (1, 3): 0.9, (0, 2): 0.8, (2, 3): 0.8}
    >>> bound = disjoint_path_bound(Graph(brokers=dict.fromkeys(range(4), 1.0), links=square), 0, 3)
    >>> round(bound, 12)
    0.9316
    """
    ends = graph.brokers[source]
    if source == target:
        return ends
    ends *= graph.brokers[target]
    links = _between(graph, source, target)
    direct = _weight(graph, [source, target])
    if links.has_edge(source, target):
        links.remove_edge(source, target)
    total = direct + _parallel(graph, links, source, target)
    return ends * -math.expm1(-total)


def _between(graph: Graph, source: int, target: int) -> nx.Graph:
    """Find what lies on some path between two brokers: the biconnected part that holds both."""
    links = nx.Graph()
    links.add_edges_from(ends for ends, share in graph.links.items() if share > 0.0)
    had = links.has_edge(source, target)
    links.add_edge(source, target)
    parts = nx.biconnected_components(links)
    inside = links.subgraph(next(part for part in parts if {source, target} <= part)).copy()
    if not had:
        inside.remove_edge(source, target)
    return inside


def _parallel(graph: Graph, links: nx.Graph, source: int, target: int) -> float:
    """Find the largest sum of weights of paths without a common broker, the direct link apart."""
    if len(links) - 2 > _MOST_INNER:
        return _greedily(graph, links, source, target)
    weights: dict[frozenset[int], float] = {}
    for number, path in enumerate(nx.all_simple_paths(links, source, target)):
        if number >= _MOST_PATHS:
            return _greedily(graph, links, source, target)
        inner = frozenset(path[1:-1])
        weights[inner] = max(weights.get(inner, 0.0), _weight(graph, path))
    return _heaviest(weights)


def _weight(graph: Graph, path: list[int]) -> float:
    """Compute the weight of a path, −ln(1 − r), so that weights of parallel paths add up."""
    share = math.prod(graph.brokers[broker] for broker in path[1:-1])
    for first, second in itertools.pairwise(path):
        share *= graph.links.get((first, second), 0.0) or graph.links.get((second, first), 0.0)
    return -math.log1p(-share) if share < 1.0 else math.inf


def _heaviest(weights: dict[frozenset[int], float]) -> float:
    """Find the largest sum of weights over disjoint sets of brokers."""
    starting: dict[int, list[tuple[frozenset[int], float]]] = {}
    for inner, weight in weights.items():
        if not any(other < inner and weights[other] >= weight for other in weights):
            starting.setdefault(min(inner), []).append((inner, weight))

    @cache
    def best(left: frozenset[int]) -> float:
        if not left:
            return 0.0
        first = min(left)
        with_first = [
            weight + best(left - inner)
            for inner, weight in starting.get(first, ())
            if inner <= left
        ]
        return max([best(left - {first}), *with_first])

    return best(frozenset().union(*weights))


def _greedily(graph: Graph, links: nx.Graph, source: int, target: int) -> float:
    left = links.copy()
    for first, second in left.edges:
        share = graph.links.get((first, second), 0.0) or graph.links.get((second, first), 0.0)
        cost = -math.log(max(share, 1e-300))
        for broker in {first, second} - {source, target}:
            cost -= 0.5 * math.log(max(graph.brokers[broker], 1e-300))
        left.edges[first, second]["cost"] = cost
    total = 0.0
    while nx.has_path(left, source, target):
        path = nx.shortest_path(left, source, target, weight="cost")
        total += _weight(graph, path)
        left.remove_nodes_from(path[1:-1])
    return total
