"""Watched folders are read when they change, and of their past only what is new."""

from __future__ import annotations

import pytest

from tidings.serving import folder as folders
from tidings.serving.folder import PastStates, WatchedFolder
from tidings.watching.state import EVERYBODY, NOW_FILE, PAST_FILE
from watched_folders import made_state, write_state


def test_a_state_is_read_once_for_each_time_it_is_replaced(tmp_path):
    watched = WatchedFolder(tmp_path)
    assert not watched.renew()
    assert watched.state is None
    first = write_state(tmp_path, made_state(["a"]))
    assert [watched.renew(), watched.renew()] == [True, False]
    assert watched.state == first
    second = write_state(tmp_path, made_state(["a", "b"]))
    assert watched.renew()
    assert watched.state == second


@pytest.mark.parametrize("text", ["{", "[]", '{"at_ns": 1}', "\xff" * 3])
def test_what_cannot_be_read_is_said_and_what_was_known_stays(tmp_path, text):
    known = write_state(tmp_path, made_state(["a"]))
    watched = WatchedFolder(tmp_path)
    watched.renew()
    (tmp_path / NOW_FILE).write_text(text, encoding="latin-1")
    assert watched.renew()
    assert watched.state == known
    assert watched.problem.startswith("now.json cannot be read: ")


def test_a_link_is_not_followed(tmp_path):
    (tmp_path / "elsewhere").write_text("{}")
    (tmp_path / NOW_FILE).symlink_to(tmp_path / "elsewhere")
    watched = WatchedFolder(tmp_path)
    watched.renew()
    assert "a link, not a plain file" in watched.problem


def test_the_past_is_a_series_that_grows(tmp_path):
    past = PastStates(tmp_path)
    assert past.series(EVERYBODY)["at_s"] == []
    states = [write_state(tmp_path, made_state(["a"])) for _ in range(3)]
    assert past.series("a")["at_s"] == [each.at_ns / 1e9 for each in states]
    states.append(write_state(tmp_path, made_state(["a"])))
    series = past.series("a")
    assert series["at_s"] == [each.at_ns / 1e9 for each in states]
    assert series["measured"] == [0.9] * 4
    assert series["promised"] == [0.99] * 4
    assert series["predicted_high"] == [0.995] * 4
    assert past.series("unknown")["measured"] == [None] * 4


def test_no_name_is_taken_for_another(tmp_path):
    names = ['q"alice', "alice", ',"alice', "x,", 'alice":[1],"', "alicé", "alice\\", "a]b"]
    write_state(tmp_path, made_state(names))
    past = PastStates(tmp_path)
    measured = {name: past.series(name)["measured"][0] for name in names}
    assert measured == {
        each.name: each.measured.share for each in made_state(names).standings if each.name
    }
    assert past.series(EVERYBODY)["measured"] == [0.97]


def test_half_a_line_is_read_when_it_is_whole(tmp_path):
    line = made_state(["a"]).past_line() + "\n"
    file = tmp_path / PAST_FILE
    past = PastStates(tmp_path)
    file.write_text("{cut by a crash\n" + line + line[:40])
    assert len(past.series("a")["at_s"]) == 1
    file.write_text("{cut by a crash\n" + line + line)
    assert len(past.series("a")["at_s"]) == 2


def test_of_a_long_past_the_end_is_kept(tmp_path, monkeypatch):
    lines = [made_state(["a"], at_ns=index * 10**9).past_line() + "\n" for index in range(10)]
    monkeypatch.setattr(folders, "MOST_PAST_BYTES", int(3.5 * len(lines[-1])))
    past = PastStates(tmp_path)
    for line in lines:
        with (tmp_path / PAST_FILE).open("a") as file:
            file.write(line)
        grown = past.series(EVERYBODY)["at_s"]
    assert grown == PastStates(tmp_path).series(EVERYBODY)["at_s"] == [7.0, 8.0, 9.0]
