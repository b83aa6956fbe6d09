from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest

from tidings.errors import InvalidSystemError
from tidings.model import reading
from tidings.model.features import used_features
from tidings.model.filters import as_filter
from tidings.model.record_tables import RecordTable, coded, column, names
from tidings.model.routes import route
from tidings.model.system import Subscriber

HEAD = """
tidings: 1
lifetime: 1s
brokers: {hub: {}, east: {service: {exponential: 3ms}}}
links: [{between: [hub, east]}]
publishers: {p: {at: hub, every: 1s, content: {event: {a: 1}}}}
"""
ROWS = [
    {"name": "s1", "at": "hub", "wants": '{"a": 1}', "lifetime": None, "count": None},
    {"name": "s2", "at": "east", "wants": '{"a": {"below": 4}}', "lifetime": "2s", "count": 3.0},
    {"name": "s3", "at": "east", "wants": '{"a": 1.0}', "lifetime": "2000ms", "count": None},
]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "system.yaml").write_text(HEAD)
    frame = pd.DataFrame(ROWS)
    frame["count"] = frame["count"].astype("Int64")
    frame.to_parquet(tmp_path / "subscribers.parquet", index=False)
    return tmp_path


def test_subscribers_of_a_table_are_columns_and_equal_to_records(folder):
    table = reading.load(folder).subscribers
    assert isinstance(table, RecordTable)
    written = (
        "subscribers: {s1: {at: hub, wants: {a: 1}},"
        " s2: {at: east, wants: {a: {below: 4}}, lifetime: 2s, count: 3},"
        " s3: {at: east, wants: {a: 1}, lifetime: 2s}}"
    )
    records = reading.loads(HEAD + written).subscribers
    assert isinstance(records, tuple)
    assert table == records
    assert records == table
    assert hash(table) == hash(records)
    assert table[1:] == records[1:]
    assert table[-1] == records[-1]
    assert table != records[:2]
    assert table != (*records[:2], dataclasses.replace(records[2], count=2))
    for field in ("at", "wants", "lifetime", "count", "link", "target"):
        one, other = column(table, field), column(records, field)
        assert one.values == other.values
        assert np.array_equal(one.codes, other.codes)
    assert list(names(table)) == list(names(records))


def test_cells_that_mean_the_same_are_one_value(folder):
    table = reading.load(folder).subscribers
    assert column(table, "wants").values == (as_filter({"a": 1}), as_filter({"a": {"below": 4}}))
    assert column(table, "wants").codes.tolist() == [0, 1, 0]


def test_a_system_of_columns_is_routed_as_one_of_records(folder):
    columnar = reading.load(folder)
    plain = dataclasses.replace(columnar, subscribers=tuple(columnar.subscribers))
    assert columnar == plain
    assert columnar.stored_subscriptions == plain.stored_subscriptions == 5
    assert used_features(columnar) == used_features(plain)
    one, other = route(columnar), route(plain)
    assert np.array_equal(one.interest, other.interest)
    assert np.array_equal(one.home_of_subscriber, other.home_of_subscriber)


@pytest.mark.parametrize(
    ("field", "bad", "said"),
    [
        ("at", "west", "subscribers.s2.at: got 'west'"),
        ("wants", '{"a": {"belo": 4}}', "subscribers.s2.wants.a"),
        ("lifetime", "soon", "subscribers.s2.lifetime: got 'soon'"),
        ("name", "s1", "s1: got it twice"),
        ("name", "hub", "subscribers.hub"),
        ("at", None, "the field 'at'"),
        ("colour", "red", "unknown field 'colour'"),
    ],
)
def test_what_is_wrong_in_a_table_is_told_by_row(folder, field, bad, said):
    frame = pd.read_parquet(folder / "subscribers.parquet")
    if field not in frame:
        frame[field] = None
    frame.loc[1, field] = bad
    frame.to_parquet(folder / "subscribers.parquet", index=False)
    with pytest.raises(InvalidSystemError) as error:
        reading.load(folder)
    assert said in str(error.value)


def test_values_are_asked_once():
    asked = []

    def long(name):
        asked.append(name)
        return len(name) > 1

    found = coded(["a", "bb", "a", "bb", "a"]).where(long)
    assert found.tolist() == [1, 3]
    assert asked == ["a", "bb"]


def test_fields_without_a_column_have_their_default():
    columns = {"at": coded(["hub", "hub"]), "wants": coded([as_filter({})] * 2)}
    table = RecordTable(record=Subscriber, names=("x", "y"), columns=columns)
    assert table[1] == Subscriber(name="y", at="hub", wants=as_filter({}))
    assert table.column("count").values == (1,)
