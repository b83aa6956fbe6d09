"""Trees of brokers laid over a transit-stub network without regard to it, and what couples see.

The network is that of the GT-ITM generator, by default in its usual shape of a hundred nodes: one
transit domain of four nodes, three stubs behind each, eight nodes in a stub. Domains are connected
random graphs, and so is the network of several transit domains.

Subscriptions and events take the same path through the tree in opposite directions; each hop takes
the delay between the two nodes, so that a couple's delays are sums over its path.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph

from tidings.errors import InvalidInputError
from tidings.model import reading
from tidings.model.arrays import Floats, Ints
from tidings.model.system import System

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
        for name in self.__slots__:
            value = getattr(self, name)
            if isinstance(value, int) and value < 1:
                raise InvalidInputError(f"{name} is {value}; wants 1 or more")
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
    delays_s: Floats = csgraph.shortest_path(graph, directed=False)
    return delays_s


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """How long subscribers stay and are away, and the mean time between two events of a couple."""

    stay_s: float
    away_s: float
    every_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlay:
    """A tree of brokers: everybody's parent (its own number is higher) and the delay to it."""

    parents: Ints  # −1 for the first broker
    hop_s: Floats

    @property
    def brokers(self) -> int:
        """How many there are."""
        return self.parents.size

    def delays_s(self) -> Floats:
        """The delay through the tree between any two brokers, [broker, broker]."""
        between_s = np.zeros((self.brokers, self.brokers))
        for broker in range(1, self.brokers):
            over_s = between_s[int(self.parents[broker]), :broker] + self.hop_s[broker]
            between_s[broker, :broker] = between_s[:broker, broker] = over_s
        return between_s

    def path(self, start: int, end: int) -> list[int]:
        """The brokers from one to another, both included."""
        up, down = [start], [end]
        while up[-1] != down[-1]:  # whoever came later is farther from the root
            longer = up if up[-1] > down[-1] else down
            longer.append(int(self.parents[longer[-1]]))
        return up + down[-2::-1]

    def below(self) -> NDArray[np.bool_]:
        """[broker, other]: whether the other is the broker or hangs below it."""
        under = np.eye(self.brokers, dtype=bool)
        for broker in range(self.brokers - 1, 0, -1):
            under[self.parents[broker]] |= under[broker]
        return under


def random_overlay(shape: TransitStub, random: np.random.Generator) -> Overlay:
    """A broker on every node of a random network, joined into a random tree oblivious of it."""
    between_s = node_delays_s(shape, random)
    places = random.permutation(shape.nodes)
    parents = np.array([-1, *(int(random.integers(b)) for b in range(1, shape.nodes))])
    hop_s = np.zeros(shape.nodes)
    hop_s[1:] = between_s[places[1:], places[parents[1:]]]
    return Overlay(parents=parents, hop_s=hop_s)


def drawn_after_s(overlay: Overlay, couples: Ints, coverers: Ints) -> Floats:
    """From when on after subscribing what is published is drawn to the subscriber, in seconds.

    Brokers do not send a subscription on where they have sent one that contains it. With
    subscribers at ``coverers`` whose filters contain it, it stops at the first broker of its path
    on whose side of the next link one of them is; without any, at the publisher's broker. Events
    come there anyway, so they may have been published before by as long as they take there.
    ``couples`` has a subscriber and a publisher in each row.
    """
    below, delays_s = overlay.below(), overlay.delays_s()
    chosen = np.zeros(overlay.brokers, dtype=bool)
    chosen[coverers] = True
    count_below = (below & chosen).sum(axis=1)
    total = int(chosen.sum())
    after_s = np.zeros(len(couples))
    for row, (subscriber, publisher) in enumerate(couples):
        path = overlay.path(int(subscriber), int(publisher))
        stops = path[-1]
        for here, onwards in pairwise(path):
            up = int(overlay.parents[here]) == onwards
            if (count_below[here] if up else total - count_below[onwards]) > 0:
                stops = here
                break
        after_s[row] = delays_s[subscriber, stops] - delays_s[stops, publisher]
    return np.maximum(after_s, 0.0)


def couples_system(overlay: Overlay, couples: Ints, times: Times, coverers: Ints) -> System:
    """All couples on an overlay as one system, each with contents that only it cares about.

    Subscribers at ``coverers`` stay for ever, and their filters contain everybody's.
    """
    names = [f"b{number:03d}" for number in range(overlay.brokers)]
    visiting = {
        f"s{number}": {
            "at": names[subscriber],
            "wants": {"couple": number},
            "stays": times.stay_s,
            "away": times.away_s,
        }
        for number, (subscriber, _) in enumerate(couples)
    }
    lasting = {
        f"c{number}": {"at": names[broker], "wants": {"couple": {"at_least": 0}}}
        for number, broker in enumerate(coverers)
    }
    document = {
        "tidings": 1,
        "description": "couples of the notification-loss experiments",
        "brokers": {name: {} for name in names},
        "links": [
            {
                "between": [names[int(overlay.parents[broker])], names[broker]],
                "delay": float(overlay.hop_s[broker]),
            }
            for broker in range(1, overlay.brokers)
        ],
        "publishers": {
            f"p{number}": {
                "at": names[publisher],
                "every": {"exponential": times.every_s},
                "content": {"event": {"couple": number}},
            }
            for number, (_, publisher) in enumerate(couples)
        },
        "subscribers": visiting | lasting,
    }
    return reading.from_document(document, "the couples")
