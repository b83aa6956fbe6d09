"""Alarms begin, last and end; they are told, and what is known is kept."""

from __future__ import annotations

import json
import urllib.request
from dataclasses import replace

import pytest

from tidings.cli import console
from tidings.cli.watch import served
from tidings.planning.change_kinds import times
from tidings.planning.change_search import Remedy
from tidings.watching import state as states
from tidings.watching.state import (
    NOW_FILE,
    PAST_FILE,
    Alarm,
    Health,
    Standing,
    State,
    read_state,
    write_state,
)
from tidings.watching.telling import ENDED_SHOWN, advice, turned

SLOW = Alarm(
    name="changed brokers.hub.service", kind="changed", where=("hub",), what="broker hub is slower",
    size=1.3, unit="times the service time", since_ns=100,
)  # fmt: skip
LATE = replace(SLOW, name="target ann", kind="target", where=("ann",), what="events are late")


def test_an_alarm_keeps_when_it_began_and_what_to_do():
    first = turned((), [SLOW], 100)
    assert (first.begun, first.ended) == ((SLOW,), ())
    advised = replace(SLOW, do="speed hub x2", cause="waiting at hub")
    worse = replace(SLOW, size=1.6, since_ns=200)
    second = turned((advised,), [worse, LATE], 200)
    assert second.begun == (LATE,)
    assert second.alarms == (replace(advised, size=1.6), LATE)
    moved = turned((advised,), [replace(worse, cause="3 s until all is gone")], 200)
    assert moved.alarms == (replace(advised, size=1.6, cause="3 s until all is gone"),)
    third = turned(second.alarms, [LATE], 300)
    assert third.ended == (replace(advised, size=1.6, until_ns=300),)
    assert third.alarms == (LATE, *third.ended)
    again = turned(third.alarms, [LATE, worse], 400)
    assert again.begun == (worse,)  # the same thing is wrong once more
    assert len(again.alarms) == 3


def remedy(verb, target, gain=0.1, factor=2.0):
    return Remedy(changes=(times(verb, target, factor),), on_time=0.9, gain=gain)


def test_an_alarm_is_advised_what_acts_on_it_and_not_what_helps_most_elsewhere():
    known = [remedy("reliability", "a--b"), remedy("speed", "hub"), remedy("delay", "b--c")]
    assert advice(SLOW, known) == "best single change: speed 'hub' x2"
    link = replace(SLOW, name="changed links.b--c.back.delay", where=("c--b",))
    assert advice(link, known) == "best single change: delay 'b--c' x2"
    silent = replace(SLOW, name="changed silent ann", where=("ann",))
    assert advice(silent, known) == ""
    assert advice(replace(SLOW, where=("leaf",)), known) == ""


def test_what_has_no_place_is_advised_what_helps_most():
    known = [remedy("delay", "b--c", gain=0.0), remedy("speed", "hub")]
    more = replace(SLOW, name="changed publishers.ann.rate", where=("ann",))
    share = replace(SLOW, name="changed share bob", where=("bob",))
    for each in (more, share, LATE):
        assert advice(each, known) == "best single change: speed 'hub' x2"
    assert advice(LATE, known[:1]) == ""
    assert advice(LATE, [remedy("lifetime", "ann"), remedy("speed", "hub")]) == advice(LATE, known)


def test_an_alarm_names_its_place_once():
    assert SLOW.sentence() == "broker hub is slower: 1.3 times the service time"
    assert LATE.sentence().startswith("events are late (ann): 1.3")


def test_only_the_latest_that_ended_are_kept():
    old = tuple(replace(SLOW, name=f"n{n}", until_ns=n) for n in range(ENDED_SHOWN + 5))
    assert len(turned(old, [], 100).alarms) == ENDED_SHOWN


def state(number):
    return State(
        at_ns=number, system="city", window_s=60.0, alarms=(SLOW,), health=Health(), backlogs={},
        standings=tuple(Standing(name=f"s{n}" if n else "") for n in range(30)),
    )  # fmt: skip


def test_the_past_has_a_line_for_every_state_and_a_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(states, "MOST_PAST_LINES", 6)
    for number in range(6):
        write_state(tmp_path, state(number))
    past = tmp_path / PAST_FILE
    assert [json.loads(line)["at_ns"] for line in past.read_text().splitlines()] == list(range(6))
    assert len(json.loads(past.read_text().splitlines()[0])["shares"]) == states.MOST_IN_PAST
    write_state(tmp_path, state(6))
    assert [json.loads(line)["at_ns"] for line in past.read_text().splitlines()] == [3, 4, 5, 6]
    past.write_text(past.read_text() + '{"at_ns": 7, "sha')  # killed while it was written
    write_state(tmp_path, state(8))
    assert [json.loads(line)["at_ns"] for line in past.read_text().splitlines()] == [3, 4, 5, 6, 8]
    assert read_state(tmp_path) == state(8)
    assert sorted(each.name for each in tmp_path.iterdir()) == sorted([NOW_FILE, PAST_FILE])


def test_a_watch_can_show_itself_on_a_page(tmp_path, monkeypatch):
    said = []
    monkeypatch.setattr(console, "note", said.append)
    with served(tmp_path / "state", 0):
        url = said[0].removeprefix("Page: ")
        with urllib.request.urlopen(url, timeout=30) as answer:
            assert b"Tidings" in answer.read()
    with pytest.raises(OSError, match=r"refused|reset"):
        urllib.request.urlopen(url, timeout=5)


@pytest.mark.parametrize("name", ["p", "b", "publisher b"])
def test_a_name_that_is_part_of_a_word_is_said_all_the_same(name):
    what = "publisher has fallen silent"
    alarm = Alarm(
        name="changed publishers.p.rate", kind="changed", where=(name,), what=what, size=0.0,
        unit="events", since_ns=1,
    )  # fmt: skip
    assert f"({name})" in alarm.sentence()
    assert replace(alarm, what=f"{what}: {name}").unnamed() == []
