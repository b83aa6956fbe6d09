from __future__ import annotations

import json

import jsonschema
import pytest

from tidings.errors import InvalidNetError
from tidings.model import yaml_text
from tidings.model.laws import Exponential
from tidings.petri.cells import flatten
from tidings.petri.net import Mode, Net, Place, Queue, TokenArc, Transition
from tidings.petri.reading import (
    checked,
    dumps_net,
    load_net,
    loads_net,
    net_document,
    net_schema,
    save_net,
)

FULL = """
tidings_net: 1
description: a bit of everything
colours: [order, quote, clock]
places:
  publisher:
    {queue: {discipline: infinite-server, service: {uniform: [0s, 2s]}}, tokens: {clock: 1}}
  broker:
    subnet:
      first: cpu
      last: disk
      places:
        cpu: {queue: {servers: 2, service: {exponential: 10ms}}}
        disk:
          queue:
            discipline: priority
            services: {order: 5ms, quote: {uniform: [1ms, 3ms]}}
            priorities: {quote: 1}
      transitions:
        store:
          modes:
            - {take: [{place: cpu, colour: order}], put: [{place: disk, colour: order}]}
            - {take: [{place: cpu, colour: quote}], put: [{place: disk, colour: quote}]}
  pool: {tokens: {order: 3}}
  shared: {queue: {discipline: processor-sharing, service: 1ms}}
transitions:
  publish:
    modes:
      - weight: 0.7
        newborn: true
        take: [{place: publisher, colour: clock}]
        put: [{place: publisher, colour: clock}, {place: broker, colour: order}]
      - weight: 0.3
        newborn: true
        take: [{place: publisher, colour: clock}]
        put:
          - {place: publisher, colour: clock}
          - {place: broker, colour: quote, count: 2, share: 0.5}
  serve:
    priority: 2
    weight: 3
    modes:
      - take: [{place: broker, colour: order}, {place: pool, colour: order, count: 2}]
        put: [{place: shared, colour: order}]
      - {take: [{place: broker, colour: quote}]}
  give back:
    modes:
      - {take: [{place: shared, colour: order}], put: [{place: pool, colour: order, count: 2}]}
  refill:
    modes:
      - after: {exponential: 5s}
        take: [{place: pool, colour: order}]
        put: [{place: pool, colour: order}]
"""


def problems(text):
    with pytest.raises(InvalidNetError) as told:
        loads_net(text)
    return [f"{each.at}: {each.saw}; {each.want}" for each in told.value.problems]


def test_a_net_survives_being_written_and_read(tmp_path):
    net = loads_net(FULL)
    assert loads_net(dumps_net(net)) == net
    save_net(net, tmp_path / "net.yaml")
    assert load_net(tmp_path / "net.yaml") == net
    (tmp_path / "net.json").write_text(json.dumps(net_document(net)))
    assert load_net(tmp_path / "net.json") == net
    assert checked(net) == net


def test_the_schema_accepts_what_the_reader_does():
    schema = net_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    validator.validate(yaml_text.parse(FULL).value)
    validator.validate(net_document(loads_net(FULL)))
    wrong = yaml_text.parse(FULL.replace("servers: 2", "servers: none")).value
    assert list(validator.iter_errors(wrong))


def test_subnets_become_places_of_the_whole():
    flat = flatten(loads_net(FULL))
    assert [place.name for place in flat.places] == [
        "publisher",
        "broker/cpu",
        "broker/disk",
        "pool",
        "shared",
    ]
    by_name = {each.name: each for each in flat.transitions}
    assert by_name["publish"].modes[0].put[1].place == "broker/cpu"
    assert by_name["serve"].modes[0].take[0].place == "broker/disk"
    assert by_name["broker/store"].modes[0].take[0].place == "broker/cpu"


def test_every_problem_of_a_net_is_told_at_once():
    text = FULL
    for old, new in (
        ("{order: 3}", "{oder: 3}"),
        ("weight: 0.7", "weight: -0.7"),
        (
            "{place: shared, colour: order}]\n      - {take",
            "{place: sharde, colour: order}]\n      - {take",
        ),
        ("last: disk", "last: tape"),
        ("priorities: {quote: 1}", "priorities: {quotes: 1}"),
        ("count: 2, share: 0.5", "count: 2, share: 1.5"),
        ("after: {exponential: 5s}", "after: {exponetial: 5s}"),
    ):
        assert old in text
        text = text.replace(old, new)
    found = problems(text)
    assert len(found) == 7
    assert any("pool.tokens.oder: the colour 'oder'; one of the colours" in each for each in found)
    assert any("weight: -0.7; a number, 0 or more" in each for each in found)
    assert any("the place 'sharde'; one of the places" in each for each in found)
    assert any("broker.subnet.last: 'tape'" in each for each in found)
    assert any("the colour 'quotes'" in each for each in found)


NOBODYS = "{place: pool, colour: quote}]}\n"  # nobody puts quotes into the pool
WRONG = {
    "'pool' never holds a token of the colour 'quote'": (
        "{place: broker, colour: quote}]}\n",
        NOBODYS,
    ),
    "'publisher' never holds a token of the colour 'clock'": (", tokens: {clock: 1}", ""),
    "a service time of the colour 'quote', which comes here": (
        "services: {order: 5ms, quote: {uniform: [1ms, 3ms]}}",
        "services: {order: 5ms}",
    ),
    "either 'service'": ("service: {exponential: 10ms}", "service: 1s, services: {order: 1s}"),
    "it would fire forever": (
        "      - {take: [{place: broker, colour: quote}]}\n",
        "      - {weight: 1}\n",
    ),
    "unknown field 'zero'": ("weight: 3", "weight: 3\n    zero: 1"),
    "each colour once": ("[order, quote, clock]", "[order, quote, clock, clock]"),
    "a name without '/'": ("  pool: {", "  po/ol: {}\n  pool: {"),
    "the discipline 'priority'": ("discipline: priority", "discipline: fcfs"),
    "no 'share' on tokens taken": (
        "{place: pool, colour: order, count: 2}]\n        put",
        "{place: pool, colour: order, share: 0.5}]\n        put",
    ),
    "a distribution with a mean above 0": ("after: {exponential: 5s}", "after: 0s"),
    "reads format 1": ("tidings_net: 1", "tidings_net: 2"),
    "publish.modes[1].weight: got 0; wants above 0": ("weight: 0.7", "weight: 0"),
    "weight: got 0; wants above 0: with a weight of 0 it never fires": ("weight: 3", "weight: 0"),
    "modes that all have a time 'after', or none": ("weight: 0.7", "after: 1s"),
}


@pytest.mark.parametrize("told", WRONG)
def test_what_structure_shows_to_be_wrong_is_refused(told):
    old, new = WRONG[told]
    assert old in FULL
    text = FULL.replace(old, new, 1)
    with pytest.raises(InvalidNetError) as caught:
        loads_net(text)
    assert told in str(caught.value)


def test_more_tokens_at_once_than_there_ever_are_is_dead():
    net = """
    tidings_net: 1
    colours: [t]
    places: {store: {tokens: {t: 1}}, other: {}, rest: {}}
    transitions:
      pair:
        modes: [{take: [{place: store, colour: t, count: 2}], put: [{place: other, colour: t}]}]
      next: {modes: [{take: [{place: other, colour: t}], put: [{place: rest, colour: t}]}]}
    """
    found = problems(net)
    assert len(found) == 2
    assert "transitions.pair: one that can never fire: it takes more tokens at once" in found[0]
    assert "transitions.next: one that can never fire: 'other' never holds" in found[1]


def test_a_net_built_in_python_is_checked_like_a_file():
    net = Net(
        version=1,
        colours=("job",),
        places=(Place(name="cpu", queue=Queue(service=Exponential(mean_s=1.0))),),
        transitions=(
            Transition(name="go", modes=(Mode(take=(TokenArc(place="disk", colour="jobs"),)),)),
        ),
    )
    with pytest.raises(InvalidNetError) as told:
        checked(net)
    assert {problem.saw for problem in told.value.problems} == {
        "the place 'disk'",
        "the colour 'jobs'",
    }


def test_no_net_at_all_is_no_net():
    for text in (
        "",
        "[1]",
        "{tidings_net: 1, colours: [a], places: 3, transitions: {t: {modes: 4}}}",
    ):
        assert problems(text)
