"""Transit-stub networks: domains of a few transit nodes, stubs of near nodes behind each of them.

The model of the GT-ITM generator, by default in its usual shape of a hundred nodes: one transit
domain of four nodes, three stubs behind each, eight nodes in a stub. Domains are connected random
graphs, and so is the network of several transit domains.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph

from tidings.errors import InvalidInputError

Floats = NDArray[np.float64]
Join = Callable[[int, int, float], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class TransitStub:
    """The shape of a network, and mean delays of its links in seconds."""

    transit_domains: int = 1
    transit_nodes: int = 4  # of each domain
    stubs_per_transit_node: int = 3
    nodes_per_stub: int = 8
    further_links: float = 0.4  # beside a spanning tree, as a share of the nodes of a domain
    domains_s: float = 0.56  # between two transit domains
    transit_s: float = 0.28
    access_s: float = 0.14  # between a stub and its transit node
    stub_s: float = 0.035

    def __post_init__(self) -> None:
        for name in (
            "transit_domains",
            "transit_nodes",
            "stubs_per_transit_node",
            "nodes_per_stub",
        ):
            if getattr(self, name) < 1:
                raise InvalidInputError(f"{name} is {getattr(self, name)}; wants 1 or more")
        for name in ("further_links", "domains_s", "transit_s", "access_s", "stub_s"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0.0):
                raise InvalidInputError(f"{name} is {value}; wants a number of 0 or more")

    @property
    def nodes(self) -> int:
        """How many nodes there are."""
        behind = self.stubs_per_transit_node * self.nodes_per_stub
        return self.transit_domains * self.transit_nodes * (1 + behind)


def node_delays_s(shape: TransitStub, random: np.random.Generator) -> Floats:
    """The least delay between any two nodes of a random network, in seconds, [node, node].

    Every link's delay is drawn evenly from half to one and a half times its mean.
    """
    links: dict[tuple[int, int], float] = {}

    def join(a: int, b: int, mean_s: float) -> None:
        links.setdefault((min(a, b), max(a, b)), mean_s * float(random.uniform(0.5, 1.5)))

    transit_count = shape.transit_domains * shape.transit_nodes
    domains = np.arange(transit_count).reshape(shape.transit_domains, -1).tolist()
    for domain in domains:
        _connect(domain, shape.transit_s, shape, random, join)

    def join_domains(a: int, b: int, mean_s: float) -> None:
        one, other = (domains[each][int(random.integers(shape.transit_nodes))] for each in (a, b))
        join(one, other, mean_s)

    _connect(list(range(len(domains))), shape.domains_s, shape, random, join_domains)
    first = transit_count
    for transit in range(transit_count):
        for _ in range(shape.stubs_per_transit_node):
            stub = list(range(first, first + shape.nodes_per_stub))
            _connect(stub, shape.stub_s, shape, random, join)
            join(transit, stub[int(random.integers(len(stub)))], shape.access_s)
            first += shape.nodes_per_stub
    ends = np.array(list(links))
    size = shape.nodes
    graph = sparse.coo_array(
        (list(links.values()), (ends[:, 0], ends[:, 1])), shape=(size, size)
    ).tocsr()
    found: Floats = csgraph.shortest_path(graph, directed=False)
    return found


def _connect(
    nodes: list[int], mean_s: float, shape: TransitStub, random: np.random.Generator, join: Join
) -> None:
    """Join the nodes of a domain: a random tree, and some links beside it."""
    for position in range(1, len(nodes)):
        join(nodes[position], nodes[int(random.integers(position))], mean_s)
    if len(nodes) > 2:
        for _ in range(round(shape.further_links * len(nodes))):
            a, b = random.choice(len(nodes), size=2, replace=False)
            join(nodes[int(a)], nodes[int(b)], mean_s)
