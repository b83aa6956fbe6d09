"""States of watched systems come back from their plain data as they were."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tidings.watching.state import (
    EVERYBODY,
    NOW_FILE,
    Alarm,
    Health,
    Share,
    Standing,
    State,
    read_state,
)

STATE = State(
    at_ns=1_700_000_000_000_000_000,
    system="city",
    window_s=300.0,
    standings=(
        Standing(
            name=EVERYBODY,
            promised=0.99,
            measured=Share(share=0.9, low=0.88, high=0.92),
            predicted=Share(share=0.99, low=0.985, high=0.995),
            wanted=1000,
            burn_rates={"5m": 10.0},
        ),
        Standing(name="alice"),
    ),
    alarms=(
        Alarm(
            name="target:alice",
            kind="target",
            where=("alice",),
            what="fewer events on time than promised",
            size=0.09,
            unit="of a share",
            since_ns=1_699_999_000_000_000_000,
            cause="waiting at b1",
            do="double the speed of b1",
        ),
    ),
    health=Health(batch=3, rows=10, batch_s=1.5, trigger_s=60.0),
    backlogs={"b1": 12},
)


def test_a_state_comes_back_as_it_was(tmp_path: Path) -> None:
    (tmp_path / NOW_FILE).write_text(json.dumps(STATE.to_document()))
    assert read_state(tmp_path) == STATE


def test_where_nothing_was_watched_there_is_no_state(tmp_path: Path) -> None:
    assert read_state(tmp_path) is None


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"standings": 1, "alarms": [], "health": {}}'])
def test_what_is_no_state_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / NOW_FILE).write_text(text)
    with pytest.raises(ValueError):  # noqa: PT011  whichever part is missing
        read_state(tmp_path)


def test_an_alarm_says_what_where_how_much_why_and_what_to_do() -> None:
    assert STATE.alarms[0].sentence() == (
        "fewer events on time than promised (alice): 0.09 of a share; because waiting at b1; "
        "double the speed of b1"
    )


def test_a_line_of_the_past_has_the_shares_of_everybody() -> None:
    line = json.loads(STATE.past_line())
    assert line["shares"][EVERYBODY] == [0.99, 0.9, 0.88, 0.92, 0.99, 0.985, 0.995]
    assert line["shares"]["alice"] == [None] * 7
