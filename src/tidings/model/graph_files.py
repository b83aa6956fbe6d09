"""Topologies from GraphML, GML and node-link JSON: brokers and links to build a system on."""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import networkx as nx

from tidings.errors import InvalidInputError, Problem
from tidings.model import json_text, units
from tidings.model.document import Place, describe
from tidings.model.plain_files import open_plain, read_text

# What files call the time a link takes, in seconds unless the name says milliseconds.
DELAY_NAMES = {"delay": 1, "delay_s": 1, "latency": 1, "delay_ms": 1000, "latency_ms": 1000}
LABELS = ("label", "name")
# These tell nodes and edges apart and are no attributes of theirs.
IDENTITY = ("id", "key", "source", "target")


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """The ``brokers``, ``links`` and, where needed, ``routing`` of a system's document."""

    document: dict[str, Any]
    notes: tuple[str, ...]  # what of the file went unused or was left out


def read_topology(path: str | Path) -> Topology:
    """Read a graph as the beginning of a system, with notes on what of the graph is not in it.

    Self-loops are left out and parallel links become one, the first; the largest connected part is
    kept. A graph with cycles gets a routing tree rooted at its best connected broker. The delay of
    a link is taken from its attribute ``delay`` (or a name beside it in ``DELAY_NAMES``), its
    reliability from ``reliability``. In a directed graph the edge that comes first is the way there
    and the opposite edge, if there is one, says what differs on the way back.
    """
    source = Path(path)
    graph = _read(source)
    problems: list[Problem] = []
    names = _names(graph, problems)
    edges, notes = _edges(graph)
    links = [_link(names, ends, there, back, problems) for ends, there, back in edges]
    if problems:
        raise InvalidInputError(f"{path}: not a topology of brokers and links", problems)
    simple = nx.Graph([ends for ends, _, _ in edges])
    simple.add_nodes_from(graph)
    parts = sorted(nx.connected_components(simple), key=_largest_first)
    order = [node for node in graph.nodes if node in parts[0]]
    if len(parts) > 1:
        notes.append(
            f"{len(simple) - len(order)} brokers that are not connected to the largest part "
            "were left out"
        )
    kept = {names[node] for node in order}
    document: dict[str, Any] = {
        "tidings": 1,
        "description": "",
        "brokers": {names[node]: {} for node in order},
        "links": [link for link in links if link["between"][0] in kept],
    }
    counts = f"{len(order)} brokers, {len(document['links'])} links"
    document["description"] = "; ".join([f"topology from {source.name}: {counts}", *notes])
    if len(document["links"]) >= len(order):
        document["routing"] = {"root": names[max(order, key=lambda node: simple.degree[node])]}
    return Topology(document=document, notes=(*notes, *_unused(graph)))


def _largest_first(part: Iterable[Any]) -> tuple[int, str]:
    names = [str(node) for node in part]
    return -len(names), min(names)


def _edges(graph: Any) -> tuple[list[tuple[tuple[Any, Any], Any, Any]], list[str]]:
    """List joined pairs of nodes, with the attributes there and (or None) back; and notes."""
    there: dict[frozenset[Any], tuple[tuple[Any, Any], Any]] = {}
    back: dict[frozenset[Any], Any] = {}
    loops = parallel = 0
    for first, second, data in graph.edges(data=True):
        pair = frozenset((first, second))
        if first == second:
            loops += 1
        elif pair not in there:
            there[pair] = ((first, second), data)
        elif graph.is_directed() and pair not in back and there[pair][0] == (second, first):
            back[pair] = data
        else:
            parallel += 1
    notes = [f"{loops} links of a broker to itself were left out"] if loops else []
    if parallel:
        notes.append(f"{parallel} duplicate links were left out")
    return [(ends, data, back.get(pair)) for pair, (ends, data) in there.items()], notes


def _link(
    names: Mapping[Any, str], ends: tuple[Any, Any], there: Any, back: Any, problems: list[Problem]
) -> dict[str, Any]:
    between = [names[end] for end in ends]
    link = {"between": between, **_fields(there, "--".join(between), problems)}
    if back is not None:
        fields = _fields(back, "--".join(between[::-1]), problems)
        differs = {name: value for name, value in fields.items() if link.get(name) != value}
        link |= {"back": differs} if differs else {}
    return link


def _fields(data: Mapping[str, Any], name: str, problems: list[Problem]) -> dict[str, Any]:
    place = Place(data, (f"edge {name}",), problems)
    fields: dict[str, Any] = {}
    for used in _used(data):
        if used == "reliability":
            fields[used] = _share(place.inside(used))
        else:
            fields["delay"] = _delay_s(place.inside(used), DELAY_NAMES[used])
    return fields


def _used(data: Mapping[str, Any]) -> list[str]:
    """List the attributes of an edge that a link is made from."""
    delays = [name for name in DELAY_NAMES if name in data][:1]
    return delays + [name for name in ("reliability",) if name in data]


def _delay_s(place: Place, per_s: int) -> float | None:
    """Read a delay, in seconds; a bare number is in the unit of its attribute's name."""
    bare = place.value
    if isinstance(bare, str):
        bare = units.parse(bare, {})
    if isinstance(bare, int | float) and not isinstance(bare, bool):
        return None if place.instead(bare).seconds() is None else bare / per_s
    return place.seconds()


def _share(place: Place) -> float | None:
    bare = units.parse(place.value, {}) if isinstance(place.value, str) else None
    return (place if bare is None else place.instead(bare)).share()


def _names(graph: Any, problems: list[Problem]) -> dict[Any, str]:
    """Name each broker by its label where all labels differ, else by its id.

    '--' in a name becomes '-', since '--' joins the ends of links.
    """
    label = _label(graph)
    chosen = {node: str(data[label] if label else node) for node, data in graph.nodes(data=True)}
    names = {node: name.replace("--", "-").strip() or str(node) for node, name in chosen.items()}
    for name, count in Counter(names.values()).items():
        at = f"node '{name}'"
        if count > 1:
            problems.append(Problem(at=at, saw=f"{count} nodes of this name", want="one"))
        if not name.strip():
            problems.append(Problem(at=at, saw="an empty name", want="a name for every node"))
    return names


def _label(graph: Any) -> str | None:
    """Find the attribute that names all nodes, each differently; give None if there is none."""
    for label in LABELS:
        values = [str(data.get(label, "")).strip() for _, data in graph.nodes(data=True)]
        if all(values) and len(set(values)) == len(values):
            return label
    return None


def _unused(graph: Any) -> Iterator[str]:
    """Yield notes on attributes of nodes and edges that say nothing in a system."""
    label = _label(graph)
    of_nodes = {name: None for _, data in graph.nodes(data=True) for name in data if name != label}
    of_edges = {
        name: None
        for *_, data in graph.edges(data=True)
        for name in data
        if name not in _used(data)
    }
    for what, attributes in (("nodes", of_nodes), ("edges", of_edges)):
        shown = [str(name) for name in attributes if name not in IDENTITY]
        if shown:
            yield f"attributes of {what} that were not used: {', '.join(shown)}"


# ---- the files ---------------------------------------------------------------------------------


def _read(path: Path) -> Any:
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        raise InvalidInputError(
            f"{path}: a topology is read from {', '.join(READERS)} files, not from '{path.suffix}'"
        )
    try:
        graph = reader(path)
    except InvalidInputError:
        raise
    except OSError as error:
        raise InvalidInputError(f"{path}: {(error.strerror or str(error)).lower()}") from error
    except RecursionError:
        raise InvalidInputError(f"{path}: cannot be read: {json_text.TOO_DEEP}") from None
    except Exception as error:  # the parsers raise whatever they meet
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InvalidInputError(f"{path}: not a readable {path.suffix} graph: {reason}") from error
    if graph.number_of_nodes() == 0:
        raise InvalidInputError(f"{path}: the graph has no nodes; wants at least one")
    return graph


def _read_graphml(path: Path) -> Any:
    with open_plain(path, follow=True) as file:
        text = file.read()
    elements = list(_elements(text))
    nodes = [each.get("id") for each in elements if each.tag.rpartition("}")[2] == "node"]
    edges = [each for each in elements if each.tag.rpartition("}")[2] == "edge"]
    _check_ids(path, nodes, ((edge.get("source"), edge.get("target")) for edge in edges))
    return nx.read_graphml(io.BytesIO(text))


def _elements(text: bytes) -> Iterator[ElementTree.Element]:
    """Yield all elements of an XML document; raise ValueError where they are nested too deeply."""
    depth = 0
    for event, element in ElementTree.iterparse(io.BytesIO(text), ("start", "end")):
        depth += 1 if event == "start" else -1
        if depth > json_text.MOST_DEPTH:
            raise ValueError(f"elements nested more than {json_text.MOST_DEPTH} deep")
        if event == "start":
            yield element


_BRACKETS = re.compile(rb'"[^"]*"|[\[\]]')  # and texts, in which they are none


def _read_gml(path: Path) -> Any:
    with open_plain(path, follow=True) as file:
        text = file.read()
    depth = 0
    for bracket in _BRACKETS.finditer(text):
        depth += {b"[": 1, b"]": -1}.get(bracket.group(), 0)  # else a text
        if depth > json_text.MOST_DEPTH:
            raise ValueError(f"lists nested more than {json_text.MOST_DEPTH} deep")
    return nx.read_gml(io.BytesIO(text), label="id")  # says what is undefined or there twice


def _read_node_link(path: Path) -> Any:
    document = json_text.parse(read_text(path, follow=True))
    key = "links" if isinstance(document, Mapping) and "links" in document else "edges"
    for section in ("nodes", key):
        part = document.get(section) if isinstance(document, Mapping) else None
        if not isinstance(part, list) or not all(isinstance(each, Mapping) for each in part):
            raise ValueError(f"no list of mappings '{section}' at its top")
    ends = ((edge.get("source"), edge.get("target")) for edge in document[key])
    _check_ids(path, [node.get("id") for node in document["nodes"]], ends)
    return nx.node_link_graph(document, edges=key)


def _check_ids(path: Path, nodes: list[Any], edges: Iterable[tuple[Any, Any]]) -> None:
    """Refuse ids that several nodes have, and edges to nodes that there are not.

    networkx would make one node of the former and new nodes for the latter.
    """
    known = Counter(node for node in nodes if isinstance(node, str | int | float))
    problems = [
        Problem(at=f"node {number}", saw=describe(node), want="an id, a text or a number")
        for number, node in enumerate(nodes, start=1)
        if not isinstance(node, str | int | float)
    ]
    problems += [
        Problem(at=f"node {node!r}", saw=f"{count} nodes with this id", want="each id once")
        for node, count in known.items()
        if count > 1
    ]
    problems += [
        Problem(at=f"edge {number}", saw=f"the {end} {describe(node)}", want="the id of a node")
        for number, edge in enumerate(edges, start=1)
        for end, node in zip(("source", "target"), edge, strict=True)
        if not isinstance(node, str | int | float) or node not in known
    ]
    if problems:
        raise InvalidInputError(f"{path}: not a graph", problems)


READERS: dict[str, Callable[[Path], Any]] = {
    ".graphml": _read_graphml,
    ".gml": _read_gml,
    ".json": _read_node_link,
}
