"""What a state says first: who is late, why, what to do."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tidings.serving import words
from tidings.watching.state import EVERYBODY, Health, Standing
from watched_folders import ALARM, made_state, share

NAMES = [f"client {index}" for index in range(5)]
WELL = replace(
    made_state([]),
    alarms=(),
    standings=(
        Standing(name=EVERYBODY, promised=0.99, measured=share(0.995, 0.001)),
        Standing(name="a", promised=0.99, measured=share(0.985, 0.01)),  # below, but not surely
    ),
)


def answers(state):
    return {each.question: each.text for each in words.sentences(state)}


def test_it_says_who_is_late_why_and_what_to_do():
    state = made_state(NAMES)
    assert words.lead(state) == "3 of 5 subscribers get fewer events on time than promised."
    told = answers(state)
    assert told["Who"].startswith("client 0 (90.0 % on time, 99.0 % promised), client 1 (")
    assert told["Why"] == "Waiting at south."
    assert told["Do"] == "Double the speed of south."


def test_who_may_be_late_by_chance_is_not_accused():
    assert words.lead(WELL) == "All is as promised: 99.5 % of the wanted events arrive on time."
    whole, ann = WELL.standings
    less = replace(WELL, standings=(replace(whole, measured=share(0.985, 0.01)), ann))
    assert words.lead(less) == "98.5 % of the wanted events arrive on time; 99.0 % promised."
    assert answers(WELL) == {}
    alarms = next(each for each in words.figures(WELL) if each.label == "Alarms")
    assert (alarms.value, alarms.note) == ("0", "1 more may be below their promise")


def test_an_alarm_is_the_first_thing_said_where_nobody_is_late():
    changed = replace(ALARM, kind="changed", what="service is slower", where=("south",), cause="")
    state = replace(WELL, alarms=(changed, replace(ALARM, until_ns=1)))
    assert words.lead(state) == "Service is slower (south)."
    assert answers(state)["Why"] == "Service is slower (south)."


@pytest.mark.parametrize("state", [None, replace(WELL, standings=(), backlogs={})])
def test_where_little_is_known_it_says_so(state):
    assert words.lead(state).startswith("Nothing ")
    assert words.sentences(state) == []


def test_what_is_wrong_with_the_watching_is_a_warning():
    assert words.warnings(WELL) == []
    ill = Health(batch_s=12.0, trigger_s=10.0, behind_s=300.0, problem="no space left")
    told = words.warnings(replace(WELL, health=ill), "now.json cannot be read")
    assert [each.partition(":")[0] for each in told] == [
        "now.json cannot be read",
        "The latest look had a problem",
        "Watching does not keep up",
        "The newest event is 5 min old.",
    ]
