from __future__ import annotations

import itertools

import networkx as nx
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.reporting.layout import lay_out


@st.composite
def trees(draw):
    size = draw(st.integers(2, 30))
    return [
        (str(draw(st.integers(0, child - 1), label="parent")), str(child))
        for child in range(1, size)
    ]


@settings(deadline=None, max_examples=50)
@given(trees())
def test_no_two_brokers_of_a_tree_stand_in_the_same_place(edges):
    names = [str(i) for i in range(len(edges) + 1)]
    found = lay_out(names, edges)
    assert set(found.positions) == set(names)
    assert all(0 <= x <= 1 and 0 <= y <= 1 for x, y in found.positions.values())
    for one, other in itertools.combinations(names, 2):
        (x1, y1), (x2, y2) = found.positions[one], found.positions[other]
        assert abs(x1 - x2) > 1e-9 or abs(y1 - y2) >= 1 / found.rows - 1e-9


def test_links_of_a_tree_lead_from_column_to_column():
    edges = [("hub", "a"), ("hub", "b"), ("a", "c"), ("a", "d"), ("b", "e")]
    found = lay_out(["hub", *"abcde"], edges).positions
    gaps = {round(abs(found[one][0] - found[other][0]), 9) for one, other in edges}
    assert gaps == {0.25}


def test_a_star_and_a_single_broker():
    assert lay_out(["a"], []).positions == {"a": (0.5, 0.5)}
    star = lay_out(["hub", *"abcd"], [("hub", name) for name in "abcd"])
    assert star.rows == 2
    assert star.positions["hub"] == (0.5, 0.5)


def test_other_graphs_are_laid_out_too_and_always_alike():
    graph = nx.cycle_graph(7)
    names, edges = [str(n) for n in graph], [(str(a), str(b)) for a, b in graph.edges]
    found = lay_out(names, edges)
    assert found == lay_out(names, edges)
    assert len(set(found.positions.values())) == 7


def test_a_large_mesh_is_laid_out():
    graph = nx.convert_node_labels_to_integers(nx.grid_2d_graph(13, 13))
    names, edges = [str(n) for n in graph], [(str(a), str(b)) for a, b in graph.edges]
    assert len(lay_out(names, edges).positions) == 169
