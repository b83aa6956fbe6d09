from __future__ import annotations

import pytest

from tidings.errors import InvalidInputError
from tidings.traces.readers.mapping import parse_mapping, read_mapping


def test_all_problems_of_a_mapping_are_told_at_once():
    with pytest.raises(InvalidInputError) as told:
        parse_mapping("""
mapping: 2
tables:
  deliveries:
    event: {column: a, constant: b}
    subscriber: {colum: x}
    received_ns: {column: t, unit: weeks}
  hop: {}
""")
    text = str(told.value)
    for said in ("the version 1", "did you mean 'column'", "one of ns, us, ms", "'hops'"):
        assert said in text
    assert "line 7, tables.deliveries.received_ns.unit" in text


@pytest.mark.parametrize("text", ["", "[]", "mapping: 1", "mapping: 1\ntables: 3", "a: [", "{}"])
def test_what_is_no_mapping_is_refused(text):
    with pytest.raises(InvalidInputError, match="not a valid mapping"):
        parse_mapping(text)


def test_columns_that_must_be_there_are_asked_for():
    with pytest.raises(InvalidInputError, match=r"wants received_ns: when") as told:
        parse_mapping("mapping: 1\ntables: {deliveries: {event: a, subscriber: b}}")
    assert len(told.value.problems) == 1


def test_a_mapping_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(InvalidInputError, match="no such file"):
        read_mapping(tmp_path / "absent.yaml")
