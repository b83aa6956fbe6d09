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
    document = read_topology(write(tree(), tmp_path / f"t{suffix}")).document
    system = reading.loads(yaml_text.dump({**document, **PEERS}))
    delays = {link.between: link.there.delay.mean_s for link in system.links}
    assert delays == {("n0", "n1"): 0.02, ("n1", "n2"): 0.5, ("n1", "n3"): 0.0}
    assert system.links[1].there.reliability == 0.9
    assert system.routing is None


def test_a_graph_with_cycles_loops_and_islands_becomes_a_valid_system(tmp_path):
    graph = tree()
    graph.add_edges_from([("n0", "n3"), ("n0", "n0"), ("lone", "other")])
    topology = read_topology(write(graph, tmp_path / "t.gml"))
    document = topology.document
    assert topology.notes == (
        "1 links of a broker to itself were left out",
        "2 brokers that are not connected to the largest part were left out",
    )
    assert document["routing"] == {"root": "n1"}
    assert set(document["brokers"]) == {"n0", "n1", "n2", "n3"}
    assert (
        "2 brokers that are not connected to the largest part were left out"
        in document["description"]
    )
    assert "1 links of a broker to itself were left out" in document["description"]
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


EVERY = pytest.mark.parametrize("suffix", [".graphml", ".gml", ".json"])


def links(topology):
    return {tuple(link.pop("between")): link for link in topology.document["links"]}


@EVERY
def test_both_directions_of_a_directed_graph_are_kept(suffix, tmp_path):
    graph = nx.DiGraph()
    graph.add_edge("n0", "n1", delay=0.5, reliability=0.9)
    graph.add_edge("n1", "n2", delay=0.25)
    graph.add_edge("n1", "n0", delay=0.125, reliability=0.9)
    graph.add_edge("n3", "n2", delay=1.0)
    graph.add_edge("n2", "n3", delay=1.0)
    topology = read_topology(write(graph, tmp_path / f"t{suffix}"))
    assert topology.notes == ()
    system = reading.loads(yaml_text.dump({**topology.document, **PEERS}))
    ways = {
        ends: (arc.delay.mean_s, arc.reliability)
        for link in system.links
        for ends, arc in ((link.between, link.there), (link.between[::-1], link.back))
    }
    assert ways[("n0", "n1")] == (0.5, 0.9)
    assert ways[("n1", "n0")] == (0.125, 0.9)
    assert ways[("n1", "n2")] == ways[("n2", "n1")] == (0.25, 1.0)  # it has only one direction
    assert links(topology)[("n0", "n1")]["back"] == {"delay": 0.125}
    assert "back" not in str(links(read_topology(tmp_path / f"t{suffix}"))[("n2", "n3")])


@EVERY
@pytest.mark.parametrize(
    ("name", "written", "delay_s"),
    [
        ("delay", "5ms", 0.005),
        ("delay", "0.5", 0.5),
        ("latency_ms", "5", 0.005),
        ("latency_ms", 2.5, 0.0025),
        ("delay_ms", "2 s", 2.0),
        ("delay_s", 3, 3.0),
    ],
)
def test_a_delay_may_be_a_text(suffix, name, written, delay_s, tmp_path):
    graph = nx.Graph()
    graph.add_edge("a", "b", **{name: written}, reliability="0.5")
    found = read_topology(write(graph, tmp_path / f"t{suffix}"))
    assert links(found)[("a", "b")] == {"delay": delay_s, "reliability": 0.5}
    assert found.notes == ()


def test_every_value_that_is_no_delay_or_share_is_said(tmp_path):
    graph = nx.DiGraph()
    graph.add_edge("a", "b", delay="fast", reliability=2)
    graph.add_edge("b", "a", delay=-1)
    graph.add_edge("b", "c", delay_ms="nan", reliability="sure")
    with pytest.raises(InvalidInputError) as error:
        read_topology(write(graph, tmp_path / "t.json"))
    assert [(problem.at, problem.saw) for problem in error.value.problems] == [
        ("edge a--b.delay", "'fast'"),
        ("edge a--b.reliability", "2"),
        ("edge b--a.delay", "-1"),
        ("edge b--c.delay_ms", "'nan'"),
        ("edge b--c.reliability", "'sure'"),
    ]


GRAPHS = {
    "t.json": """{"nodes": [{"id": "a"}, {"id": "b"}, {"id": "a"}],
        "edges": [{"source": "a", "target": "mars"}, {"source": "venus", "target": "b"}]}""",
    "t.graphml": """<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><graph>
        <node id="a"/><node id="b"/><node id="a"/>
        <edge source="a" target="mars"/><edge source="venus" target="b"/></graph></graphml>""",
}


@pytest.mark.parametrize("name", GRAPHS)
def test_edges_to_nowhere_and_nodes_that_are_there_twice_are_named(name, tmp_path):
    (tmp_path / name).write_text(GRAPHS[name])
    with pytest.raises(InvalidInputError) as error:
        read_topology(tmp_path / name)
    assert [str(problem) for problem in error.value.problems] == [
        "edge 1: got the target 'mars'; wants the id of a node",
        "edge 2: got the source 'venus'; wants the id of a node",
        "node 'a': got 2 nodes with this id; wants each id once",
    ]


@pytest.mark.parametrize(
    ("inside", "complaint"),
    [
        ("node [ id 1 ] node [ id 2 ] edge [ source 1 target 7 ]", "undefined target 7"),
        ("node [ id 1 ] node [ id 1 ]", "node id 1 is duplicated"),
        ('node [ id 1 label "a--b" ] node [ id 2 label "a-b" ]', "node 'a-b': got 2 nodes"),
    ],
)
def test_so_they_are_in_gml(inside, complaint, tmp_path):
    (tmp_path / "t.gml").write_text(f"graph [ {inside} ]")
    with pytest.raises(InvalidInputError, match=complaint):
        read_topology(tmp_path / "t.gml")


def test_gml_needs_no_labels(tmp_path):
    (tmp_path / "t.gml").write_text(
        "graph [ node [ id 1 ] node [ id 2 ] edge [ source 1 target 2 ] ]"
    )
    assert list(read_topology(tmp_path / "t.gml").document["brokers"]) == ["1", "2"]


@EVERY
def test_attributes_that_say_nothing_in_a_system_are_noted(suffix, tmp_path):
    graph = nx.Graph()
    graph.add_node("a", label="x", name="here", longitude=4.2)
    graph.add_node("b", label="y", name="there", longitude=4.3)
    graph.add_edge("a", "b", delay=1.0, latency=2.0, speed="fast", reliability=0.5)
    if suffix == ".gml":
        for _, data in graph.nodes(data=True):
            data.pop("label")
        write(graph, tmp_path / "t.gml")
    else:
        write(graph, tmp_path / f"t{suffix}")
    assert read_topology(tmp_path / f"t{suffix}").notes == (
        "attributes of nodes that were not used: name, longitude",
        "attributes of edges that were not used: latency, speed",
    )


def test_parallel_links_become_the_first_of_them(tmp_path):
    graph = nx.MultiDiGraph()
    graph.add_edge("a", "b", delay=1.0)
    graph.add_edge("a", "b", delay=2.0)
    graph.add_edge("b", "a", delay=3.0)
    graph.add_edge("b", "a", delay=4.0)
    found = read_topology(write(graph, tmp_path / "t.json"))
    assert found.notes == ("2 duplicate links were left out",)
    assert links(found) == {("a", "b"): {"delay": 1.0, "back": {"delay": 3.0}}}
