import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.model import reading, topology


def graph_system(edges, brokers, routing=""):
    lines = ["tidings: 1", f"{routing}", "brokers:"]
    lines += [f"  b{i}: {{}}" for i in range(brokers)]
    lines += ["links:"] + [f"  - {{between: [b{a}, b{b}]}}" for a, b in edges]
    lines += ["publishers: {p: {at: b0, every: 1s, content: {event: {x: 1}}}}"]
    lines += ["subscribers: {s: {at: b0, wants: {}}}"]
    return reading.loads("\n".join(lines))


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 12), st.integers(0, 10**6))
def test_routing_from_a_root_is_a_shortest_path_tree(size, seed):
    graph = nx.gnm_random_graph(size, min(2 * size, size * (size - 1) // 2), seed=seed)
    graph.add_edges_from((i, i + 1) for i in range(size - 1))  # connected
    system = graph_system(list(graph.edges), size, "routing: {root: b0}")
    (tree,) = topology.trees(system)
    arcs = topology.arcs(system)
    depth = {0: 0}
    for broker, into in topology.walk(tree, arcs, 0):
        if into >= 0:
            depth[broker] = depth[arcs[into].source] + 1
    assert depth == dict(nx.single_source_shortest_path_length(graph, 0))
    assert sum(len(out) for out in tree.outgoing) == 2 * (size - 1)


def test_ties_are_broken_by_name():
    square = [(0, 1), (0, 2), (1, 3), (2, 3)]
    (tree,) = topology.trees(graph_system(square, 4, "routing: {root: b0}"))
    assert tree.outgoing[3] == (5,)  # b3 hangs on b1, which comes before b2


def test_the_reverse_of_an_arc_is_its_neighbour_in_the_list():
    arcs = topology.arcs(graph_system([(0, 1), (1, 2)], 3))
    for index, arc in enumerate(arcs):
        assert (arcs[index ^ 1].source, arcs[index ^ 1].target) == (arc.target, arc.source)


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 10), st.integers(0, 15), st.integers(0, 10**6))
def test_cycles_and_parts_are_found_as_networkx_finds_them(size, edges, seed):
    graph = nx.gnm_random_graph(size, min(edges, size * (size - 1) // 2), seed=seed)
    names, ends = [str(n) for n in graph], [(str(a), str(b)) for a, b in graph.edges]
    parts = topology.components(names, ends)
    assert sorted(map(sorted, parts)) == sorted(
        sorted(map(str, part)) for part in nx.connected_components(graph)
    )
    cycle = topology.find_cycle(ends)
    assert (cycle is None) == nx.is_forest(graph)
    if cycle:
        around = zip(cycle, cycle[1:] + cycle[:1], strict=True)
        assert all(graph.has_edge(int(a), int(b)) for a, b in around)


def test_one_tree_per_topic_and_a_default():
    ring = [(0, 1), (1, 2), (2, 3), (3, 0)]
    system = graph_system(ring, 4, "routing: {root: b0, by: topic, roots: {x: b2}}")
    default, own = topology.trees(system)
    assert (default.name, own.name) == ("", "x")
    assert default != own


@pytest.mark.parametrize("root", ["b0", "b3"])
def test_walk_meets_every_broker_once(root):
    system = graph_system([(0, 1), (1, 2), (1, 3)], 4)
    (tree,) = topology.trees(system)
    met = [b for b, _ in topology.walk(tree, topology.arcs(system), system.broker_index[root])]
    assert sorted(met) == [0, 1, 2, 3]
    assert met[0] == system.broker_index[root]
