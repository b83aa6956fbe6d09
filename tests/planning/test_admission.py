from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace

import numpy as np
import pytest

from planning.small_systems import CROWD, INVERTED, QUEUE, TWO
from planning.truths import played_by
from tidings.cli.commands import run
from tidings.model import reading
from tidings.planning import admission
from tidings.planning.admission import Admissions, joined, newcomer_like, reached_brokers
from tidings.planning.changes import changed
from tidings.planning.evidence import MEETS, MISSES, OPEN, Target, foretell


@pytest.fixture(scope="module")
def desk():
    return Admissions(system=reading.loads(CROWD), target=Target(share=0.6))


def test_who_wants_what_is_there_already_changes_nothing(desk):
    newcomer = newcomer_like(desk.system, "sa", 1000)
    answer = desk.ask(newcomer, target=0.6)
    places = {place.broker: place for place in answer.places}
    assert answer.choice.broker == "hub"  # no queue there
    assert places["edge"].share == pytest.approx(1 - math.exp(-1.0), abs=INVERTED)
    assert places["edge"].admits
    desk.admit(newcomer, places["edge"])
    assert len(desk.ask(newcomer, target=0.6).places) == 2
    assert desk.confirm()


def test_who_would_let_others_down_is_turned_away():
    """At the edge topic b would come on top of a: (10 − 6.67) .3, below what all should have."""
    system = changed(reading.loads(CROWD), ["move sb to hub"])
    desk = Admissions(system=system, target=Target(share=0.8))
    newcomer = newcomer_like(system, "sb")
    answer = desk.ask(newcomer, target=0.5, brokers=["edge"])
    (place,) = answer.places
    assert answer.choice is None
    assert (place.who, place.admits) == ("sa", False)
    assert place.margin == pytest.approx(1 - math.exp(-1.0) - 0.8, abs=INVERTED)
    assert desk.ask(newcomer, target=0.5).choice.broker == "hub"


LINE = """
tidings: 1
lifetime: 400ms
brokers:
  a: {service: {exponential: 60ms}}
  b: {service: {exponential: 80ms}}
  c: {service: {exponential: 70ms}}
  d: {service: {exponential: 50ms}}
links:
  - {between: [a, b], delay: {exponential: 20ms}}
  - {between: [b, c], reliability: 0.97}
  - {between: [b, d], delay: 30ms}
publishers:
  p: {at: a, every: {exponential: 250ms}, content: {event: {topic: x}}}
  q: {at: c, every: {exponential: 200ms}, content: {event: {topic: y}}}
subscribers:
  sx: {at: b, wants: {topic: x}, target: 0.5}
  sy: {at: a, wants: {topic: y}, count: 3}
  all: {at: d, wants: {}, lifetime: 700ms}
"""
CHANGING = LINE.replace("target: 0.5", "stays: {exponential: 20s}, away: {exponential: 5s}")
COUNTED = LINE.replace("{exponential: 70ms}", "{exponential: 5ms, per: subscription}")


def foretold(system, newcomer, broker):
    """By the whole prediction: the newcomer's share, and everybody else's margins."""
    shares = foretell(joined(system, [replace(newcomer, at=broker)])).subscribers["on_time"]
    return shares.iloc[-1], shares.to_numpy()[:-1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "joins"),
    [
        (LINE, (("sx", "d"), ("all", "b"), ("sx", "c"), ("sy", "d"))),
        (COUNTED, (("sx", "d"),) * 2),
        (CHANGING, (("sx", "d"),) * 2),
        (TWO, (("near", "hub"), ("moving", "hub"))),
    ],
    ids=["rates", "heads", "changing", "failing"],
)
def test_after_joins_answers_are_those_of_the_whole_prediction(text, joins):
    """Who comes where events are already, where they are not, and where its own kind is."""
    target = Target(share=0.2)
    desk = Admissions(system=reading.loads(text), target=target)
    system = desk.system
    for number, (like, home) in enumerate(joins):
        newcomer = replace(newcomer_like(system, like), target=None, name=f"n{number}")
        answer = desk.ask(newcomer, target=0.2, brokers=tuple(system.broker_index))
        wanted = target.wanted(desk.system)
        for place in answer.places:
            share, others = foretold(desk.system, newcomer, place.broker)
            assert place.share == pytest.approx(share, abs=1e-12)
            margin = min(share - 0.2, (others - wanted).min())
            assert place.margin == pytest.approx(margin, abs=1e-12)
        desk.admit(newcomer, next(place for place in answer.places if place.broker == home))
        system = joined(system, [replace(newcomer, at=home, target=0.2)])
        assert desk.system == system


def test_where_events_are_already_is_known_from_the_routes():
    system = reading.loads(LINE)
    assert reached_brokers(system, newcomer_like(system, "sx")) == {"a", "b", "d"}
    assert reached_brokers(system, newcomer_like(system, "sy")) == {"a", "b", "c", "d"}
    assert reached_brokers(system, newcomer_like(system, "all")) == {"a", "b", "d"}
    unheard = replace(newcomer_like(system, "sx"), wants=reading.loads(QUEUE).subscribers[0].wants)
    assert reached_brokers(system, unheard) == {"a", "b", "c", "d"}


def test_one_prediction_answers_for_all_brokers_that_have_the_events(monkeypatch):
    """Joins there take none, and leave what is known as it is; elsewhere each takes its own."""
    system, predicted = reading.loads(LINE), []
    monkeypatch.setattr(
        admission, "foretell", lambda each: predicted.append(each) or foretell(each)
    )
    desk = Admissions(system=system, target=Target(share=0.1))
    newcomer = newcomer_like(system, "sx")
    place = desk.ask(newcomer, target=0.1).choice
    assert len(predicted) == 2  # as it is, and with one of the kind at three brokers
    for _ in range(3):
        desk.admit(newcomer, place)
        assert desk.ask(newcomer, target=0.1).choice == place
    assert len(predicted) == 2
    desk.ask(newcomer, target=0.1, brokers=["c", "d"])
    assert len(predicted) == 3


@pytest.fixture(scope="module")
def tried():
    """By kind and broker of the line, with one of the kind there: its share, and the others'."""
    system = reading.loads(LINE)
    return {
        (like, broker): foretold(system, newcomer_like(system, like), broker)
        for like, broker in itertools.product(("sx", "all"), system.broker_index)
    }


@pytest.mark.parametrize(("of", "share"), [(1.0, 0.55), (0.75, 0.7), (0.4, 0.7)])
def test_the_place_is_that_of_brute_force(of, share, tried):
    """The best share of all brokers where the newcomer and enough of all heads get theirs."""
    system, target = reading.loads(LINE), Target(share=share, of=of)
    desk, wanted = Admissions(system=system, target=target), target.wanted(system)
    before = foretell(system).subscribers["on_time"].to_numpy()
    heads = np.array([each.count for each in system.subscribers])
    for like, count in itertools.product(("sx", "all"), (1, 4, 1_000)):
        good = {}
        for broker in system.broker_index:
            own, others = tried[like, broker]
            content = (others >= wanted) | (others >= before - 1e-12)  # or not let down by it
            enough = (heads[content].sum() + count) / (heads.sum() + count) >= of
            if own >= share and enough:
                good[broker] = own
        newcomer, every = newcomer_like(system, like, count), tuple(system.broker_index)
        answer = desk.ask(newcomer, target=share, brokers=every)
        assert {place.broker for place in answer.places if place.admits} == set(good)
        best = max(good, key=good.get, default=None)
        assert (answer.choice.broker if answer.choice else None) == best
        # Unasked, those that have the events already come first.
        quiet = {name: good[name] for name in reached_brokers(system, newcomer) & set(good)}
        first = desk.ask(newcomer, target=share).choice
        assert (first.broker if first else None) == max(quiet or good, key=good.get, default=None)


def test_newcomers_may_be_as_many_as_must_get_theirs():
    """A thousand let down the one who is there, and are more than enough by themselves."""
    both = reading.loads(CROWD)
    sa = next(each for each in both.subscribers if each.name == "sa")
    shares = foretell(both).subscribers.set_index("subscriber")["on_time"]
    alone = replace(both, subscribers=(replace(sa, target=float(shares["sa"]) + 1e-4),))
    newcomer = replace(newcomer_like(both, "sb", 1_000), target=None)
    for of, verdict in ((0.95, MEETS), (1.0, MISSES)):
        answer = Admissions(system=alone, target=Target(of=of)).ask(
            newcomer, target=0.1, brokers=(sa.at,)
        )
        assert answer.verdict == verdict


def test_where_the_simulation_speaks_against_a_place_the_next_is_taken(theory_off_by):
    """The best place is the hub, where in truth half of all is lost."""
    theory_off_by(1.0)
    system = changed(reading.loads(CROWD), ["service hub {exponential: 1ms}"])
    desk = Admissions(system=system, target=Target(share=0.6))
    newcomer = newcomer_like(system, "sa")
    answer = desk.ask(newcomer, target=0.6)
    assert answer.choice.broker == "hub"
    agreed = desk.prove(newcomer, answer, played_by())
    assert (agreed.choice.broker, agreed.verdict) == ("hub", MEETS)

    def hub_is_bad(plan, precision):
        found = played_by()(plan, precision)
        rows = found.subscribers
        rows.loc[rows["broker"] == "hub", "on_time"] *= 0.5
        return found

    moved = desk.prove(newcomer, answer, hub_is_bad)
    assert (moved.choice.broker, moved.verdict) == ("edge", MEETS)
    assert moved.to_document()["places"][0]["verdict"] == MISSES
    nowhere = desk.prove(newcomer, answer, played_by("lifetime all 1ms"))
    assert nowhere.choice is None
    assert nowhere.verdict == MISSES
    unsure = desk.prove(newcomer, answer, played_by("speed all x0.99", noise=0.3))
    assert (unsure.choice, unsure.verdict) == (None, OPEN)
    theory_off_by(0.01)  # then nothing need be played
    sure = desk.prove(newcomer, answer, played_by("lifetime all 1ms"))
    assert (sure.verdict, sure.choice.evidence.simulated) == (MEETS, None)


def test_whom_a_newcomer_does_not_let_down_does_not_keep_it_out():
    """sb is below its target as it is; at the hub a newcomer takes nothing from it."""
    system = changed(reading.loads(CROWD), ["target sb 0.99"])
    desk = Admissions(system=system, target=Target(share=0.6))
    answer = desk.ask(newcomer_like(system, "sa"), target=0.6, brokers=["hub"])
    assert desk.prove(newcomer_like(system, "sa"), answer, played_by()).verdict == MEETS


def test_where_brokers_count_heads_a_thousand_is_not_one():
    text = QUEUE.replace("{exponential: 100ms}", "{exponential: 50ms, per: subscription}")
    desk = Admissions(system=reading.loads(text), target=Target(share=0.5))
    few, many = (desk.ask(newcomer_like(desk.system, "s", count), target=0.5) for count in (1, 3))
    assert few.choice.share == pytest.approx(1 - math.exp(-(10 - 5)), abs=INVERTED)
    assert many.choice is None  # four stored: 200 ms each, as much as comes


@pytest.mark.parametrize(
    ("arguments", "truth", "code", "said"),
    [
        ([], [], 0, "can be admitted at hub"),
        (["--at", "edge"], [], 0, "can be admitted at edge"),
        (
            ["--at", "edge"],
            ["speed all x0.8"],
            1,
            "cannot be admitted. Best broker edge, simulated",
        ),
        (["--at", "edge", "--target", "0.65"], [], 1, "cannot be admitted"),
    ],
)
def test_the_command_follows_its_evidence(
    arguments, truth, code, said, world, capsys, theory_off_by
):
    theory_off_by(1.0)
    path = world(CROWD, *truth)
    assert run(["plan", "admission", path, "--like", "sa", "--target", "0.6", *arguments]) == code
    assert said in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(("of", "code"), [(1.0, 1), (0.67, 1), (0.66, 0)])
def test_the_share_of_those_who_must_get_theirs_is_heeded(of, code, world, capsys):
    """Topic b at the edge lets sa down, one of three: 1 − exp(−(10 − 6.67) .3) is below .8."""
    path = world(CROWD.replace("sb: {at: edge,", "sb: {at: hub, target: 0.6,"))
    asked = ["plan", "admission", path, "--like", "sb", "--at", "edge", "--target", "0.8", "--json"]
    assert run([*asked, "--of", str(of)]) == code
    (place,) = json.loads(capsys.readouterr().out)["places"]
    assert place["share"] == pytest.approx(1 - math.exp(-1.0), abs=INVERTED)
    assert place["who"] == ("sa" if code else "the new subscriber")
