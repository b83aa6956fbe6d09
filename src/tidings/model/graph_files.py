"""Topologies from GraphML, GML and node-link JSON: brokers and links to build a system on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import networkx as nx

from tidings.errors import InvalidInputError

READERS = {
    ".graphml": lambda path: nx.read_graphml(path),
    ".gml": lambda path: nx.read_gml(path),
    ".json": lambda path: _read_node_link(path),
}
# What files call the time a link takes, in seconds unless the name says milliseconds.
DELAY_NAMES = {"delay": 1.0, "delay_s": 1.0, "latency": 1.0, "delay_ms": 1e-3, "latency_ms": 1e-3}


def read_topology(path: str | Path) -> dict[str, Any]:
    """The ``brokers``, ``links`` and, where needed, ``routing`` of a system's document.

    Self-loops are left out and parallel links become one; the largest connected part is kept, and
    what was left out is said in ``description``. A graph with cycles gets a routing tree rooted at
    its best connected broker. A link's delay is taken from its attribute ``delay`` (or a name
    beside it in ``DELAY_NAMES``), its reliability from ``reliability``.
    """
    graph = _read(Path(path))
    names = _names(graph)
    simple = nx.Graph(graph.to_undirected() if graph.is_directed() else graph)
    dropped = nx.number_of_selfloops(simple)
    simple.remove_edges_from(list(nx.selfloop_edges(simple)))
    parts = sorted(
        nx.connected_components(simple), key=lambda part: (-len(part), min(map(str, part)))
    )
    kept = simple.subgraph(parts[0])
    notes = [
        f"topology from {Path(path).name}: {len(kept)} brokers, {kept.number_of_edges()} links"
    ]
    if len(parts) > 1:
        notes.append(f"{len(simple) - len(kept)} brokers outside the largest part left out")
    if dropped:
        notes.append(f"{dropped} links of a broker to itself left out")
    order = [node for node in graph.nodes if node in kept]
    document: dict[str, Any] = {
        "tidings": 1,
        "description": "; ".join(notes),
        "brokers": {names[node]: {} for node in order},
        "links": [
            {"between": [names[first], names[second]], **_link_fields(data, path)}
            for first, second, data in kept.edges(data=True)
        ],
    }
    if kept.number_of_edges() >= len(kept):
        root = max(order, key=lambda node: kept.degree[node])
        document["routing"] = {"root": names[root]}
    return document


def _read(path: Path) -> Any:
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        raise InvalidInputError(
            f"{path}: a topology is read from {', '.join(READERS)} files, not from '{path.suffix}'"
        )
    try:
        graph = reader(path)
    except OSError as error:
        raise InvalidInputError(f"{path}: {(error.strerror or str(error)).lower()}") from error
    except Exception as error:  # the parsers raise whatever they meet
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InvalidInputError(f"{path}: not a readable {path.suffix} graph: {reason}") from error
    if graph.number_of_nodes() == 0:
        raise InvalidInputError(f"{path}: the graph has no nodes; wants at least one")
    return graph


def _read_node_link(path: Path) -> Any:
    document = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(document, Mapping) or "nodes" not in document:
        raise ValueError("no 'nodes' at its top")
    edges = "links" if "links" in document else "edges"
    return nx.node_link_graph(document, edges=edges)


def _names(graph: Any) -> dict[Any, str]:
    """A broker's name is its label where all labels differ, else its id; '--' joins link ends."""
    labels = {node: data.get("label", data.get("name")) for node, data in graph.nodes(data=True)}
    usable = all(labels.values()) and len(set(map(str, labels.values()))) == len(labels)
    chosen = {node: str(labels[node] if usable else node) for node in graph.nodes}
    return {node: name.replace("--", "-").strip() or str(node) for node, name in chosen.items()}


def _link_fields(data: Mapping[str, Any], path: str | Path) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name, scale in DELAY_NAMES.items():
        if name in data:
            fields["delay"] = _number(data[name], name, path) * scale
            break
    if "reliability" in data:
        fields["reliability"] = _number(data["reliability"], "reliability", path)
    return fields


def _number(value: Any, name: str, path: str | Path) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise InvalidInputError(f"{path}: a link's '{name}' is {value!r}; wants a number") from None
