"""Statistics of days put together are those of all days at once."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from tidings.characterisation import stored
from tidings.characterisation.count import adding
from tidings.characterisation.count.adding import add_traces
from tidings.characterisation.count.merging import put_together
from tidings.characterisation.count.seams import settled
from tidings.characterisation.count.store import (
    STORE_FILE,
    counted_subscriptions,
    load_partial,
    locked,
    read_catalogue,
    write_catalogue,
)
from tidings.characterisation.fit.channels import loss_runs
from tidings.characterisation.fit.collected import statistics_of
from tidings.characterisation.fit.fitting import fit
from tidings.characterisation.fit.publishers import interval_samples
from tidings.characterisation.job import observed_in
from tidings.characterisation.statistics import (
    STATISTICS,
    Partial,
    adjoining,
    batches_of,
    difference,
    in_stretch,
    merge_rows,
    shifted,
)
from tidings.characterisation.stored import characterise_store, end_of_batches
from tidings.errors import InvalidTracesError
from tidings.traces.reading import read_traces


def as_cells(name, table):
    """Rows by key, so that tables can be compared; without what tells nothing."""
    keys = [key for key in STATISTICS[name].keys if key in table.columns and key != "stretch"]
    table = table.drop(columns="stretch", errors="ignore")
    if name in ("publications", "bad_contents"):
        keys += [key for key in ("least_lifetime_ns", "most_lifetime_ns") if key in table.columns]
    table[keys] = table[keys].astype(object).where(table[keys].notna(), None).astype(str)
    return table.sort_values(keys).set_index(keys)


def assert_same(found, whole):
    """Whole numbers and extremes are equal, sums of times to rounding."""
    assert list(found.index) == list(whole.index)
    for column in whole.columns:
        a, b = (each[column].astype(float).to_numpy() for each in (found, whole))
        if column.endswith(("total_s", "squares", "logs")):
            assert a == pytest.approx(b, rel=1e-12, abs=1e-12, nan_ok=True), column
        else:
            np.testing.assert_array_equal(a, b, err_msg=column)


@pytest.fixture(scope="module")
def together(dirty_store):
    return stored._whole(dirty_store, read_catalogue(dirty_store))


STITCHED = ("intervals", "loss_runs")
LIKE_STATES = ("sessions",)  # changes of peers go the way of those of components
OF_PARTS = ("levels",)  # at once more is told of counters than adds up (test_levels.py)


@pytest.mark.parametrize(
    "name",
    [
        name
        for name, each in STATISTICS.items()
        if each.keys and not each.optional and name not in (*STITCHED, *LIKE_STATES, *OF_PARTS)
    ],
)
def test_days_put_together_are_all_days_at_once(together, counted_at_once, name):
    whole = merge_rows(name, [counted_at_once.tables[name]])
    assert len(whole) > 0
    assert_same(as_cells(name, together.tables[name]), as_cells(name, whole))


def test_days_written_as_one_part_are_all_days_at_once(dirty_store, counted_at_once, tmp_path):
    """Whatever is a sum, and what is stitched; of windows that batches cut nothing is kept."""
    place = shutil.copytree(dirty_store, tmp_path / "store")
    known = read_catalogue(place)
    steps = counted_subscriptions(place, known.parts)
    part, seams = put_together(place, known.parts, known.seams, steps)
    assert seams == ()
    assert part.batches_ns == (1_000_000_000,) * 32
    catalogue = replace(known, parts=(part,), seams=())
    write_catalogue(place, catalogue)
    found = stored._whole(place, read_catalogue(place))
    for name, each in STATISTICS.items():
        if each.keys and not each.optional and name not in (*STITCHED, *LIKE_STATES, *OF_PARTS):
            rows = merge_rows(name, [counted_at_once.tables[name]])
            assert_same(as_cells(name, found.tables[name]), as_cells(name, rows))
    a, b = (interval_samples(each.tables["intervals"]) for each in (found, counted_at_once))
    assert a.keys() == b.keys()
    for publisher, sample in b.items():
        assert a[publisher].count == sample.count
        np.testing.assert_array_equal(a[publisher].bins, sample.bins)
        assert a[publisher].squares == pytest.approx(sample.squares, rel=1e-12)
    runs = [loss_runs(each.tables["loss_runs"]) for each in (found, counted_at_once)]
    assert runs[0] == runs[1]
    ends = found.tables["intervals"].query("statistic == 'ends'")
    assert len(ends) <= 32 * ends["publisher"].nunique()
    told, parted = characterise_store(place), characterise_store(dirty_store)
    pd.testing.assert_frame_equal(told.measured.subscribers, parted.measured.subscribers)


def test_every_statistic_that_is_counted_has_its_record(counted_at_once):
    """With its keys among its columns: a column that is no key would be added up."""
    assert counted_at_once.tables.keys() == STATISTICS.keys() - {*LIKE_STATES, *OF_PARTS}
    for name, table in counted_at_once.tables.items():
        texts = {column for column in table if pd.api.types.infer_dtype(table[column]) == "string"}
        assert texts <= set(STATISTICS[name].keys or table.columns), name


def test_what_bridges_two_days_is_stitched(together, counted_at_once):
    found, whole = (
        interval_samples(each.tables["intervals"]) for each in (together, counted_at_once)
    )
    assert found.keys() == whole.keys()
    for publisher, sample in whole.items():
        assert found[publisher].count == sample.count > 100
        np.testing.assert_array_equal(found[publisher].bins, sample.bins)
        for sums in ("total_s", "squares", "logs", "squared_logs", "lowest_s", "highest_s"):
            assert getattr(found[publisher], sums) == pytest.approx(
                getattr(sample, sums), rel=1e-12
            )
    runs = loss_runs(counted_at_once.tables["loss_runs"])
    assert runs
    assert loss_runs(together.tables["loss_runs"]) == runs


def test_a_store_tells_what_the_traces_at_once_tell(
    spark, few_rows, dirty_store, counted_at_once, dirty_folders
):
    traces = read_traces(spark, dirty_folders[0])
    whole = fit(observed_in(traces), statistics_of(counted_at_once), traces.window, None)
    found = characterise_store(dirty_store)
    assert found.quality.sort_values(["table", "reason"]).values.tolist() == (
        whole.quality.sort_values(["table", "reason"]).values.tolist()
    )
    pd.testing.assert_frame_equal(found.coverage, whole.coverage)
    for a, b in [
        (found.parameters, whole.parameters),
        (found.measured.subscribers, whole.measured.subscribers),
        (found.measured.brokers, whole.measured.brokers),
        (found.stationarity, whole.stationarity),
        (found.rates, whole.rates),
    ]:
        pd.testing.assert_frame_equal(a, b, rtol=1e-9)
    assert found.system.brokers[1].failure is not None


def test_the_outcomes_of_some_batches_add_up_to_that_of_all(dirty_store):
    """Cut in the first day, and between two batches of the second."""
    parts = read_catalogue(dirty_store).parts
    whole = characterise_store(dirty_store).measured.subscribers
    begin_ns, end_ns = parts[0].from_ns, parts[1].until_ns
    cuts = [end_of_batches(parts, begin_ns + round(at_s * 1e9)) for at_s in (3.7, 20.2)]
    assert [(cut - begin_ns) / 1e9 for cut in cuts] == [3.5, 20.0]
    wanted, on_time = 0.0, 0.0
    for between in zip((begin_ns, *cuts), (*cuts, end_ns), strict=True):
        rows = characterise_store(dirty_store, measured_ns=between).measured.subscribers
        assert list(rows["subscriber"]) == list(whole["subscriber"])
        wanted += rows["events"]
        on_time += (rows["on_time"] * rows["events"]).round()
    np.testing.assert_array_equal(wanted, whole["events"])
    np.testing.assert_array_equal(on_time, (whole["on_time"] * whole["events"]).round())


def test_the_newest_part_alone_knows_who_subscribed_before(dirty_store, dirty_folders):
    last = read_catalogue(dirty_store).parts[1]
    found = characterise_store(dirty_store, since_ns=last.from_ns)
    assert {each.name for each in found.system.subscribers} == {"alice", "bob", "carol"}
    hops = pd.read_parquet(dirty_folders[1][1] / "hops")
    used = found.quality.query("table == 'hops'")["rows"].sum()
    assert used == len(hops)
    with pytest.raises(InvalidTracesError, match="no part that begins"):
        characterise_store(dirty_store, since_ns=last.until_ns)


@pytest.fixture
def copied(dirty_store, tmp_path, monkeypatch):
    """A copy of the store, to which traces are added as if they had been counted."""
    place = shutil.copytree(dirty_store, tmp_path / "copy")
    counted = load_partial(place / read_catalogue(place).parts[1].folder)
    monkeypatch.setattr(adding, "gather", lambda *_: counted)
    return place


# Adds a day in a process of its own. To count it takes longest, and writes nothing: as if done.
ADD = """
import sys
from pathlib import Path
from tidings.characterisation import stored
from tidings.characterisation.count import adding
from tidings.characterisation.count.store import load_partial
from tidings.traces.reading import read_traces
from tidings.traces.session import spark_session

day, store, counted = sys.argv[1:]
adding.gather = lambda *_: load_partial(Path(counted))
with spark_session("local[1]", small=True) as spark:
    adding.add_traces(read_traces(spark, day), Path(store))
"""


@pytest.mark.slow
def test_a_run_that_is_killed_leaves_the_store_as_it_was(
    spark, few_rows, copied, dirty_folders, monkeypatch
):
    before, told = read_catalogue(copied), characterise_store(copied).parameters
    known = {each.name for each in copied.iterdir()}
    counted = copied / before.parts[1].folder
    process = subprocess.Popen(
        [sys.executable, "-c", ADD, str(dirty_folders[1][1]), str(copied), str(counted)]
    )
    try:
        while not (begun := {each.name for each in copied.iterdir()} - known):
            assert process.poll() is None
            time.sleep(0.005)
    finally:
        process.kill()
        process.wait()
    assert read_catalogue(copied) == before
    pd.testing.assert_frame_equal(characterise_store(copied).parameters, told)
    again = read_traces(spark, dirty_folders[1][1])
    monkeypatch.setattr(adding, "seam", lambda *_: load_partial(copied / before.seams[0].folder))
    add_traces(again, copied)  # the same day: it replaces itself
    after = read_catalogue(copied)
    assert [part.window for part in after.parts] == [part.window for part in before.parts]
    assert after.parts[0] == before.parts[0]
    assert after.parts[1].folder != before.parts[1].folder
    left = {each.name for each in copied.iterdir()}
    assert left == {*after.folders, STORE_FILE}
    assert not begun & left  # what the other had written is cleared away


def in_table(name, **columns):
    """Damage of a store of an earlier version: other values in columns of one table."""

    def damage(folder, periods):
        nobody_wrote_types_down(folder, periods)
        file = folder / f"{name}.parquet"
        frame = pd.read_parquet(file)
        frame.assign(**{each: make(frame) for each, make in columns.items()}).to_parquet(
            file, index=False
        )

    return damage


def without_column(name, column):
    """Damage of a store of an earlier version: a column of one table is gone."""

    def damage(folder, periods):
        nobody_wrote_types_down(folder, periods)
        file = folder / f"{name}.parquet"
        pd.read_parquet(file).drop(columns=column).to_parquet(file, index=False)

    return damage


def nobody_wrote_types_down(folder, periods):
    for each in (folder, periods):
        decided = json.loads((each / "decided.json").read_text())
        del decided["tables"]
        (each / "decided.json").write_text(json.dumps(decided))


def without(name, *, of_periods=False):
    """Damage of a store of an earlier version: a table is gone."""

    def damage(folder, periods):
        nobody_wrote_types_down(folder, periods)
        ((periods if of_periods else folder) / f"{name}.parquet").unlink()

    return damage


DAMAGES = {
    "a text for a count": in_table("clocks", count=lambda _: "many"),
    "a list for a name": in_table("crossings", source=lambda frame: [[1, 2]] * len(frame)),
    "an endless sum": in_table("intervals", total_s=lambda _: np.inf),
    "an endless whole number": in_table("hops", rows=lambda _: np.inf),
    "a count below 0": in_table("hops", count=lambda frame: -(10**6) + 0 * frame["count"]),
    "a time below 0": in_table("hops", lowest_s=lambda _: -7.0),
    "a sum below 0": in_table("crossings", total_s=lambda _: -7.0),
    "nothing for extremes": in_table("hops", lowest_s=lambda _: np.nan, highest_s=lambda _: np.nan),
    "a moment outside": in_table("intervals", first_ns=lambda _: -7),
    "no moment": in_table("intervals", first_ns=lambda _: None),
    "no bin": in_table("crossings", bin=lambda frame: frame["bin"] * 0 - 1),
    "no column": without_column("crossings", "logs"),
    "no statistic": without("crossings"),
    "no clocks": without("clocks"),
    "no guests": without("guests"),
    "no periods": without("states", of_periods=True),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_store_with_other_values_is_refused_by_name(copied, damage):
    catalogue = read_catalogue(copied)
    damage(copied / catalogue.parts[0].folder, copied / catalogue.periods)
    with pytest.raises(InvalidTracesError, match=f"(?s){copied}.* add the traces"):
        characterise_store(copied)


def test_a_store_that_knows_no_types_is_read_all_the_same(copied, dirty_store):
    catalogue = read_catalogue(copied)
    nobody_wrote_types_down(copied / catalogue.parts[0].folder, copied / catalogue.periods)
    assert characterise_store(copied).system == characterise_store(dirty_store).system


def test_an_earlier_day_of_subscribers_that_come_and_go_is_too_late(
    spark, few_rows, copied, dirty_folders, monkeypatch
):
    catalogue = read_catalogue(copied)
    first = load_partial(copied / catalogue.parts[0].folder)
    monkeypatch.setattr(adding, "gather", lambda *_: first)
    write_catalogue(copied, replace(catalogue, parts=catalogue.parts[1:], seams=()))
    with pytest.raises(InvalidTracesError, match=r"'bob'.*in the order of time"):
        add_traces(read_traces(spark, dirty_folders[1][0]), copied)


def test_what_does_not_go_into_a_store_is_told(
    spark, few_rows, dirty_store, dirty_folders, tmp_path
):
    day = read_traces(spark, dirty_folders[1][0])
    later = replace(day.window, until_ns=day.window.until_ns + 1)
    with pytest.raises(InvalidTracesError, match=r"01Z\) overlaps .*use exactly its window"):
        add_traces(replace(day, window=later), dirty_store)
    with pytest.raises(InvalidTracesError, match="keeps 5 s at the ends"):
        add_traces(day, dirty_store, margin_s=7.0)
    with pytest.raises(InvalidTracesError, match="not a store"):
        characterise_store(tmp_path)
    (tmp_path / STORE_FILE).write_text("{}")
    with pytest.raises(InvalidTracesError, match=r"store\.json: not readable"):
        characterise_store(tmp_path)
    with locked(dirty_store, alone=True), pytest.raises(InvalidTracesError, match="another run"):
        characterise_store(dirty_store)


def test_the_last_seconds_are_left_out_where_nothing_follows(
    spark, few_rows, dirty_store, counted_at_once, dirty_folders
):
    catalogue = read_catalogue(dirty_store)
    last = catalogue.parts[1]
    work = adding._Work(session=spark, store=dirty_store, catalogue=catalogue, tell=print)
    tables = settled(work._end(last, "end"), 2.0, print).tables
    changed = tables["publications"].query("statistic == 'batches'")
    inside = changed["batch"].notna()
    published = pd.read_parquet(dirty_folders[1][1] / "publications")
    published = published.drop_duplicates().drop_duplicates("event", keep=False)
    late = published[published["published_ns"] >= last.until_ns - 2_000_000_000]
    late = late[late["content"] != "{"]
    assert changed.loc[~inside, "rows"].sum() == len(late) > 100
    assert changed.loc[inside, "rows"].sum() == -len(late)
    received = pd.read_parquet(dirty_folders[1][1] / "deliveries")
    theirs = received[received["event"].isin(late["event"])]
    pairs = tables["deliveries"].query("statistic == 'pairs' and subscriber.notna()")
    assert -pairs["delivered"].sum() == len(theirs.drop_duplicates(["event", "subscriber"]))


# ---- adding up, without Spark --------------------------------------------------------------------


def test_batches_of_parts_go_where_their_time_goes():
    assert batches_of([3200])[::31] == [0, 31]
    mixed = batches_of([3200, 6400])  # a batch of the whole is three of the first
    assert mixed[:32] == [n // 3 for n in range(32)]
    assert mixed[32:] == [(3200 + 200 * n) // 300 for n in range(32)]


def test_nothing_is_stitched_over_a_gap():
    day = Partial(tables={"loss_runs": pd.DataFrame({"batch": [0, 1], "last_lost": [True, True]})})
    both = [in_stretch(day, 0), in_stretch(shifted(day, 32), 1)]
    rows = pd.concat([each.tables["loss_runs"] for each in both])
    assert rows["batch"].tolist() == [0, 1, 32, 33]
    assert adjoining(rows).tolist() == [True, False, True]


def test_what_a_whole_has_beyond_its_parts_adds_up_to_it():
    rng = np.random.default_rng(5)
    keys = {"source": rng.choice(list("ab"), 60), "target": rng.choice(list("cd"), 60)}
    rows = pd.DataFrame({**keys, "bin": rng.integers(0, 3, 60), "rows": 1, "reason": None})
    rows["total_s"] = rng.exponential(1.0, 60)

    def count(some):
        return merge_rows("crossings", [some])

    first, second = count(rows[:25]), count(rows[20:])  # five rows stand in both
    beyond = difference("crossings", count(rows), count(pd.concat([rows[:25], rows[20:]])))
    assert beyond["rows"].sum() == -5
    assert_same(
        as_cells("crossings", merge_rows("crossings", [first, second, beyond])),
        as_cells("crossings", count(rows)),
    )
