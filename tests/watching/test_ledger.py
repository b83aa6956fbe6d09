"""The file of what was measured: lines are added, old ones go, half a line is none."""

from __future__ import annotations

import pytest

from tidings.watching.counts import EventCounts, Stretch
from tidings.watching.measuring import Ledger

S_NS = 1_000_000_000


def stretch(number):
    counts = EventCounts(wanted=10 + number, delivered=9, on_time=8)
    return Stretch(from_ns=number * S_NS, until_ns=(number + 1) * S_NS, counts={"ann": counts})


@pytest.fixture
def path(tmp_path):
    return tmp_path / "measured.jsonl"


def test_what_is_added_is_read_by_the_next_one(path):
    ledger = Ledger(path=path, keep_s=5.0)
    for number in range(20):
        ledger.add(stretch(number))
        expected = [stretch(each) for each in range(max(0, number - 4), number + 1)]
        assert ledger.read() == expected
        known = Ledger(path=path, keep_s=5.0).read()
        assert known[-len(expected) :] == expected
        assert len(known) <= 2 * 5  # old lines do not stay for ever


def test_a_line_is_added_without_writing_all_anew(path):
    ledger = Ledger(path=path, keep_s=1000.0)
    for number in range(10):
        ledger.add(stretch(number))
    node = path.stat().st_ino
    ledger.add(stretch(10))
    assert path.stat().st_ino == node


def test_half_a_line_is_dropped_and_what_follows_is_whole(path):
    ledger = Ledger(path=path, keep_s=1000.0)
    for number in range(3):
        ledger.add(stretch(number))
    path.write_bytes(path.read_bytes()[:-7])
    again = Ledger(path=path, keep_s=1000.0)
    assert again.read() == [stretch(0), stretch(1)]
    again.add(stretch(2))
    assert Ledger(path=path, keep_s=1000.0).read() == [stretch(each) for each in range(3)]


def test_what_cannot_be_read_is_measured_anew(path):
    path.write_text("no json\n")
    ledger = Ledger(path=path, keep_s=1000.0)
    assert ledger.read() == []
    ledger.add(stretch(0))
    assert Ledger(path=path, keep_s=1000.0).read() == [stretch(0)]
