"""What is spoilt, who reads it, and what must hold of what a reader accepts.

A reader may refuse by a :class:`TidingsError` and in no other way. What it accepts is used: a
system is written and read again, checked, and predicted by theory; others are shown.
"""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

import span_samples
import tidings as td
from tidings.cli.commands import run
from tidings.errors import TidingsError
from tidings.model import reading
from tidings.model.graph_files import read_topology
from tidings.model.outcome_files import load_outcome, outcome_document
from tidings.petri.reading import dumps_net, loads_net
from tidings.planning.changes import changed
from tidings.planning.objectives import read_objectives
from tidings.planning.scenarios import read_scenarios
from tidings.prediction.precision import read_within
from tidings.reporting.annexes import load_annex
from tidings.theory.answer import answer_by_theory
from tidings.traces.readers.mapping import parse_mapping
from tidings.traces.reading import parse_manifest
from tidings.traces.spans.documents import pieces

TESTS = Path(__file__).resolve().parents[1]
ROOT = TESTS.parent
SMALL = 12  # subscribers and brokers of a system that is also predicted
ORDERS = (ROOT / "examples" / "orders.yaml").read_text()
CHANGES = (
    *("rate all x1.5", "rate shop 5/s", "rate all {uniform: [0s, 1s]}", "speed hub x2"),
    *("service hub 3ms", "servers hub 4", "delay hub--east x2", "reliability hub--east 0.9"),
    *("bandwidth hub--east 1Mbit/s", "availability hub 0.99", "failure hub {mtbf: 9h, mttr: 5min}"),
    *("scheme bypass", "refresh 30s", "connectivity stock {on: 1min, off: 5s}", "off all 5s"),
    *("stays all x0.5", "processing stock 1ms", "members stock 6", "batch shop {size: 10}"),
    *("lifetime all x0.5", "target stock 0.99", "move stock to west", "remove hub--west"),
    *("add 100 like stock at east", "broker new {service: 1ms}", "link east--west {delay: 1ms}"),
    "subscriber new {at: hub, wants: {topic: order}}",
)
MAPPING = """
mapping: 1
tables:
  deliveries:
    where: {kind: received}
    event: message_id
    subscriber: {constant: alice}
    received_ns: {column: at, unit: ms}
"""
NET = """
tidings_net: 1
colours: [order, clock]
places:
  publisher: {queue: {discipline: infinite-server, service: {exponential: 1s}}, tokens: {clock: 1}}
  cpu: {queue: {servers: 2, service: {exponential: 10ms}}}
  pool: {tokens: {order: 3}}
transitions:
  publish:
    modes:
      - newborn: true
        take: [{place: publisher, colour: clock}]
        put: [{place: publisher, colour: clock}, {place: cpu, colour: order}]
  leave:
    modes: [{take: [{place: cpu, colour: order}], put: []}]
"""
SLO = """apiVersion: openslo/v1
kind: SLO
metadata: {name: stock, labels: {subscriber: stock}}
spec:
  service: orders
  objectives: [{op: lte, value: 0.1, target: 0.98}]
"""
SCENARIOS = "faster: speed hub x2\nboth: [speed hub x2, rate all x1.5]\n"
GML = """graph [
  node [ id 0 label "a" ]
  node [ id 1 label "b" ]
  edge [ source 0 target 1 ]
]"""
GRAPHML = """<?xml version='1.0'?>
<graphml xmlns='http://graphml.graphdrawing.org/xmlns'><graph edgedefault='undirected'>
<node id='a'/><node id='b'/><edge source='a' target='b'/>
</graph></graphml>"""
NODE_LINK = json.dumps(
    {"nodes": [{"id": "a"}, {"id": "b"}], "links": [{"source": "a", "target": "b"}]}
)
TABLES = {
    "brokers.csv": 'name,service\nhub,"{""exponential"": ""3ms""}"\neast,2ms\n',
    "links.csv": 'between,delay,reliability\n"[""hub"", ""east""]",20ms,0.9\n',
    "publishers.csv": "name,at,every\np,hub,1s\n",
    "contents.csv": "publisher,p,event\np,0.5,{topic: a}\np,0.5,{topic: b}\n",
    "subscribers.csv": "name,at,wants,count\n007,east,{topic: a},3\nt,hub,{},\n",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Documents of one kind, as texts, and what reads one in a folder of its own."""

    texts: tuple[str | bytes, ...]
    read: Callable[[bytes, Path], object]
    suffix: str = ".yaml"


def _text(data: bytes) -> str:
    """Give what a file with these bytes holds, as far as it is text at all."""
    return data.decode("utf-8", "surrogateescape")


def _from_file(read: Callable[[Path], Any], suffix: str) -> Callable[[bytes, Path], object]:
    def reads(data: bytes, folder: Path) -> object:
        path = folder / f"document{suffix}"
        path.write_bytes(data)
        return read(path)

    return reads


def _system(path: Path) -> None:
    """Use a system in all ways that take no long time."""
    system = td.load(path)
    again = reading.loads(reading.dumps(system))
    assert again == system, "a system is another one after it was written and read"
    assert reading.fingerprint(again) == reading.fingerprint(system)
    if len(system.brokers) <= SMALL and len(system.subscribers) <= SMALL:
        answer_by_theory(system, delays=True)


def _tables(data: bytes, folder: Path) -> None:
    """Read a system as a folder of tables, of which one is spoilt: the one that it begins with."""
    name, _, rest = data.partition(b"\0")
    for other, text in TABLES.items():
        (folder / other).write_text(text)
    spoilt = _text(name)
    (folder / (spoilt if spoilt in TABLES else "subscribers.csv")).write_bytes(rest)
    _system(folder)


def _outcome(path: Path) -> None:
    outcome = load_outcome(path)
    outcome.headline()
    str(outcome)
    json.dumps(outcome_document(outcome), allow_nan=False)


def _net(data: bytes, _: Path) -> None:
    net = loads_net(_text(data))
    assert loads_net(dumps_net(net)) == net


def _change(data: bytes, _: Path) -> None:
    reading.dumps(changed(reading.loads(ORDERS), [_text(data)]))


def _spans(data: bytes, _: Path) -> None:
    """Take spans apart: every piece is either a line of an export or has a reason."""
    for piece in pieces(data):
        assert piece.reason is not None or isinstance(json.loads(piece.text), dict)


def _within(data: bytes, _: Path) -> None:
    read_within(_text(data))


def _printed(command: str, *words: str) -> str:
    """Give what a command prints of an example as a document."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        run([command, str(ROOT / "examples" / "orders.yaml"), *words, "--json"])
    return printed.getvalue()


@cache
def targets() -> Mapping[str, Target]:
    """Give all kinds of documents; made once, as some come from the engines."""
    system = td.load(ROOT / "examples" / "orders.yaml")
    outcome = json.dumps(outcome_document(td.predict(system, by="theory")))
    printed = (
        _printed("whatif", "rate all x1.5", "--by", "theory"),
        _printed("catchup", "--backlog", "hub=100"),
    )
    systems = (
        *(path.read_text() for path in sorted((ROOT / "examples").glob("**/*.yaml"))),
        (TESTS / "model" / "full_system.yaml").read_text(),
        (TESTS / "model" / "small_system.yaml").read_text(),
    )
    manifest = json.dumps({"version": 1, "from_ns": 5, "until_ns": 10**12})
    return {
        "system": Target(texts=systems, read=_from_file(_system, ".yaml")),
        "tables": Target(
            texts=tuple(f"{name}\0{text}" for name, text in TABLES.items()), read=_tables
        ),
        "outcome": Target(texts=(outcome,), read=_from_file(_outcome, ".json")),
        "annex": Target(texts=printed, read=_from_file(load_annex, ".json")),
        "objectives": Target(
            texts=(SLO, f"{SLO}---\n{SLO}"), read=_from_file(read_objectives, ".yaml")
        ),
        "scenarios": Target(texts=(SCENARIOS,), read=_from_file(read_scenarios, ".yaml")),
        "mapping": Target(texts=(MAPPING,), read=lambda data, _: parse_mapping(_text(data))),
        "net": Target(texts=(NET,), read=_net),
        "change": Target(texts=CHANGES, read=_change),
        "GraphML": Target(texts=(GRAPHML,), read=_from_file(read_topology, ".graphml")),
        "GML": Target(texts=(GML,), read=_from_file(read_topology, ".gml")),
        "node-link": Target(texts=(NODE_LINK,), read=_from_file(read_topology, ".json")),
        "manifest": Target(texts=(manifest,), read=lambda data, _: parse_manifest(_text(data))),
        "spans": Target(
            texts=(
                json.dumps(span_samples.otlp("5afe")),
                json.dumps(span_samples.jaeger("5afe")),
                json.dumps(span_samples.zipkin("5afe")),
                json.dumps(span_samples.tempo("5afe")),
                span_samples.protobuf("5afe"),
            ),
            read=_spans,
        ),
        "within": Target(texts=("0.005", "10% of misses"), read=_within),
    }


def tree_of(text: str | bytes) -> Any:
    """Give a document as a tree; None where it is none."""
    if isinstance(text, bytes):
        return None
    try:
        tree = yaml.safe_load(text)
    except yaml.YAMLError:
        return None
    return tree if isinstance(tree, dict | list) else None


REFUSALS = TidingsError
