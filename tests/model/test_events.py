import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.errors import InvalidInputError
from tidings.model.document import Place
from tidings.model.events import (
    canonical_event,
    canonical_value,
    event_schema,
    parse_event,
    read_event,
    value_key,
    value_kind,
)

jsonschema = pytest.importorskip("jsonschema")

names = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=4)
texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=5)
numbers = st.integers(-(10**30), 10**30) | st.floats(allow_nan=False, allow_infinity=False)
values = texts | numbers | st.booleans()
events = st.dictionaries(names, values, max_size=4)


def same(one, other):
    """Equal as events, without the code under test: bool is a kind, int and float are another."""
    return one.keys() == other.keys() and all(
        one[name] == other[name] and isinstance(one[name], bool) == isinstance(other[name], bool)
        for name in one
    )


@given(events)
def test_an_event_survives_its_text(event):
    assert same(parse_event(canonical_event(event)), event)


@given(events, events)
def test_texts_are_equal_exactly_for_equal_events(one, other):
    assert (canonical_event(one) == canonical_event(other)) == same(one, other)


@given(st.floats(-1e300, 1e300).filter(lambda number: number == int(number)))
def test_a_whole_number_has_one_text_whether_int_or_float(number):
    assert canonical_event({"a": number}) == canonical_event({"a": int(number)})


@given(events)
def test_the_text_is_a_fixed_point_and_compact_json(event):
    text = canonical_event(event)
    assert canonical_event(parse_event(text)) == text
    assert json.dumps(json.loads(text), separators=(",", ":"), ensure_ascii=False) == text


@pytest.mark.parametrize(
    ("event", "text"),
    [
        ({}, "{}"),
        ({"b": 1, "a": "x"}, '{"a":"x","b":1}'),
        ({"a": 1.0}, '{"a":1}'),
        ({"a": -0.0}, '{"a":0}'),
        ({"a": True}, '{"a":true}'),
        ({"a": "1"}, '{"a":"1"}'),
        ({"a": 0.1}, '{"a":0.1}'),
        ({"a": 10**20}, '{"a":1e+20}'),
        ({"a": 2**53 + 1}, '{"a":9007199254740993}'),
        ({"ä": "Zürich ☂"}, '{"ä":"Zürich ☂"}'),
        ({"a": None}, "{}"),
    ],
)
def test_the_texts_themselves(event, text):
    assert canonical_event(event) == text


def test_flags_numbers_and_texts_are_different_kinds():
    assert [value_kind(value) for value in (True, 1, 1.0, "1", None)] == [
        "flag", "number", "number", "text", "absent",
    ]  # fmt: skip
    assert len({value_key(value) for value in (True, 1, 1.0, "1", None, False, 0)}) == 6


@pytest.mark.parametrize("value", [float("nan"), [1], {"a": 1}, b"x"])
def test_other_values_are_refused(value):
    with pytest.raises(InvalidInputError):
        canonical_event({"a": value})


@pytest.mark.parametrize("value", [float("inf"), float("-inf")])
def test_infinity_has_no_text(value):
    with pytest.raises(InvalidInputError, match="not finite"):
        canonical_event({"a": value})


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "3", '{"a":[]}', '{"a":NaN}', '{"":1}', '{"a":"\\ud800"}', "[" * 100_000],
)
def test_texts_that_are_no_event_are_refused(text):
    with pytest.raises(InvalidInputError, match="not an event"):
        parse_event(text)


def test_reading_notes_every_problem_with_its_place():
    place = Place({"a": [1], "b": float("inf"), 3: "x", "c": 10**400, "d": 1, "e": None})
    assert read_event(place) is None
    assert [problem.at for problem in place.problems] == ["3", "a", "b", "c"]


@given(events)
def test_what_can_be_read_fits_the_schema(event):
    assert read_event(Place(event)) is not None
    jsonschema.Draft202012Validator(event_schema()).validate(event)


@given(values)
def test_a_canonical_value_equals_the_value(value):
    canonical = canonical_value(value)
    assert value_key(canonical) == value_key(value)
    assert value_key(canonical_value(canonical)) == value_key(canonical)
