"""Rounds of watching without Spark: a store in use, rows set aside part by part."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import tidings as td
from tidings.characterisation.count.store import StorePart, locked
from tidings.characterisation.fit.quality import QUALITY_COLUMNS, SET_ASIDE
from tidings.characterisation.statistics import UNPUBLISHED
from tidings.errors import StoreInUseError
from tidings.traces.window import TraceWindow
from tidings.watching import closing, rounds
from tidings.watching.closing import Closing
from tidings.watching.rounds import Watcher, WatchPlan, watching
from tidings.watching.staging import MicroBatch, Staging
from tidings.watching.state import NOW_FILE, Alarm, Health, State, read_state

SYSTEM = td.loads(
    """
tidings: 1
lifetime: 1s
brokers: {hub: {service: 1ms}}
publishers: {ann: {at: hub, every: 1s, content: {event: {t: 1}}}}
subscribers: {bob: {at: hub, wants: {t: 1}}}
"""
)
SECOND_NS = 10**9


@pytest.fixture
def plan(tmp_path):
    (tmp_path / "in").mkdir()
    rules = Closing(source=tmp_path / "in", store=tmp_path / "store", base=SYSTEM)
    return WatchPlan(
        closing=rules, system=SYSTEM, name="small", folder=tmp_path / "store" / "watch"
    )


def watched(plan):
    return watching(plan, None, lambda _: None, lambda _: None)


def test_what_was_counted_and_not_judged_is_judged_by_the_next_run(plan, monkeypatch):
    """A run may be killed between counting a part and writing the state."""
    measured = []
    monkeypatch.setattr(rounds, "take_new_files", lambda *_, **__: None)
    monkeypatch.setattr(Watcher, "_compact", lambda _: None)
    monkeypatch.setattr(Watcher, "_measure", lambda _: measured.append(1) or True)
    for counted_s, expected in ((0, 0), (60, 1), (60, 1), (120, 2)):
        monkeypatch.setattr(
            closing.Closing, "counted_until_ns", lambda _, until=counted_s: until * SECOND_NS
        )
        with watched(plan) as watcher:
            for _ in range(2):
                state = watcher.round()
        assert len(measured) == expected
        assert state.health.judged_ns == counted_s * SECOND_NS


def test_a_store_that_is_emptied_is_told_of_until_the_watch_begins_anew(plan, monkeypatch):
    monkeypatch.setattr(rounds, "take_new_files", lambda *_, **__: None)
    monkeypatch.setattr(Watcher, "_compact", lambda _: None)
    monkeypatch.setattr(Watcher, "_measure", lambda _: True)
    problems = []
    with watched(plan) as watcher:
        for counted_s in (60, 60, 0, 120, 180):
            monkeypatch.setattr(
                closing.Closing, "counted_until_ns", lambda _, until=counted_s: until * SECOND_NS
            )
            watcher._unmeasured = True
            problems.append(watcher.round().health.problem)
    assert problems[:2] == ["", ""]
    assert all("was emptied while it was watched" in each for each in problems[2:])


def test_what_was_fitted_is_found_from_anywhere(tmp_path, monkeypatch):
    """The state is read elsewhere than where a relative --store was given."""
    monkeypatch.chdir(tmp_path)
    Path("in").mkdir()
    rules = Closing(source=Path("in"), store=Path("store"), base=SYSTEM)
    plan = WatchPlan(closing=rules, system=SYSTEM, name="small", folder=Path("store", "watch"))
    monkeypatch.setattr(Watcher, "_foretold", lambda *_: None)
    with watched(plan) as watcher:
        watcher._keep(SYSTEM, 1)
        kept = Path(watcher._fitted)
    with watched(plan) as again:
        found = Path(again._fitted)
    assert kept == found == tmp_path / "store" / "watch" / "fitted.yaml"


def test_a_source_that_is_gone_is_told_of_and_asked_again(plan, monkeypatch):
    taken = []
    monkeypatch.setattr(rounds, "take_new_files", lambda *_, **__: taken.append(1))
    source = plan.closing.source
    with watched(plan) as watcher:
        source.rmdir()
        assert "the folder is not there" in watcher.round().health.problem
        assert taken == []
        source.mkdir()
        assert watcher.round().health.problem == ""
        assert taken == [1]


def test_a_store_in_use_is_told_of_and_asked_again(plan, monkeypatch):
    """A reader ends no watch; who wants to watch the same store is refused."""
    latest = MicroBatch(number=0, files=(), newest_ns=100 * SECOND_NS, refused_files=2)
    window = TraceWindow(from_ns=0, until_ns=60 * SECOND_NS)
    counted = []

    def close(self, *_):
        with locked(self.store, alone=True):
            counted.append(window)
        return window

    monkeypatch.setattr(closing.Closing, "close", close)
    monkeypatch.setattr(rounds, "take_new_files", lambda *_, **__: None)
    monkeypatch.setattr(Staging, "latest", lambda _: latest)
    monkeypatch.setattr(Watcher, "_compact", lambda _: None)
    measured = iter((False, True))
    monkeypatch.setattr(Watcher, "_measure", lambda _: next(measured))
    with watched(plan) as watcher:
        with locked(plan.closing.store, alone=False):
            state = watcher.round()
        assert "until the next look" in state.health.problem
        assert "another run is using this store" in state.health.problem
        assert counted == []
        assert state.health.refused_files == 2
        assert watcher.round().health.problem == ""
        assert counted == [window]
        monkeypatch.setattr(closing.Closing, "close", lambda *_: None)
        watcher.round()  # what could not be measured the last time
        assert next(measured, None) is None
        elsewhere = WatchPlan(
            closing=plan.closing, system=SYSTEM, name="again", folder=plan.folder / "other"
        )
        for second in (plan, elsewhere):
            with pytest.raises(StoreInUseError, match="another run"), watched(second):
                pass


def test_a_file_that_grows_is_told_of_once_for_every_time(plan, monkeypatch):
    """A warning that lasted would ring for ever."""
    monkeypatch.setattr(rounds, "take_new_files", lambda *_, **__: None)
    sizes = iter([{"a": 5}, {"a": 5}, {"a": 7}])
    monkeypatch.setattr(Staging, "changed_files", lambda _: next(sizes))
    with watched(plan) as watcher:
        said = [watcher.round().health.problem for _ in range(3)]
    assert [each.startswith("changed after they were read: a") for each in said] == [1, 0, 1]
    assert said[1] == ""


def quality(unreadable, of_another_part):
    rows = [
        ("hops", "used", "", 100),
        ("hops", SET_ASIDE, "no event", unreadable),
        ("deliveries", SET_ASIDE, UNPUBLISHED, of_another_part),
    ]
    return pd.DataFrame(rows, columns=list(QUALITY_COLUMNS))


class Fitted:
    """What is fitted of some parts, as far as it matters here."""

    def __init__(self, *of):
        self.quality = quality(*of)


def part(number):
    begin_ns = number * 60 * SECOND_NS
    return StorePart(
        folder=f"{number}", from_ns=begin_ns, until_ns=begin_ns + 60 * SECOND_NS, source="",
        tables=(),
    )  # fmt: skip


def test_the_limits_of_a_batch_are_those_of_when_it_is_taken(plan, monkeypatch):
    """However long Spark takes to start: rows of meanwhile are not of times to come."""
    limits = []

    def take_new_files(spark, source, checkpoint, take, **_):
        monkeypatch.setattr(rounds.time, "time_ns", lambda: 500 * SECOND_NS)
        take(0, ["a"])

    def taken(self, spark, number, files, given):
        limits.append(given)
        return MicroBatch(number=0, files=(), newest_ns=0)

    monkeypatch.setattr(rounds.time, "time_ns", lambda: 100 * SECOND_NS)
    monkeypatch.setattr(rounds, "take_new_files", take_new_files)
    monkeypatch.setattr(Staging, "take", taken)
    monkeypatch.setattr(closing.Closing, "close", lambda *_: None)
    with watched(plan) as watcher:
        watcher.round()
    assert [each.now_ns for each in limits] == [510 * SECOND_NS]


def test_a_state_that_cannot_be_read_is_none_and_is_told_of(plan, monkeypatch):
    monkeypatch.setattr(rounds, "take_new_files", lambda *_, **__: None)
    monkeypatch.setattr(closing.Closing, "close", lambda *_: None)
    plan.folder.mkdir(parents=True)
    for torn in ('{"at_ns": 1', '{"of": "another version"}'):
        (plan.folder / NOW_FILE).write_text(torn)
        with watched(plan) as watcher:
            assert "alarms begin anew" in watcher.round().health.problem
            assert watcher.round().health.problem == ""


def test_the_state_is_kept_before_anybody_is_told(plan, monkeypatch):
    """Whoever is told may not answer, and take the process with it."""
    alarm = Alarm(
        name="target bob", kind="target", where=("bob",), what="late", size=1.0, unit="", since_ns=1
    )
    state = State(
        at_ns=1, system="small", window_s=60.0, standings=(), alarms=(alarm,), health=Health(),
        backlogs={},
    )  # fmt: skip
    told = []

    def tell(each):
        told.append((each, read_state(plan.folder)))

    monkeypatch.setattr(rounds, "take_new_files", lambda *_, **__: None)
    monkeypatch.setattr(closing.Closing, "close", lambda *_: None)
    monkeypatch.setattr(Watcher, "_judge", lambda *_, **__: (state, (alarm,)))
    with watching(plan, None, tell, lambda _: None) as watcher:
        watcher.round()
    assert told == [(alarm, state)]


def test_rows_set_aside_are_added_up_part_by_part_and_each_part_once(plan, monkeypatch):
    """What belongs to another part is no dirt; parts of a run that was killed are made up for."""
    asked = []

    def fitted(_, __, *, since_ns, **__how):
        asked.append(since_ns)
        return Fitted(5, 0)

    monkeypatch.setattr(rounds, "characterise_store", fitted)
    with watched(plan) as watcher:

        def totals(number, *of):
            watcher._found = Fitted(*of)
            watcher._count_set_aside([part(each) for each in range(number + 1)])
            return watcher._set_aside[0]

        assert totals(0, 3, 9) == 3
        assert totals(1, 0, 9) == 3
        assert totals(1, 2, 9) == 3
        assert totals(2, 2, 9) == 5
        watcher._found = None
        state, _ = watcher._judge(None, 0.0, is_new=False)
        assert state.health.set_aside_rows == 5
        assert asked == []
        rounds.write_state(plan.folder, state)
    with watched(plan) as watcher:
        assert watcher._set_aside == (5, 180 * SECOND_NS)
        assert totals(4, 1, 1) == 10
        assert asked == [180 * SECOND_NS]
