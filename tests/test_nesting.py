"""Documents that are nested without end: refused by their depth, wherever documents are read."""

from __future__ import annotations

import json

import pytest

from tidings.characterisation.store import load_partial, read_catalogue
from tidings.characterisation.subscribers import parse_filter
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
from tidings.traces.readers.pseudonyms import Pseudonyms
from tidings.traces.reading import parse_manifest

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
    with pytest.raises(InvalidInputError, match="not of ours"):
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
