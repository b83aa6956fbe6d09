"""Parts put together, carried over and dropped: the numbers of what is kept stay the same."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from dirty_days import EPOCH_NS, TIMES, WINDOW_S, changes_of, dirty, with_copies, write_tables
from tidings.characterisation import stored
from tidings.characterisation.count import compacting, merging
from tidings.characterisation.count.adding import add_traces
from tidings.characterisation.count.compacting import compact
from tidings.characterisation.count.gathering import Decided, gather
from tidings.characterisation.count.store import (
    STORE_FILE,
    CarriedOver,
    Catalogue,
    StorePart,
    new_folder_name,
    read_catalogue,
)
from tidings.characterisation.fit.channels import loss_runs
from tidings.characterisation.fit.publishers import interval_samples
from tidings.characterisation.statistics import STATISTICS, Partial, merge_rows
from tidings.characterisation.stored import characterise_store
from tidings.errors import InvalidTracesError
from tidings.traces.reading import read_traces

MARGIN_S = 2.0
SECOND_NS = 10**9
NOT_PUT_TOGETHER = "scales"


def cells(name, table):
    """Rows by key, so that tables can be compared."""
    table = table.drop(columns="stretch", errors="ignore")
    if name == "intervals":
        table = table[table["statistic"] != NOT_PUT_TOGETHER]
    keys = [key for key in STATISTICS[name].keys if key in table.columns]
    if name in ("publications", "bad_contents"):
        keys += [key for key in ("least_lifetime_ns", "most_lifetime_ns") if key in table.columns]
    table = table.copy()
    table[keys] = table[keys].astype(object).where(table[keys].notna(), None).astype(str)
    return table.sort_values(keys).set_index(keys)


def assert_same(found, whole, name):
    """Whole numbers and extremes are equal, sums of times to rounding."""
    assert list(found.index) == list(whole.index), name
    for column in whole.columns:
        a, b = (each[column].astype(float).to_numpy() for each in (found, whole))
        if column.endswith(("total_s", "squares", "logs")):
            assert a == pytest.approx(b, rel=1e-9, abs=1e-9, nan_ok=True), (name, column)
        else:
            np.testing.assert_array_equal(a, b, err_msg=f"{name} {column}")


def assert_same_numbers(a, b):
    """All statistics of two partials, those that are stitched as they are read."""
    assert a.tables.keys() == b.tables.keys()
    for name in b.tables:
        if not STATISTICS[name].stitched:
            assert_same(cells(name, a.tables[name]), cells(name, b.tables[name]), name)
    found, whole = (interval_samples(each.tables["intervals"]) for each in (a, b))
    assert found.keys() == whole.keys()
    for publisher, sample in whole.items():
        assert found[publisher].count == sample.count > 0
        np.testing.assert_array_equal(found[publisher].bins, sample.bins)
        for sums in ("total_s", "squares", "logs", "squared_logs", "lowest_s", "highest_s"):
            assert getattr(found[publisher], sums) == pytest.approx(getattr(sample, sums), rel=1e-9)
    if "loss_runs" in b.tables:
        assert loss_runs(a.tables["loss_runs"]) == loss_runs(b.tables["loss_runs"])
    assert (a.silent, a.folded, a.notes) == (b.silent, b.folded, b.notes)


def whole(store, since_ns=0):
    return stored._whole(store, read_catalogue(store), since_ns=since_ns)


PARTS = 4


def parts_of(tables, place):
    """All of it, and a folder for every part of the time: every row in which it happened."""
    length_ns = round(WINDOW_S * 1e9) // PARTS
    at_once = write_tables(tables, place / "whole", EPOCH_NS, EPOCH_NS + PARTS * length_ns)
    folders = []
    for number in range(PARTS):
        begin = EPOCH_NS + number * length_ns
        rows = {}
        for name, table in tables.items():
            of = ((table[TIMES[name]] - EPOCH_NS) // length_ns).clip(0, PARTS - 1)
            rows[name] = table[of == number]
        folders.append(write_tables(rows, place / f"part{number}", begin, begin + length_ns))
    return at_once, folders


SIZES = ((16 * SECOND_NS, 8 * SECOND_NS),)


def lengths_s(store):
    return [round((each.until_ns - each.from_ns) / 1e9) for each in read_catalogue(store).parts]


@pytest.mark.nightly
@pytest.mark.timeout(1800)  # a dozen times all statistics
@pytest.mark.usefixtures("few_rows")
def test_a_store_put_together_dropped_and_added_to_has_the_same_numbers(
    spark, plant_traces, tmp_path
):
    """Part after part, put together all the time, is what all of it is at once."""
    tables = dirty(plant_traces(11, window_s=WINDOW_S).tables)
    tables["sessions"] = with_copies(
        changes_of("peer", "bob", ("connected", "disconnected"), *np.arange(2.5, 32, 3.0))
    )
    folder, folders = parts_of(tables, tmp_path)
    store = tmp_path / "store"
    for each in folders:
        add_traces(read_traces(spark, each), store, margin_s=MARGIN_S)
        compact(spark, store, sizes=SIZES, most_uncarried=1)
    assert lengths_s(store) == [16, 8, 8]
    traces = read_traces(spark, folder)
    decided = Decided(every_link=True)
    at_once = gather(traces, traces.window, lambda _: None, decided=decided)
    tables = {
        name: merge_rows(name, [frame])
        for name, frame in at_once.tables.items()
        if name != "guests"
    }
    assert_same_numbers(whole(store), replace(at_once, tables=tables))
    before = read_catalogue(store)
    compact(spark, store, sizes=SIZES, most_uncarried=1)
    assert read_catalogue(store) == before  # there is nothing to do
    since_ns = before.parts[1].from_ns
    kept, told = whole(store, since_ns), characterise_store(store, since_ns=since_ns)
    compact(spark, store, sizes=SIZES, most_uncarried=1, keep_s=16.0)
    assert lengths_s(store) == [8, 8]
    assert_same_numbers(whole(store), kept)
    found = characterise_store(store)
    pd.testing.assert_frame_equal(found.measured.subscribers, told.measured.subscribers)
    pd.testing.assert_frame_equal(found.parameters, told.parameters)
    left = {each.name for each in store.iterdir()}
    assert left == {*read_catalogue(store).folders, STORE_FILE}
    with pytest.raises(InvalidTracesError, match="have been put together; add later traces"):
        add_traces(read_traces(spark, folders[0]), store)


def test_parts_with_and_without_copies_go_together(tmp_path):
    """Probes and hops are counted with a column more where some of them are copies."""
    rows = pd.DataFrame({"source": ["a"], "target": ["b"], "bin": [1], "rows": [3]})
    copied = pd.concat([rows, pd.DataFrame({"rows": [2], "duplicates": [2]})], ignore_index=True)
    loaded = {
        name: Partial(tables={"probes": frame}) for name, frame in (("x", rows), ("y", copied))
    }
    merging._check_columns(tmp_path, loaded)
    together = merge_rows("probes", [rows, copied])
    assert (together["rows"].sum(), together["duplicates"].sum()) == (8, 2)
    other = {**loaded, "z": Partial(tables={"probes": rows.assign(more=1)})}
    with pytest.raises(InvalidTracesError, match="probes with other columns"):
        merging._check_columns(tmp_path, other)


def test_however_long_it_runs_few_parts_are_there_and_fewer_are_read(tmp_path, monkeypatch):
    """A fortnight in parts of twenty minutes, two days of it kept; nothing is counted."""
    part_ns, day_ns = 1200 * SECOND_NS, 86_400 * SECOND_NS
    carried, joined = [], []

    def carry(past, margin_s):
        carried.append(len(past.parts))
        first = past.carried.from_ns if past.carried else past.parts[0].from_ns
        until_ns = past.parts[-1].until_ns
        return CarriedOver(folder=new_folder_name(), from_ns=first, until_ns=until_ns, tables=())

    def joins(_, parts, seams, steps):
        joined.append(len(parts))
        return replace(parts[0], folder=new_folder_name(), until_ns=parts[-1].until_ns), seams

    monkeypatch.setattr(compacting.PastChanges, "carry", carry)
    monkeypatch.setattr(compacting, "put_together", joins)
    monkeypatch.setattr(compacting, "is_in_order", lambda *_: True)
    monkeypatch.setattr(compacting, "counted_subscriptions", lambda *_: None)
    there = [Catalogue(margin_s=MARGIN_S)]
    monkeypatch.setattr(compacting, "read_catalogue", lambda _: there[-1])
    monkeypatch.setattr(compacting, "write_catalogue", lambda _, new: there.append(new))
    begin = EPOCH_NS // day_ns * day_ns
    most_parts, most_read = 0, 0
    for number in range(14 * 72):
        known = there[-1]
        part = StorePart(
            folder=new_folder_name(), from_ns=begin + number * part_ns,
            until_ns=begin + (number + 1) * part_ns, source="", tables=(),
        )  # fmt: skip
        parts = (*known.parts, part)
        most_read = max(most_read, len(known.uncarried(parts)))
        there.append(replace(known, parts=parts))
        compact(None, tmp_path, keep_s=2 * 86_400.0)
        most_parts = max(most_parts, len(parts))
    kept = there[-1].parts
    assert most_read == compacting.MOST_UNCARRIED + 1
    assert most_parts <= 2 + 2 * 24 + 3 * 2 + compacting.MOST_UNCARRIED
    assert set(carried) == {16}
    assert {3, 24} <= set(joined)  # to hours, and hours to days
    assert kept[-1].until_ns - kept[0].from_ns < 3 * day_ns
    assert all(a.until_ns == b.from_ns for a, b in pairwise(kept))
    assert {(each.until_ns - each.from_ns) // SECOND_NS for each in kept} == {1200, 3600, 86_400}
