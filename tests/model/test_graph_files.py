import json

import networkx as nx
import pytest

from tidings.errors import InvalidInputError
from tidings.model import reading, yaml_text
from tidings.model.graph_files import read_topology

PEERS = {
    "publishers": {"p": {"at": "n0", "every": 1.0, "content": {"event": {"x": 1}}}},
    "subscribers": {"s": {"at": "n3", "wants": {}}},
}


def tree():
    graph = nx.Graph()
    graph.add_edge("n0", "n1", delay_ms=20)
    graph.add_edge("n1", "n2", delay="0.5", reliability=0.9)
    graph.add_edge("n1", "n3")
    return graph


def write(graph, path):
    if path.suffix == ".graphml":
        nx.write_graphml(graph, path)
    elif path.suffix == ".gml":
        nx.write_gml(graph, path)
    else:
        path.write_text(json.dumps(nx.node_link_data(graph, edges="links")))
    return path


@pytest.mark.parametrize("suffix", [".graphml", ".gml", ".json"])
def test_a_tree_becomes_brokers_and_links(suffix, tmp_path):
    document = read_topology(write(tree(), tmp_path / f"t{suffix}"))
    system = reading.loads(yaml_text.dump({**document, **PEERS}))
    delays = {link.between: link.there.delay.mean_s for link in system.links}
    assert delays == {("n0", "n1"): 0.02, ("n1", "n2"): 0.5, ("n1", "n3"): 0.0}
    assert system.links[1].there.reliability == 0.9
    assert system.routing is None


def test_a_graph_with_cycles_loops_and_islands_becomes_a_valid_system(tmp_path):
    graph = tree()
    graph.add_edges_from([("n0", "n3"), ("n0", "n0"), ("lone", "other")])
    document = read_topology(write(graph, tmp_path / "t.gml"))
    assert document["routing"] == {"root": "n1"}
    assert set(document["brokers"]) == {"n0", "n1", "n2", "n3"}
    assert "2 brokers outside the largest part left out" in document["description"]
    assert "1 links of a broker to itself left out" in document["description"]
    reading.loads(yaml_text.dump({**document, **PEERS}))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.graphml", "<graphml"),
        ("a.gml", "graph ["),
        ("a.json", "[]"),
        ("a.json", "{"),
        ("a.txt", ""),
    ],
)
def test_a_bad_graph_is_an_error_of_input(name, text, tmp_path):
    (tmp_path / name).write_text(text)
    with pytest.raises(InvalidInputError, match=r"a\.(graphml|gml|json|txt)"):
        read_topology(tmp_path / name)
    with pytest.raises(InvalidInputError):
        read_topology(tmp_path / f"missing-{name}")


def test_a_delay_that_is_no_number_is_said(tmp_path):
    graph = nx.Graph()
    graph.add_edge("a", "b", delay="fast")
    with pytest.raises(InvalidInputError, match="'delay' is 'fast'"):
        read_topology(write(graph, tmp_path / "t.gml"))
