"""Brokers and links as a graph, and the trees that events follow in it.

Every link is two *arcs*, one a direction: arc ``2i`` leads there, ``2i + 1`` back, so that
``arc ^ 1`` is the reverse of an arc.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tidings.errors import InvalidInputError
from tidings.model.behaviour import Channel
from tidings.model.system import Routing, System

ONLY_TREE = ""  # name of the tree when there is only one, or of the default one


@dataclass(frozen=True, slots=True, kw_only=True)
class Arc:
    """One direction of a link, between brokers by position."""

    source: int
    target: int
    channel: Channel


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """A tree over all brokers: for each broker the arcs that leave it within the tree."""

    name: str
    outgoing: tuple[tuple[int, ...], ...]


def arcs(system: System) -> tuple[Arc, ...]:
    """List all arcs, two a link."""
    index = system.broker_index
    directed: list[Arc] = []
    for link in system.links:
        first, second = (index[end] for end in link.between)
        directed.append(Arc(source=first, target=second, channel=link.there))
        directed.append(Arc(source=second, target=first, channel=link.back))
    return tuple(directed)


def trees(system: System) -> tuple[Tree, ...]:
    """List the trees that events follow: one, or one for each value that the routing names."""
    ends = [link.between for link in system.links]
    names = [broker.name for broker in system.brokers]
    routing = system.routing or Routing()
    rooted = []
    if routing.tree is not None:
        chosen = {frozenset(pair) for pair in routing.tree}
        keep = [i for i, pair in enumerate(ends) if frozenset(pair) in chosen]
        rooted.append(_tree(ONLY_TREE, keep, ends, names))
    elif routing.root is not None:
        rooted.append(_tree(ONLY_TREE, shortest_tree(names, ends, routing.root), ends, names))
    elif not routing.roots:
        rooted.append(_tree(ONLY_TREE, range(len(ends)), ends, names))
    for value, root in routing.roots:
        rooted.append(_tree(value, shortest_tree(names, ends, root), ends, names))
    return tuple(rooted)


def _tree(
    name: str, links: Iterable[int], ends: Sequence[tuple[str, str]], names: Sequence[str]
) -> Tree:
    index = {broker: position for position, broker in enumerate(names)}
    outgoing: list[list[int]] = [[] for _ in names]
    for link in links:
        first, second = ends[link]
        outgoing[index[first]].append(2 * link)
        outgoing[index[second]].append(2 * link + 1)
    return Tree(name=name, outgoing=tuple(tuple(each) for each in outgoing))


def shortest_tree(names: Sequence[str], ends: Sequence[tuple[str, str]], root: str) -> list[int]:
    """Find the links of the tree of fewest hops from ``root``; ties are broken by name.

    >>> shortest_tree(["a", "b", "c"], [("b", "c"), ("a", "c"), ("a", "b")], "a")
    [1, 2]
    """
    neighbours: dict[str, list[tuple[str, int]]] = {name: [] for name in names}
    for link, (first, second) in enumerate(ends):
        neighbours[first].append((second, link))
        neighbours[second].append((first, link))
    seen, chosen, waiting = {root}, [], deque([root])
    while waiting:
        broker = waiting.popleft()
        for neighbour, link in sorted(neighbours[broker]):
            if neighbour not in seen:
                seen.add(neighbour)
                chosen.append(link)
                waiting.append(neighbour)
    return sorted(chosen)


def walk(tree: Tree, system_arcs: Sequence[Arc], root: int) -> Iterator[tuple[int, int]]:
    """Yield brokers in order of distance from ``root``, each with the arc by which it is reached.

    The root itself comes first, with arc −1.
    """
    waiting = deque([(root, -1)])
    left = len(tree.outgoing)
    while waiting:
        broker, into = waiting.popleft()
        if left == 0:
            raise InvalidInputError(
                "the links that events follow do not form a tree: they contain a cycle"
            )
        left -= 1
        yield broker, into
        for arc in tree.outgoing[broker]:
            if into < 0 or arc != into ^ 1:
                waiting.append((system_arcs[arc].target, arc))


def preorder(tree: Tree, system_arcs: Sequence[Arc], count: int) -> list[int]:
    """Enumerate the brokers, [broker], so that each follows one of its neighbours soon.

    What the tree does not reach comes last.
    """
    place = [count] * count
    waiting, seen = [0], 0
    while waiting:
        broker = waiting.pop()
        place[broker] = seen
        seen += 1
        ends = (system_arcs[arc].target for arc in tree.outgoing[broker])
        waiting.extend(end for end in ends if place[end] == count)
    return place


def components(names: Iterable[str], ends: Iterable[tuple[str, str]]) -> list[list[str]]:
    """List the connected components of the graph, largest first."""
    neighbours: dict[str, list[str]] = {name: [] for name in names}
    for first, second in ends:
        neighbours[first].append(second)
        neighbours[second].append(first)
    left, parts = dict.fromkeys(neighbours), []
    while left:
        part, waiting = [], [next(iter(left))]
        left.pop(waiting[0])
        while waiting:
            name = waiting.pop()
            part.append(name)
            for neighbour in neighbours[name]:
                if neighbour in left:
                    left.pop(neighbour)
                    waiting.append(neighbour)
        parts.append(part)
    return sorted(parts, key=len, reverse=True)


def find_cycle(ends: Iterable[tuple[str, str]]) -> list[str] | None:
    """Find the brokers of one cycle; give None where the links make no cycle.

    >>> find_cycle([("a", "b"), ("b", "c"), ("c", "a")])
    ['c', 'b', 'a']
    """
    parent: dict[str, str] = {}
    neighbours: dict[str, list[str]] = {}
    for first, second in ends:
        if _find(parent, first) == _find(parent, second):
            return _path(neighbours, first, second)
        parent[_find(parent, first)] = _find(parent, second)
        neighbours.setdefault(first, []).append(second)
        neighbours.setdefault(second, []).append(first)
    return None


def _find(parent: dict[str, str], name: str) -> str:
    parent.setdefault(name, name)
    while parent[name] != name:
        parent[name] = parent[parent[name]]
        name = parent[name]
    return name


def _path(neighbours: dict[str, list[str]], start: str, end: str) -> list[str]:
    came_from: dict[str, str] = {end: end}
    waiting = deque([end])
    while waiting:
        name = waiting.popleft()
        for neighbour in neighbours.get(name, ()):
            if neighbour not in came_from:
                came_from[neighbour] = name
                waiting.append(neighbour)
    path = [start]
    while path[-1] != end:
        path.append(came_from[path[-1]])
    return path
