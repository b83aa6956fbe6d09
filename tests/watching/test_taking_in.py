"""Rows taken in once, whatever is killed when: every row is counted in its period, or set aside."""

from __future__ import annotations

import itertools
import json
import os
import time
from dataclasses import replace

import pandas as pd
import pytest

from tidings.characterisation.count.store import (
    Catalogue,
    StorePart,
    new_folder_name,
    read_catalogue,
    write_catalogue,
)
from tidings.cli.commands import run
from tidings.errors import EngineError, InvalidTracesError
from tidings.watching import closing, staging
from tidings.watching.checkpoint import mend
from tidings.watching.closing import Closing
from tidings.watching.file_problems import file_problems
from tidings.watching.rounds import WatchPlan
from tidings.watching.staging import Staging, table_of
from tidings.watching.stream import take_new_files

SECOND_NS = 1_000_000_000
EPOCH_NS = 1_700_000_000 * SECOND_NS  # a multiple of the period
PERIOD_S, MARGIN_S = 10.0, 2.0
NOW_NS = EPOCH_NS + 3600 * SECOND_NS

PARQUET = ("parquet",) * 3


def events(*seconds, name="e"):
    """An event at each of some seconds after the epoch: published, seen by a broker, delivered."""
    at_ns = [EPOCH_NS + round(second * 1e9) for second in seconds]
    ids = [f"{name}{second:g}" for second in seconds]
    return {
        "publications": pd.DataFrame(
            {"event": ids, "publisher": "ann", "published_ns": at_ns, "content": '{"t":1}'}
        ),
        "hops": pd.DataFrame(
            {"event": ids, "broker": "hub", "came_from": "ann", "arrived_ns": at_ns,
             "left_ns": [each + 1000 for each in at_ns]}
        ),
        "deliveries": pd.DataFrame(
            {"event": ids, "subscriber": "bob", "received_ns": [each + 5000 for each in at_ns]}
        ),
    }  # fmt: skip


def write(source, number, tables, kinds=("parquet", "jsonl", "csv")):
    """Files of some tables, each in a format of its own; gives their names."""
    files = []
    for kind, (table, rows) in zip(kinds, tables.items(), strict=True):
        folder = source / table
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{number}.{kind}"
        if kind == "parquet":
            rows.to_parquet(path, index=False)
        elif kind == "jsonl":
            rows.to_json(path, orient="records", lines=True)
        else:
            rows.to_csv(path, index=False)
        files.append(str(path))
    return files


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A source, a store that only writes down which rows it is given, and where rows wait."""
    counted = []

    def add(traces, store, **_):
        store.mkdir(exist_ok=True)
        known = read_catalogue(store) or Catalogue(margin_s=MARGIN_S)
        window = traces.window
        part = StorePart(
            folder=new_folder_name(), from_ns=window.from_ns, until_ns=window.until_ns,
            source=traces.source, tables=tuple(traces.tables),
        )  # fmt: skip
        rows = {name: frame.toPandas() for name, frame in traces.tables.items()}
        write_catalogue(store, replace(known, parts=(*known.parts, part)))
        counted.append((window, rows))

    monkeypatch.setattr(closing, "add_traces", add)
    (tmp_path / "in").mkdir()
    rules = Closing(
        source=tmp_path / "in", store=tmp_path / "store", base=None,
        period_s=PERIOD_S, margin_s=MARGIN_S,
    )  # fmt: skip
    return rules, tmp_path / "staged", counted


def look(spark, place, number, files):
    """One round: take in, and count what is due."""
    rules, folder, _ = place
    waiting = Staging(folder)
    batch = waiting.take(spark, number, files, rules.limits(NOW_NS))
    rules.close(spark, waiting, batch, lambda _: None)
    return batch


def counted_events(place, table="publications"):
    return [sorted(rows[table]["event"]) for _, rows in place[2]]


@pytest.mark.spark
@pytest.mark.usefixtures("few_rows")
def test_periods_are_counted_when_the_margin_has_passed(spark, place):
    rules = place[0]
    look(spark, place, 0, write(rules.source, 0, events(0.5, 4.0, 11.9)))
    assert place[2] == []  # a publication 1.9 s beyond the end: rows may still come
    look(spark, place, 1, write(rules.source, 1, events(9.5, 12.0)))  # in any order
    assert counted_events(place) == [["e0.5", "e4", "e9.5"]]
    ((window, _),) = place[2]
    assert (window.from_ns, window.until_ns) == (
        EPOCH_NS + SECOND_NS // 2,
        EPOCH_NS + 10 * SECOND_NS,
    )
    look(spark, place, 2, write(rules.source, 2, events(25.0, 42.0)))  # three periods at once
    for table in ("publications", "hops", "deliveries"):
        assert counted_events(place, table)[1:] == [["e11.9", "e12", "e25"]]
    assert [window.until_ns for window, _ in place[2]][1] == EPOCH_NS + 40 * SECOND_NS


@pytest.mark.spark
@pytest.mark.usefixtures("few_rows")
def test_what_cannot_be_counted_is_set_aside_and_told(spark, place):
    """Rows too late, of a clock that is wrong, without a time; a file that cannot be read."""
    rules, folder, _ = place
    look(spark, place, 0, write(rules.source, 0, events(0.5, 13.0)))
    late = write(rules.source, 1, events(3.0, 14.0, name="late"))
    ahead = write(rules.source, 2, events(999_999.0, name="ahead"))
    bad = rules.source / "hops" / "bad.jsonl"
    bad.write_text('{"event": "x"}\nnonsense\n')
    torn = rules.source / "publications" / "torn.parquet"
    torn.write_bytes(b"PAR1 torn")
    batch = look(spark, place, 1, [*late, *ahead, str(bad), str(torn)])
    assert (batch.rows, batch.late_rows) == (11, 6)
    assert batch.newest_ns == EPOCH_NS + 14 * SECOND_NS
    assert list(batch.refused) == [str(torn)]
    kept = pd.read_parquet(folder / "batch-1" / "late" / "hops")
    assert sorted(kept["event"]) == ["ahead999999", "late3"]
    batch = look(spark, place, 2, write(rules.source, 3, events(23.0)))
    assert (batch.late_rows, batch.refused_files) == (6, 1)  # so far
    assert counted_events(place) == [["e0.5"], ["e13", "late14"]]
    hops = place[2][1][1]["hops"]
    assert len(hops) == 4
    assert hops["unreadable"].notna().sum() == 1
    assert (folder / "batch-1" / "late").is_dir()
    week_ago_s = time.time() - staging.LATE_KEPT_S - 1
    os.utime(folder / "batch-1" / "late", (week_ago_s, week_ago_s))
    batch = look(spark, place, 3, write(rules.source, 4, events(33.0)))
    assert not (folder / "batch-1" / "late").exists()
    assert batch.late_rows == 6
    assert not (folder / "batch-0").exists()


@pytest.fixture
def without_spark(monkeypatch):
    """Rows written and read by pandas: quicker, where only the order of steps matters."""

    def put(_, files, draft, period_ns):
        for file in files:
            rows, time = pd.read_parquet(file), staging.TIMES[table_of(file)]
            for number, part in rows.groupby(rows[time] // period_ns):
                folder = draft / table_of(file) / f"period={number}"
                folder.mkdir(parents=True)
                part.to_parquet(folder / "0.parquet", index=False)
        return {}

    class Rows(pd.DataFrame):
        toPandas = pd.DataFrame.copy  # noqa: N815 - as Spark calls it

    def rows(self, _, table, until_ns, period_ns):
        paths = [path for path, number in self._periods(table) if number * period_ns < until_ns]
        return Rows(pd.concat([pd.read_parquet(path / "0.parquet") for path in paths]))

    monkeypatch.setattr(staging, "_write", put)
    monkeypatch.setattr(Staging, "rows", rows)


@pytest.mark.usefixtures("without_spark")
def test_rows_from_long_before_all_others_begin_nothing(place):
    """One row of 1970 and one of last year, beside a minute of others; old rows alone are good."""
    rules, folder, counted = place
    seconds = [0.5 + 0.5 * n for n in range(19)]
    dirty = events(*seconds, 13.0)
    for at_ns in (5, EPOCH_NS - 365 * 86_400 * SECOND_NS):
        for table, rows in dirty.items():
            time, bad = staging.TIMES[table], rows.tail(1).assign(event=f"bad{at_ns}")
            bad = bad.assign(**{each: at_ns for each in ("left_ns", time) if each in bad})
            dirty[table] = pd.concat([rows, bad] if table != "hops" else [rows])
    look(None, place, 0, write(rules.source, 0, dirty, PARQUET))
    ((window, _),) = counted
    assert window.from_ns == EPOCH_NS + SECOND_NS // 2
    for table in ("publications", "deliveries"):
        assert counted_events(place, table) == [sorted(f"e{each:g}" for each in seconds)]
    waiting = Staging(folder)
    assert waiting.strays() == 4
    kept = pd.concat(map(pd.read_parquet, (folder / "batch-0" / "early").rglob("*.parquet")))
    assert set(kept["event"].str[:3]) == {"bad"}
    look(None, place, 1, write(rules.source, 1, events(23.0), PARQUET))
    assert waiting.strays() == 4  # never removed


@pytest.mark.usefixtures("without_spark")
def test_most_rows_decide_what_is_long_before(place):
    """Two recordings with days between them, both as large: both are counted."""
    rules, _, counted = place
    two = events(0.5, 3.0, 8.0, 3 * 86_400.0, 3 * 86_400.0 + 1.0, 3 * 86_400.0 + 13.0)
    now_ns = NOW_NS + 4 * 86_400 * SECOND_NS
    waiting = Staging(place[1])
    files = write(rules.source, 0, two, PARQUET)
    batch = waiting.take(None, 0, files, rules.limits(now_ns))
    rules.close(None, waiting, batch, lambda _: None)
    assert counted[0][0].from_ns == EPOCH_NS + SECOND_NS // 2
    assert waiting.strays() == 0


@pytest.mark.usefixtures("without_spark")
def test_parts_of_another_length_are_refused_while_rows_wait(place):
    """Folders of periods are numbered: under another length they would be of other times."""
    rules, folder, _ = place
    look(None, place, 0, write(rules.source, 0, events(0.5, 13.0), PARQUET))
    Staging(folder).check_period(rules.period_ns)
    rules = replace(rules, period_s=4.0)
    shorter = WatchPlan(closing=rules, system=None, name="", folder=folder.parent)
    assert shorter.staged == folder
    with pytest.raises(InvalidTracesError, match=r"wait here in parts of 10 s.* give --part 10s"):
        shorter.check()


@pytest.mark.usefixtures("without_spark")
def test_files_that_change_after_they_were_read_are_named(place):
    rules, folder, _ = place
    files = write(rules.source, 0, events(0.5), PARQUET)
    look(None, place, 0, files)
    assert Staging(folder).changed_files() == {}
    with (rules.source / "hops" / "0.parquet").open("ab") as grown:
        grown.write(b"more")
    size = (rules.source / "hops" / "0.parquet").stat().st_size
    assert Staging(folder).changed_files() == {files[1]: size}
    look(None, place, 1, write(rules.source, 1, events(3.0), PARQUET))
    assert Staging(folder).changed_files() == {files[1]: size}  # its rows still wait
    (rules.source / "hops" / "0.parquet").unlink()  # as one may what was taken in
    assert Staging(folder).changed_files() == {}


def test_files_that_are_passed_over_are_told_of():
    refused = {f"/in/hops/{name}.csv": "torn" for name in "abcd"}
    strange = ["/in/spans-1.jsonl", "/in/hop/1.csv"]
    left, spans, others, changed = file_problems(refused, strange, ["/in/hops/e.jsonl"])
    assert "/in/hops/a.csv (torn); " in left
    assert left.endswith("and 1 more")
    assert "tidings import otlp /in --to" in spans
    assert "/in/hop/1.csv; wants names such as hops/" in others
    assert changed.startswith("changed after they were read: /in/hops/e.jsonl")
    assert list(file_problems({}, [], [])) == []
    batch = staging.MicroBatch(number=0, files=(*strange, "/in/hops/1.csv"))
    assert batch.strange == strange


class Killed(BaseException):
    """As if the process were no more."""


KILLS = {
    "before a batch is in place": (staging.os, "rename", 1),
    "before its record is on the disk": (staging, "keep_below", 1),
    "after it is in place": (staging, "keep_on_disk", 1),
    "before the store changes": (closing, "add_traces", 1),
    "after the store has changed": (staging.Staging, "forget", 2),
    "while rows are forgotten": (staging.shutil, "rmtree", 5),
}


@pytest.mark.parametrize("kill", KILLS.values(), ids=KILLS)
def test_a_kill_loses_and_doubles_nothing(without_spark, place, monkeypatch, kill):
    """A batch that was not done comes again with its number, as Structured Streaming does."""
    rules, spark = place[0], None
    first = write(rules.source, 0, events(0.5, 8.0), PARQUET)
    second = write(rules.source, 1, events(3.0, 13.0), PARQUET)
    look(spark, place, 0, first)
    where, name, at = kill
    usual, calls = getattr(where, name), []

    def dies(*arguments, **options):
        calls.append(1)
        if len(calls) == at:
            raise Killed
        return usual(*arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(where, name, dies)
        with pytest.raises(Killed):
            look(spark, place, 1, second)
    look(spark, place, 1, second)
    batch = look(spark, place, 2, write(rules.source, 2, events(23.0), PARQUET))
    for table in ("publications", "hops", "deliveries"):
        assert counted_events(place, table) == [["e0.5", "e3", "e8"], ["e13"]]
    assert batch.late_rows == 0
    with pytest.raises(InvalidTracesError, match="batch 2 was of other files"):
        look(spark, place, 2, first)


@pytest.mark.spark
@pytest.mark.usefixtures("few_rows")
def test_the_stream_gives_a_batch_again_until_it_is_done(spark, tmp_path):
    source, checkpoint = tmp_path / "in", tmp_path / "checkpoint"
    (source / "hops").mkdir(parents=True)
    (source / "traces.json").write_text(json.dumps({}))
    (source / "hops" / "a b#%41.jsonl").write_text("{}\n")
    (source / "hops" / ".hidden.jsonl").write_text("{}\n")
    seen = []

    def fails(number, files):
        seen.append((number, files))
        raise InvalidTracesError("not now")

    with pytest.raises(InvalidTracesError, match="not now"):
        take_new_files(spark, source, checkpoint, fails)
    (source / "hops" / "b.jsonl").write_text("{}\n")

    def works(number, files):
        seen.append((number, files))

    for _ in range(2):
        take_new_files(spark, source, checkpoint, works)
    a, b = (str(source / "hops" / name) for name in ("a b#%41.jsonl", "b.jsonl"))
    assert seen == [(0, [a]), (0, [a]), (1, [b])]


def test_a_file_with_a_wrong_date_hides_no_other(spark, tmp_path):
    """Spark asks how old files are, by the newest that it has seen."""
    source, day_s = tmp_path / "in", 86_400
    (source / "hops").mkdir(parents=True)
    seen = []

    def take(name, age_s):
        path = source / "hops" / name
        path.write_text("{}\n")
        os.utime(path, (time.time() - age_s,) * 2)
        take_new_files(spark, source, tmp_path / "checkpoint", lambda _, files: seen.extend(files))

    for name, age_s in (("ahead.jsonl", -30 * day_s), ("now.jsonl", 0), ("old.jsonl", 90 * day_s)):
        take(name, age_s)
        assert seen[-1].endswith(name)
    assert len(seen) == 3


def test_files_belong_to_tables_by_their_names():
    assert table_of("/in/2026/hops/part-0.parquet") == "hops"
    assert table_of("/in/deliveries.csv.gz") == "deliveries"
    assert table_of("/in/notes/readme.csv") is None
    assert table_of("/in/hops/_SUCCESS") is None


def test_what_cannot_be_watched_is_refused_before_spark_starts(tmp_path, capsys):
    (tmp_path / "system.yaml").write_text(
        "tidings: 1\nbrokers: {hub: {service: 1ms}}\n"
        "publishers: {ann: {at: hub, every: 1s, content: {event: {t: 1}}}}\n"
        "subscribers: {bob: {at: hub, wants: {t: 1}}}\n"
    )
    (tmp_path / "in").mkdir()
    store = tmp_path / "store"
    store.mkdir()
    write_catalogue(store, Catalogue(margin_s=7.0))
    given = ["--system", str(tmp_path / "system.yaml"), "--store", str(store)]
    for source, more, said in (
        ("nowhere", (), "there is no such folder"),
        ("in", ("--margin", "2min"), "no event meets three parts"),
        (".", (), "wants a --store outside"),
        ("in", (), "keeps 7 s at the ends of its parts"),
        ("in", ("--margin", "7s", "--webhook", "ftp://x/"), "wants http"),
    ):
        assert run(["watch", str(tmp_path / source), *given, *more]) == 2
        assert said in " ".join(capsys.readouterr().err.split())


@pytest.mark.spark
def test_a_power_cut_spoils_no_checkpoint(spark, tmp_path, monkeypatch):
    """Whatever was not on the disk yet when the power went: every file comes, none twice."""
    source, checkpoint = tmp_path / "in", tmp_path / "checkpoint"
    source.mkdir()
    taken, kept = {}, []
    rubbish = itertools.cycle([b"", b'v1\n{"path":"file', b"\0" * 60])
    monkeypatch.setattr(
        "tidings.watching.stream.keep_below", lambda folder: kept.append(set(folder.rglob("*")))
    )

    def works(number, files):
        assert taken.setdefault(number, files) == files
        kept.append(set(checkpoint.rglob("*")))

    def round_of(number, take):
        (source / f"{number}.jsonl").write_text("{}\n")
        mend(checkpoint)
        take_new_files(spark, source, checkpoint, take)

    def power_goes(*_):
        raise EngineError("the power is gone")

    def spoil():
        """Write rubbish over all that came since it was waited for."""
        new = [each for each in checkpoint.rglob("*") if each.is_file() and each not in kept[-1]]
        for path in new:
            path.write_bytes(next(rubbish))
        return {each.parent.name for each in new}

    kept.append(set())
    for number in range(10):  # the ninth list of files is one of all so far
        if number in (0, 5, 9):  # before anything of the batch was taken or kept
            monkeypatch.setattr("tidings.watching.stream.keep_below", power_goes)
            with pytest.raises(EngineError, match="the power is gone"):
                round_of(number, works)
            assert spoil() >= {"offsets", "0"}
            monkeypatch.setattr(
                "tidings.watching.stream.keep_below",
                lambda folder: kept.append(set(folder.rglob("*"))),
            )
        round_of(number, works)
        if number % 2:  # after all of it was taken
            assert spoil() == {"commits"}
    mend(checkpoint)
    take_new_files(spark, source, checkpoint, works)
    names = [file for files in taken.values() for file in files]
    assert sorted(names) == sorted(str(source / f"{number}.jsonl") for number in range(10))
