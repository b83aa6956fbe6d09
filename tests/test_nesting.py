"""Documents that are nested without end: refused by their depth, wherever documents are read."""

from __future__ import annotations

import json

import pytest
from pyspark.sql import functions as F

from tidings.characterisation.count.publications import folded_contents
from tidings.characterisation.count.routing import event_type_of
from tidings.characterisation.count.store import load_partial, read_catalogue
from tidings.characterisation.fit.subscribers import parse_filter
from tidings.cli.commands import run
from tidings.demonstration.run import MARKER, check_place
from tidings.errors import InvalidInputError
from tidings.histories.wanting import parse_filters
from tidings.model import json_text, yaml_text
from tidings.model.events import parse_event
from tidings.model.graph_files import read_topology
from tidings.model.outcome_files import load_outcome
from tidings.model.reading import loads
from tidings.petri.reading import loads_net
from tidings.planning.changes import changed
from tidings.planning.objectives import read_objectives
from tidings.planning.scenarios import read_scenarios
from tidings.reporting.annexes import load_annex
from tidings.traces.readers.mapping import parse_mapping
from tidings.traces.readers.opening import open_flat
from tidings.traces.readers.pseudonyms import Pseudonyms
from tidings.traces.reading import parse_manifest, read_frame

ENDLESS = 100_000
DEEP = "more than 60 deep"
TEXTS = {
    "lists": "[" * ENDLESS,
    "closed lists": "[" * ENDLESS + "]" * ENDLESS,
    "mappings": '{"a":' * ENDLESS,
    "just too deep": '{"a": ' * 61 + "1" + "}" * 61,
}
YAML_TEXTS = {**TEXTS, "dashes": "- " * ENDLESS, "keys": "? " * ENDLESS, "open": "{a: " * ENDLESS}
SYSTEM = """
tidings: 1
brokers: {b: {service: {deterministic: 1ms}}}
publishers: {p: {at: b, every: {exponential: 1s}, content: [{p: 1, event: {topic: a}}]}}
subscribers: {s: {at: b, wants: {topic: a}}}
"""
EVERY = pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)


def from_file(read, name="document.json"):
    """A reader of files as one of texts."""

    def reads(text, folder):
        (folder / name).write_text(text)
        return read(folder / name)

    return reads


def from_folder(read, name):
    def reads(text, folder):
        (folder / name).write_text(text)
        return read(folder)

    return reads


READERS = {
    "system": lambda text, _: loads(text),
    "change": lambda text, _: changed(loads(SYSTEM), [f"subscriber new {text}"]),
    "net": lambda text, _: loads_net(text),
    "mapping": lambda text, _: parse_mapping(text),
    "scenarios": from_file(read_scenarios, "scenarios.yaml"),
    "objectives": from_file(read_objectives, "slo.yaml"),
    "outcome": from_file(load_outcome),
    "outcome folder": from_folder(load_outcome, "outcome.json"),
    "annex": from_file(load_annex),
    "topology": from_file(read_topology),
    "manifest of traces": lambda text, _: parse_manifest(text),
    "store": from_folder(read_catalogue, "store.json"),
    "part of a store": from_folder(load_partial, "decided.json"),
}


@EVERY
@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_every_reader_of_documents_says_that_one_is_too_deep(read, text, tmp_path):
    with pytest.raises(InvalidInputError, match=DEEP):
        read(text, tmp_path)


XML, GML = "<graphml><graph>", "graph [ node [ id 0 "
GRAPHS = {
    "elements": (".graphml", XML + "<a>" * ENDLESS + "</a>" * ENDLESS + "</graph></graphml>"),
    "open elements": (".graphml", XML + "<a>" * ENDLESS),
    "graphs in nodes": (".graphml", "<graphml>" + "<graph><node id='a'>" * ENDLESS),
    "just too deep": (".graphml", XML + "<a>" * 59 + "</a>" * 59 + "</graph></graphml>"),
    "lists just too deep": (".gml", "graph " + "[ a " * 61 + "1" + " ]" * 61),
    "lists": (".gml", GML + "a [ " * ENDLESS + "] " * ENDLESS + "] ]"),
    "open lists": (".gml", GML + "a [ " * ENDLESS),
}


@pytest.mark.parametrize(("suffix", "text"), GRAPHS.values(), ids=GRAPHS)
def test_graphs_that_are_too_deep_are_refused(suffix, text, tmp_path):
    path = tmp_path / f"graph{suffix}"
    path.write_text(text)
    with pytest.raises(InvalidInputError, match=DEEP):
        read_topology(path)


COMMANDS = {
    "check": "check {deep}",
    "graph in XML": "init --from {deep}.graphml",
    "graph": "init --from {deep}.gml",
    "scenarios": "whatif {system} --scenarios {deep}",
    "objectives": "plan capacity {system} --slo {deep}",
    "outcome": "report {system} {deep}",
    "net": "petri check {deep}",
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_commands_say_that_a_document_is_too_deep(command, tmp_path, capsys):
    (tmp_path / "system").write_text(SYSTEM)
    (tmp_path / "deep").write_text(TEXTS["closed lists"])
    (tmp_path / "deep.graphml").write_text(GRAPHS["elements"][1])
    (tmp_path / "deep.gml").write_text(GRAPHS["lists"][1])
    asked = command.format(system=tmp_path / "system", deep=tmp_path / "deep")
    assert run(asked.split()) == 2
    assert DEEP in capsys.readouterr().err


# Java's reader of JSON takes a thousand levels; to find out the types of as many ends Java itself.
DEEP_LINES = {
    "endless": TEXTS["mappings"],
    "closed": '{"a":' * ENDLESS + "1" + "}" * ENDLESS,
    "lists": TEXTS["closed lists"],
    "just below Java's limit": '{"a":' * 950 + "1" + "}" * 950,
}


@pytest.mark.spark
@pytest.mark.parametrize("deep", DEEP_LINES.values(), ids=DEEP_LINES)
def test_lines_that_are_too_deep_are_set_aside(deep, tmp_path, spark):
    rows = ['{"journey":1,"path":"a","at_s":5,"conn":"ON"}'] * 2
    nested = rows[0].removesuffix("}") + f',"more":{deep}}}'
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join([deep, nested, *rows]))
    frame = read_frame(spark, path)
    assert frame.where("journey = 1").count() == 2
    opened = open_flat(spark, [str(path)])
    read = opened.rows.select(opened.text("journey").alias("journey")).collect()
    assert [row.journey for row in read][2:] == ["1", "1"]


@pytest.mark.spark
@pytest.mark.parametrize("deep", DEEP_LINES.values(), ids=DEEP_LINES)
def test_contents_that_are_too_deep_have_no_attributes(deep, frame):
    contents = frame([(deep,), ('{"topic":"a","b":1}',)], "content string")
    kinds = folded_contents(contents, ["topic"]).select(event_type_of(F.col("content"), "topic"))
    assert [row[0] for row in kinds.collect()] == ["", "a"]


@EVERY
def test_events_filters_and_values_that_are_too_deep_are_none(text, tmp_path):
    with pytest.raises(InvalidInputError, match="not an event"):
        parse_event(text)
    with pytest.raises(InvalidInputError, match="wants JSON"):
        parse_filters([text])
    assert parse_filter(text) is None
    assert Pseudonyms(secret="a" * 32).of_filter(text) == text


@EVERY
def test_a_folder_whose_mark_is_too_deep_is_not_ours(text, tmp_path):
    (tmp_path / MARKER).write_text(text)
    with pytest.raises(InvalidInputError, match="not made by tidings demo"):
        check_place(tmp_path)


@pytest.mark.parametrize("text", YAML_TEXTS.values(), ids=YAML_TEXTS)
def test_yaml_is_refused_at_the_line_where_it_gets_too_deep(text):
    problem, *more = yaml_text.parse("\n\n" + text).problems
    assert not more
    assert problem.line == 3
    assert DEEP in problem.saw


@pytest.mark.parametrize("parse", [json_text.parse, lambda text: yaml_text.parse(text).value])
def test_what_is_just_deep_enough_is_read(parse):
    text = '[{"a": ' * 30 + "1" + "}]" * 30
    assert parse(text) == json.loads(text)


def test_brackets_in_texts_are_no_nesting():
    text = json.dumps({"a": "[{" * 1000})
    assert json_text.parse(text) == yaml_text.parse(text).value == json.loads(text)
