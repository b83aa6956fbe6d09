"""What members of groups handle, on a few rows whose answer is plain, and in a store."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from pyspark.sql.types import StructType

from tidings.characterisation.count.deliveries import delivery_statistics
from tidings.characterisation.count.handlings import (
    HANDLING_STATISTICS,
    PICKUP_STATISTICS,
    handling_statistics,
    pickup_statistics,
)
from tidings.characterisation.count.store import read_catalogue
from tidings.characterisation.fit.choosing import find_choice
from tidings.characterisation.job import characterise
from tidings.characterisation.statistics import merge_rows
from tidings.characterisation.stored import _whole, characterise_store
from tidings.model.trace_tables import DELIVERIES, PUBLICATIONS
from tidings.traces.reading import read_traces
from tidings.traces.window import TraceWindow

pytestmark = pytest.mark.spark
S = 10**9
WINDOW = TraceWindow(from_ns=0, until_ns=32 * S)
HANDLED = [  # event, subscriber, broker, received, started, member, part
    ("e1", "g", "b", 3 * S, 1 * S, "m", "0"),
    ("e1", "g", "b", 3 * S, 1 * S, "m", "0"),  # a copy
    ("e1", "g", "b", 9 * S, 8 * S, "n", "0"),  # handled again
    ("e2", "g", "b", 5 * S, 4 * S, "m", "1"),
    ("e2", "h", "b", 6 * S, 4 * S, None, None),  # by nobody in particular
    ("e3", "g", "b", 40 * S, 39 * S, "m", "1"),  # not in the window
    ("e4", "g", "b", 2 * S, 4 * S, "m", "1"),  # ended before it began
    ("e5", "g", "b", 7 * S, None, "n", "1"),  # nobody knows since when
    ("e6", "p", "b", 7 * S, None, None, None),  # nobody handles it
    ("e6", "p", "b", 7 * S, None, None, None),
]


def of(found, statistic, *columns):
    rows = found.where(found["statistic"] == statistic).collect()
    return {tuple(row[column] for column in columns) for row in rows}


def test_events_are_counted_by_member_and_times_with_them(frame, few_rows):
    found = handling_statistics(frame(HANDLED, DELIVERIES.ddl.replace(" NOT NULL", "")), WINDOW)
    ddl = StructType.fromDDL(HANDLING_STATISTICS)
    assert [(each.name, each.dataType) for each in found.schema] == [
        (each.name, each.dataType) for each in ddl
    ]
    keys = ("subscriber", "member", "part", "batch", "rows", "duplicates", "again")
    assert of(found, "shares", *keys) == {
        ("g", "m", "0", 3, 1, 1, 0),
        ("g", "n", "0", 9, 1, 0, 1),
        ("g", "m", "1", 5, 1, 0, 0),
        ("g", "n", "1", 7, 1, 0, 0),
        ("h", None, None, 6, 1, 0, 0),
    }
    times = of(found, "times", "subscriber", "member", "count", "total_s", "lowest_s")
    assert times == {
        ("g", "m", 1, 2.0, 2.0),
        ("g", "m", 1, 1.0, 1.0),
        ("g", "n", 1, 1.0, 1.0),
        ("g", "n", 0, None, None),
        ("h", None, 1, 2.0, 2.0),
    }


def test_handled_again_is_no_copy_of_a_delivery(frame, few_rows):
    published = [(f"e{n}", "p", "b", 0, "{}", None, None) for n in range(1, 7)]
    found = delivery_statistics(
        frame(HANDLED, DELIVERIES.ddl.replace(" NOT NULL", "")),
        frame(published, PUBLICATIONS.ddl),
        WINDOW,
    )
    quality = of(found, "quality", "reason", "rows", "duplicates", "handled")
    # The copy of e6 is one; that of e1 is counted with the handlings.
    assert quality == {(None, 9, 1, 7), ("it was handled before that began", 1, None, None)}
    delivered = of(found, "pairs", "subscriber", "batch", "delivered")
    assert delivered == {("g", 0, 4), ("h", 0, 1), ("p", 0, 1), (None, None, 0)}


def test_what_is_taken_up_at_once_is_counted_by_who_else_was_busy(frame, few_rows):
    rows = [
        ("e1", "g", "b", 10 * S, 0, "m", None),
        ("e2", "g", "b", 20 * S, 10 * S, "m", None),  # at once, while n was busy
        ("e3", "g", "b", 15 * S, 5 * S, "n", None),
        ("e4", "g", "b", 30 * S, 20 * S + S // 4, "m", None),  # almost at once, alone
        ("e4", "g", "b", 30 * S, 20 * S + S // 4, "m", None),  # a copy
        ("e5", "g", "b", 31 * S, 18 * S, "n", None),  # after a rest
    ]
    found = pickup_statistics(frame(rows, DELIVERIES.ddl), WINDOW)
    assert found.schema.simpleString() == StructType.fromDDL(PICKUP_STATISTICS).simpleString()
    # e1 and e3 begin with nobody else busy, or one; e4 with e5.
    assert {tuple(row) for row in found.collect()} == {("g", 0, 0, 0), ("g", 1, 2, 0)}
    # Without e5 nobody else is there when e4 is taken up.
    alone = [row for row in rows if row[0] != "e5"]
    found = pickup_statistics(frame(alone, DELIVERIES.ddl), WINDOW)
    assert {tuple(row) for row in found.collect()} == {("g", 1, 1, 0), ("g", 0, 1, 0)}


def test_events_that_are_begun_and_ended_together_are_a_batch(frame, few_rows):
    rows = [
        ("e1", "g", "b", 10 * S, 1 * S, "m", None),
        ("e2", "g", "b", 10 * S, 1 * S, "m", None),
        ("e3", "g", "b", 20 * S, 10 * S, "m", None),
        ("e3", "g", "b", 20 * S, 10 * S, "m", None),  # a copy
        ("e4", "g", "b", 20 * S, 10 * S, "n", None),  # by another
    ]
    found = pickup_statistics(frame(rows, DELIVERIES.ddl), WINDOW)
    assert {tuple(row) for row in found.collect()} == {("g", 0, 0, 1), ("g", 1, 1, 0)}


def test_too_few_events_tell_nothing_of_who_gets_the_next():
    assert find_choice(np.full((2, 4), 20.0), {}) is None
    assert find_choice(np.array([[9000.0, 8000.0]]), {0: 5000}) is None  # alone
    unlike = np.array([[300.0, 340.0], [330.0, 290.0]])
    assert find_choice(unlike, {0: 90, 1: 90}) is None


def test_days_put_together_are_all_days_at_once(dirty_store, counted_at_once):
    """Also where an event is handled again, or copied, on the next day."""
    whole = merge_rows("handlings", [counted_at_once.tables["handlings"]])
    found = _whole(dirty_store, read_catalogue(dirty_store)).tables["handlings"]
    keys = ["statistic", "subscriber", "member", "part", "batch", "bin"]
    tables = [
        each.assign(**{key: each[key].astype(object).fillna("").astype(str) for key in keys})
        .sort_values(keys)
        .set_index(keys)
        for each in (found, whole)
    ]
    assert whole["again"].sum() > 100
    assert whole["duplicates"].sum() > 10
    assert list(tables[0].index) == list(tables[1].index)
    for column in ("rows", "again", "duplicates", "count"):
        np.testing.assert_array_equal(*(each[column].astype(float) for each in tables))
    np.testing.assert_allclose(*(each["total_s"].astype(float) for each in tables), rtol=1e-12)


def test_a_group_is_learnt_from_a_store_as_from_traces(spark, few_rows, dirty_folders, dirty_store):
    apart = characterise(read_traces(spark, dirty_folders[0]))
    kept = characterise_store(dirty_store)
    for each in (apart, kept):
        group = next(one for one in each.system.subscribers if one.name == "alice")
        assert [member.name for member in group.consumers.members] == ["m", "n"]
        assert group.consumers.partitions.count == 3
        shares = [f"subscribers.alice.consumers.partitions.shares.{part}" for part in range(3)]
        found = each.parameters.set_index("path")
        assert found.estimate[shares].sum() == pytest.approx(1.0)
        assert any("handled before" in note for note in each.notes)
    groups = [
        next(one for one in each.system.subscribers if one.name == "alice")
        for each in (apart, kept)
    ]
    assert groups[0].consumers == groups[1].consumers
    used = apart.quality[(apart.quality["table"] == "deliveries")]
    assert used["rows"].sum() == len(pd.read_parquet(dirty_folders[0] / "deliveries"))
