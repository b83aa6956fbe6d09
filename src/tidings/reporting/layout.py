"""Where brokers stand in the drawing of the topology: the same system, the same picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import networkx as nx

MOST_COLUMNS = 12  # levels of a tree that fit side by side on a phone
MOST_ROWS_OF_LINES = 2  # deeper trees with no more rows are lines: they go on below
MOST_FOR_SPRINGS = 150  # beyond, balancing all distances takes too long; a quicker layout must do


@dataclass(frozen=True, slots=True, kw_only=True)
class MapLayout:
    """Positions between 0 and 1 by broker, and how many brokers stand above each other.

    Of a tree also how many stand side by side: its levels, at even distances.
    """

    positions: dict[str, tuple[float, float]]
    rows: int
    columns: int = 0


def lay_out(names: Sequence[str], ends: Sequence[tuple[str, str]]) -> MapLayout:
    """Compute positions for a drawing: a tree from its middle to both sides, others by distance."""
    graph = nx.Graph()
    graph.add_nodes_from(names)
    graph.add_edges_from(ends)
    if len(names) == 1:
        return MapLayout(positions={names[0]: (0.5, 0.5)}, rows=1)
    if nx.is_tree(graph):
        tree = _tree_layout(graph)
        if tree.columns <= MOST_COLUMNS or tree.rows <= MOST_ROWS_OF_LINES:
            return tree
    return _graph_layout(graph)


def _tree_layout(graph: nx.Graph) -> MapLayout:
    """Lay out a tree: leaves share the height; a broker is in the middle of what is behind it."""
    order = {name: position for position, name in enumerate(graph)}
    root = min(nx.center(graph), key=lambda name: order[name])
    tree = nx.bfs_tree(
        graph, root, sort_neighbors=lambda names: sorted(names, key=order.__getitem__)
    )
    leaves = {
        name: sum(1 for end in (name, *nx.descendants(tree, name)) if tree.out_degree(end) == 0)
        for name in tree
    }
    left, right = _two_sides(list(tree.successors(root)), leaves)
    levels: dict[str, int] = {root: 0}
    heights: dict[str, float] = {root: 0.5}
    for branches, direction in ((left, -1), (right, 1)):
        total, done = max(1, sum(leaves[name] for name in branches)), 0
        for branch in branches:
            for name in nx.dfs_postorder_nodes(tree, branch):
                levels[name] = direction * nx.shortest_path_length(tree, root, name)
                children = list(tree.successors(name))
                if children:
                    heights[name] = (heights[children[0]] + heights[children[-1]]) / 2
                else:
                    heights[name] = (done + 0.5) / total
                    done += 1
    low, high = min(levels.values()), max(levels.values())
    rows = max(sum(leaves[name] for name in side) for side in (left, right))
    return MapLayout(
        positions={
            name: ((levels[name] - low) / (high - low), heights[name]) for name in graph.nodes
        },
        rows=rows,
        columns=high - low + 1,
    )


def _two_sides(branches: list[str], leaves: dict[str, int]) -> tuple[list[str], list[str]]:
    """Share out the branches of the root so that both sides hold about as many leaves."""
    sides: tuple[list[str], list[str]] = ([], [])
    for branch in sorted(branches, key=lambda name: -leaves[name]):
        lighter = min(sides[::-1], key=lambda side: sum(leaves[name] for name in side))
        lighter.append(branch)
    for side in sides:
        side.sort(key=branches.index)
    return sides


def _graph_layout(graph: nx.Graph) -> MapLayout:
    if len(graph) <= MOST_FOR_SPRINGS:
        raw = nx.kamada_kawai_layout(graph)
    else:
        raw = nx.spring_layout(graph, seed=1)
    xs = [float(x) for x, _ in raw.values()]
    ys = [float(y) for _, y in raw.values()]
    width, height = max(xs) - min(xs) or 1.0, max(ys) - min(ys) or 1.0
    return MapLayout(
        positions={
            name: ((float(x) - min(xs)) / width, (float(y) - min(ys)) / height)
            for name, (x, y) in raw.items()
        },
        rows=max(4, round(len(graph) ** 0.5) + 1),
    )
