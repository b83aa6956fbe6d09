"""The file of what was measured: lines are added, old ones go, half a line is none."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import tidings as td
from tidings.characterisation.count.store import StorePart
from tidings.model.delay_grid import EDGES_S, bin_of
from tidings.watching import measuring
from tidings.watching.counts import EventCounts, Stretch
from tidings.watching.ledger import Ledger
from tidings.watching.shares import tally
from tidings.watching.state import EVERYBODY

S_NS = 1_000_000_000
NAMES = (EVERYBODY, "ann")


def stretch(number):
    counts = {
        "ann": EventCounts(wanted=10 + number, delivered=9, on_time=8),
        "nobody": EventCounts(wanted=1, delivered=1, on_time=0),  # is not in the known system
    }
    return Stretch(from_ns=number * S_NS, until_ns=(number + 1) * S_NS, counts=counts)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "measured.jsonl"


def opened(path, keep_s=1000.0):
    return Ledger(path=path, keep_s=keep_s, names=NAMES)


def holds(ledger, stretches):
    """Test whether a ledger counts the same as its stretches do together."""
    counted, expected = ledger.read(), tally(stretches, NAMES)
    return ledger.newest == (stretches[-1] if stretches else None) and all(
        np.array_equal(getattr(counted, name), getattr(expected, name))
        for name in ("from_ns", "until_ns", "wanted", "on_time")
    )


def test_what_is_added_is_read_by_the_next_one(path):
    ledger = opened(path, keep_s=5.0)
    for number in range(20):
        ledger.add(stretch(number))
        assert holds(ledger, [stretch(each) for each in range(max(0, number - 4), number + 1)])
        known = opened(path, keep_s=5.0)
        assert known.read().wanted[:, -1].tolist() == [11 + number, 10 + number]
        assert known.newest == stretch(number)
        assert len(known.read().until_ns) <= 2 * 5  # old lines do not stay for ever


def test_a_line_is_added_without_writing_all_anew(path):
    ledger = opened(path)
    for number in range(10):
        ledger.add(stretch(number))
    node = path.stat().st_ino
    ledger.add(stretch(10))
    assert path.stat().st_ino == node


def test_of_many_short_stretches_the_oldest_are_joined(path, monkeypatch):
    monkeypatch.setattr("tidings.watching.ledger.MOST_STRETCHES", 16)
    ledger = opened(path)
    for number in range(100):
        ledger.add(stretch(number))
        counted = ledger.read()
        assert len(counted.until_ns) <= 16
        assert np.array_equal(counted.from_ns[1:], counted.until_ns[:-1])  # no hole, no overlap
        assert counted.until_ns[-4:].tolist() == [
            (each + 1) * S_NS for each in range(max(number - 3, 0), number + 1)
        ]  # what is new stays as fine as it was
        assert counted.wanted[1].sum() == sum(10 + each for each in range(number + 1))
        assert counted.wanted[0].sum() == sum(11 + each for each in range(number + 1))
    again = opened(path)
    assert np.array_equal(again.read().wanted, ledger.read().wanted)


def test_memory_is_arrays_not_records(path):
    """Six hours of 10,000 subscribers are 3.6 million counts: 30 MB, not a gigabyte."""
    names = [f"s{n}" for n in range(1000)]
    counts = {name: EventCounts(wanted=3, delivered=2, on_time=1) for name in names}
    ledger = Ledger(path=path, keep_s=1000.0, names=tuple(names))
    for number in range(20):
        ledger.add(Stretch(from_ns=number, until_ns=number + 1, counts=counts))
    counted = ledger.read()
    assert counted.wanted.nbytes + counted.on_time.nbytes == 2 * 4 * 1000 * 20


def test_half_a_line_is_dropped_and_what_follows_is_whole(path):
    ledger = opened(path)
    for number in range(3):
        ledger.add(stretch(number))
    path.write_bytes(path.read_bytes()[:-7])
    again = opened(path)
    assert holds(again, [stretch(0), stretch(1)])
    again.add(stretch(2))
    assert holds(opened(path), [stretch(each) for each in range(3)])


def test_what_cannot_be_read_is_measured_anew(path):
    path.write_text("no json\n")
    ledger = opened(path)
    assert holds(ledger, [])
    ledger.add(stretch(0))
    assert holds(opened(path), [stretch(0)])


def test_what_is_on_time_for_an_objective_is_so_by_its_own_time():
    """Traces know lifetimes of events; delays on a grid tell of any other time to within a bin."""
    system = td.loads(
        """
tidings: 1
lifetime: 400ms
brokers: {hub: {}}
publishers: {ann: {at: hub, every: 1s, content: {event: {t: 1}}}}
subscribers:
  bob: {at: hub, wants: {t: 1}, lifetime: 50ms}
  eve: {at: hub, wants: {t: 1}, lifetime: {exponential: 50ms}}
  all: {at: hub, wants: {t: 1}}
"""
    )
    delays_s = np.random.default_rng(1).exponential(0.05, 20_000)
    bins = np.bincount(bin_of(delays_s), minlength=EDGES_S.size)
    filled = np.flatnonzero(bins)
    rows = {"delay_s": EDGES_S[filled], "arrived": np.cumsum(bins)[filled] / 25_000}
    delays = pd.concat(
        [pd.DataFrame({"subscriber": each.name, **rows}) for each in system.subscribers]
    )
    within = measuring._within_own_lifetimes(system, delays)
    assert within["bob"] == pytest.approx((delays_s <= 0.05).mean(), abs=1e-3)
    assert within["eve"] == pytest.approx(0.5, abs=0.02)  # P[one exponential time < another]
    assert "all" not in within


def test_measuring_counts_by_the_time_of_the_objective(monkeypatch):
    """All events are in time by their own lifetimes; bob was promised half of that."""
    system = td.loads(
        """
tidings: 1
lifetime: 1s
brokers: {hub: {}}
publishers: {ann: {at: hub, every: 1s, content: {event: {t: 1}}}}
subscribers: {bob: {at: hub, wants: {t: 1}, lifetime: 500ms}, eve: {at: hub, wants: {t: 1}}}
"""
    )
    people = [each.name for each in system.subscribers]
    measured = SimpleNamespace(
        subscribers=pd.DataFrame(
            {"subscriber": people, "events": 100.0, "delivered": 0.8, "on_time": 0.8}
        ),
        delays=pd.concat(
            pd.DataFrame({"subscriber": who, "delay_s": [0.1, 0.9], "arrived": [0.2, 0.8]})
            for who in people
        ),
    )
    monkeypatch.setattr(
        measuring, "characterise_store", lambda *_, **__: SimpleNamespace(measured=measured)
    )
    monkeypatch.setattr(measuring, "end_of_batches", lambda *_: 60 * S_NS)
    part = StorePart(folder="", from_ns=0, until_ns=70 * S_NS, source="", tables=())
    stretch = measuring.measure(None, system, [part], 0, 10.0)
    bob, eve = (stretch.counts[who] for who in people)
    assert (bob.wanted, bob.delivered, bob.on_time) == (100, 80, 20)
    assert (eve.wanted, eve.delivered, eve.on_time) == (100, 80, 80)
