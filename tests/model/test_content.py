import json
import math

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.errors import InvalidInputError, UnsupportedError
from tidings.model import yaml_text
from tidings.model.content import (
    AttributeLaw,
    ContentRow,
    ContentTable,
    IndependentContent,
    content_document,
    content_schema,
    read_content,
)
from tidings.model.document import Place
from tidings.model.laws import Deterministic, Exponential

jsonschema = pytest.importorskip("jsonschema")

SHARES = st.lists(st.integers(1, 50), min_size=1, max_size=6).map(
    lambda parts: tuple(part / sum(parts) for part in parts)
)
VALUES = st.text("aé1", max_size=2) | st.integers(-2, 2) | st.booleans() | st.just(1.5)
LIFETIMES = st.none() | st.sampled_from([Deterministic(value_s=0.5), Exponential(mean_s=2.0)])
SIZES = st.none() | st.sampled_from([64.0, 0.1, 1e6])


@st.composite
def tables(draw):
    shares = draw(SHARES)
    # "n" makes the events distinct; the rest is as it comes.
    events = [{"n": n, **draw(st.dictionaries(st.sampled_from("xy"), VALUES))} for n in range(6)]
    return ContentTable(
        table=tuple(
            ContentRow(probability=p, event=event, lifetime=draw(LIFETIMES), size_bytes=draw(SIZES))
            for p, event in zip(shares, events, strict=False)
        )
    )


def distinct(value):
    return type(value) is bool, value


@st.composite
def attribute_laws(draw, name):
    shares = draw(SHARES)
    found = draw(
        st.lists(VALUES | st.none(), min_size=len(shares), max_size=len(shares), unique_by=distinct)
    )
    return AttributeLaw(attribute=name, values=tuple(found), probabilities=shares)


independents = st.builds(
    IndependentContent,
    attributes=st.tuples(attribute_laws("x"), attribute_laws("y")),
    lifetime=LIFETIMES,
    size_bytes=SIZES,
)
contents = tables() | independents


def read(document):
    place = Place(document)
    content = read_content(place)
    assert not place.problems, place.problems
    return content


def problems_of(document):
    place = Place(document)
    assert read_content(place) is None
    return [str(problem) for problem in place.problems]


# ---- what is read ------------------------------------------------------------------------------


def test_a_table():
    content = read(
        yaml.safe_load(
            """
            - {p: 0.7, event: {topic: stock, symbol: ACME, price: 12.0}}
            - {p: 0.3, event: {topic: stock, symbol: INIT, note: null}, lifetime: 500ms, size: 2kB}
            """
        )
    )
    first, second = content.rows()
    assert content.combinations == 2
    assert (first.probability, second.probability) == (0.7, 0.3)
    assert first.event == {"topic": "stock", "symbol": "ACME", "price": 12}
    assert second.event == {"topic": "stock", "symbol": "INIT"}
    assert (first.lifetime, first.size_bytes) == (None, None)
    assert (second.lifetime, second.size_bytes) == (Deterministic(value_s=0.5), 2000.0)
    assert second.text == '{"symbol":"INIT","topic":"stock"}'


def test_a_single_event_needs_no_probability():
    assert read({"event": {"a": 1}}) == read([{"p": 1, "event": {"a": 1.0}}])
    assert read({"event": {"a": 1}, "size": 64, "lifetime": None}).rows()[0].size_bytes == 64.0
    assert read({"event": {}}).rows()[0].event == {}


def test_independent_attributes_multiply():
    content = read(
        yaml.safe_load(
            """
            independent:
              topic: {stock: 0.75, fx: 0.25}
              note: {urgent: 0.125, null: 0.875}
              level: {1: 0.5, 2: 0.5}
            lifetime: {exponential: 1s}
            size: 64B
            """
        )
    )
    rows = content.rows()
    assert content.combinations == len(rows) == 8
    shares = {row.text: row.probability for row in rows}
    assert shares['{"level":1,"note":"urgent","topic":"fx"}'] == 0.5 * 0.125 * 0.25
    assert shares['{"level":2,"topic":"stock"}'] == 0.5 * 0.875 * 0.75
    assert {row.lifetime for row in rows} == {Exponential(mean_s=1.0)}
    assert {row.size_bytes for row in rows} == {64.0}


def test_both_ways_to_write_an_attribute_are_one():
    listed = [{"p": 0.5, "value": "x"}, {"p": 0.25, "value": 3}, {"p": 0.25, "value": None}]
    assert read({"independent": {"a": {"x": 0.5, 3: 0.25, None: 0.25}}}) == read(
        {"independent": {"a": listed}}
    )


def test_the_text_null_is_not_the_absent_share():
    content = read({"independent": {"a": {"null": 0.5, None: 0.5}}})
    assert [row.text for row in content.rows()] == ['{"a":"null"}', "{}"]


def test_one_is_not_true():
    content = read({"independent": {"a": [{"p": 0.5, "value": 1}, {"p": 0.5, "value": True}]}})
    assert [row.text for row in content.rows()] == ['{"a":1}', '{"a":true}']
    assert read({"event": {"a": 1}}) != read({"event": {"a": True}})


def test_probabilities_stay_as_given():
    shares = [0.1, 0.2, 0.7 + 5e-10]
    rows = read([{"p": p, "event": {"n": n}} for n, p in enumerate(shares)]).rows()
    assert [row.probability for row in rows] == shares


def test_the_same_event_may_come_with_several_lifetimes_or_sizes():
    rows = [
        {"p": 0.5, "event": {"a": 1}},
        {"p": 0.25, "event": {"a": 1}, "lifetime": "1s"},
        {"p": 0.25, "event": {"a": 1}, "lifetime": "1s", "size": "64B"},
    ]
    assert read(rows).combinations == 3


def test_too_many_combinations_are_counted_but_not_listed():
    values = {str(n): 0.1 for n in range(10)}
    content = read({"independent": {f"a{n}": values for n in range(6)}})
    assert content.combinations == 10**6
    with pytest.raises(UnsupportedError, match=r"1,000,000 combinations, more than the 100,000"):
        content.rows()


@given(contents)
@settings(deadline=None)
def test_the_rows_of_any_content_are_a_law(content):
    rows = content.rows()
    assert len(rows) == content.combinations
    assert math.fsum(row.probability for row in rows) == pytest.approx(1.0, abs=1e-12)
    assert len({(row.text, row.lifetime, row.size_bytes) for row in rows}) == len(rows)
    assert hash(content) == hash(content)


# ---- documents ---------------------------------------------------------------------------------


@given(contents)
@settings(deadline=None)
def test_content_survives_its_document_in_json_and_yaml(content):
    document = content_document(content)
    assert read(json.loads(json.dumps(document))) == content
    assert read(yaml_text.parse(yaml_text.dump(document)).value) == content
    assert json.dumps(content_document(read(document))) == json.dumps(document)


VALIDATOR = jsonschema.Draft202012Validator(content_schema())


@given(contents)
@settings(deadline=None, max_examples=30)
def test_every_document_fits_the_schema(content):
    VALIDATOR.validate(content_document(content))


def test_the_schema_is_a_schema():
    jsonschema.Draft202012Validator.check_schema(content_schema())


@pytest.mark.parametrize(
    "document",
    [[], {}, 3, [{"event": {}}], {"event": {"a": []}}, [{"p": 0, "event": {}}], {"independent": {}},
     {"independent": {"a": {}}}, {"independent": {"a": {"x": 2}}}, {"event": {}, "siz": 3}],
)  # fmt: skip
def test_the_schema_refuses_what_the_reader_refuses(document):
    assert not VALIDATOR.is_valid(document)
    assert problems_of(document)


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ([], "at least one event"),
        ({}, "the field 'event'"),
        (3, "a list of {p, event}"),
        (None, "a list of {p, event}"),
        ([3], "[1]: got 3; wants a mapping"),
        ([{"p": 1}], "the field 'event'"),
        ([{"event": {"a": 1}}], "the field 'p'"),
        ([{"p": 0, "event": {}}], "a share above 0"),
        ([{"p": -0.5, "event": {}}], "a share above 0"),
        ([{"p": 1.5, "event": {}}], "at most 1"),
        ([{"p": math.nan, "event": {}}], "a share above 0"),
        ([{"p": 0.5, "event": {}}], "got a sum of 0.5; wants probabilities that sum to 1"),
        ([{"p": 0.5, "event": {"a": 1}}, {"p": 0.6, "event": {"a": 2}}], "a sum of 1.1"),
        ([{"p": 1 - 2e-9, "event": {}}], "a sum of 0.999999998"),
        ({"event": {"a": 1}, "p": 0.5}, "a sum of 0.5"),
        ([{"p": 0.5, "event": {"a": 1}}, {"p": 0.5, "event": {"a": 1.0}}], "[1] again"),
        ({"event": {"a": [1]}}, "event.a: got a list of 1"),
        ({"event": {"a": math.nan}}, "a finite number"),
        ({"event": 3}, "a mapping (attribute: value)"),
        ({"event": {}, "lifetme": 3}, "did you mean 'lifetime'?"),
        ({"event": {}, "lifetime": "-1s"}, "lifetime: got"),
        ({"event": {}, "size": "64 apples"}, "a size"),
        ({"event": {}, "size": -1}, "a size"),
        ({"independent": {}}, "at least one attribute"),
        ({"independent": 3}, "a mapping (attribute: value)"),
        ({"independent": {"a": {}}}, "at least one value"),
        ({"independent": {"a": []}}, "at least one value"),
        ({"independent": {"a": 3}}, "a mapping {value: probability}"),
        ({"independent": {"a": {"x": 0.5}}}, "a sum of 0.5"),
        ({"independent": {"a": {"x": "half"}}}, "independent.a.x: got 'half'"),
        ({"independent": {"a": {(1, 2): 1.0}}}, "a list of 2; wants a text, a finite number"),
        ({"independent": {"a": [{"p": 1.0}]}}, "the field 'value'"),
        ({"independent": {"a": [{"value": 1}]}}, "the field 'p'"),
        ({"independent": {"a": [3]}}, "independent.a[1]: got 3"),
        ({"independent": {"a": [{"p": 0.5, "value": 1}, {"p": 0.5, "value": 1.0}]}}, "each value"),
        ({"independent": {3: {"x": 1.0}}}, "the name of an attribute"),
        ({"independent": {"a": {"x": 1.0}}, "event": {}}, "unknown field 'event'"),
    ],
)  # fmt: skip
def test_a_problem_is_noted_once_and_says_what_is_wanted(document, expected):
    problems = problems_of(document)
    assert len(problems) == 1
    assert expected in problems[0]


def test_all_problems_are_found_in_one_reading():
    document = [{"p": 2, "event": {"a": []}, "size": "x"}, {"event": 3, "lifetime": "soon"}, 4]
    assert len(problems_of(document)) == 7


SCRAPS = st.recursive(
    st.none()
    | st.booleans()
    | st.sampled_from([0, 0.5, 1, 2, math.nan])
    | st.text("ab", max_size=2),
    lambda part: (
        st.lists(part, max_size=3)
        | st.dictionaries(
            st.sampled_from(["a", 1, None, True, "", "p", "event", "value", "size", "lifetime"]),
            part,
            max_size=3,
        )
    ),
    max_leaves=8,
)


@given(
    SCRAPS
    | st.fixed_dictionaries({"independent": st.dictionaries(st.just("a"), SCRAPS)})
    | st.fixed_dictionaries({"event": SCRAPS}, optional={"lifetime": SCRAPS, "size": SCRAPS})
)
@settings(deadline=None, max_examples=200)
def test_reading_anything_gives_content_or_problems_and_never_raises(document):
    place = Place(document)
    content = read_content(place)
    assert (content is None) == bool(place.problems)
    if content is not None:
        assert read(content_document(content)) == content


# ---- content made in Python --------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.0, -0.1, 1.1, math.nan])
def test_a_row_refuses_what_is_no_probability(share):
    with pytest.raises(InvalidInputError, match="a share above 0"):
        ContentRow(probability=share, event={"a": 1})


def test_a_table_refuses_a_wrong_sum():
    row = ContentRow(probability=0.5, event={"a": 1})
    with pytest.raises(InvalidInputError, match=r"sum to 0\.5"):
        ContentTable(table=(row,))
    with pytest.raises(InvalidInputError, match="sum to 0"):
        ContentTable(table=())


@pytest.mark.parametrize(
    ("values", "shares"),
    [((1, 2), (1.0,)), ((1, 1.0), (0.5, 0.5)), ((1,), (0.5,)), ((1, 2), (1.5, -0.5)), ((), ())],
)
def test_an_attribute_refuses_what_is_no_law(values, shares):
    with pytest.raises(InvalidInputError):
        AttributeLaw(attribute="a", values=values, probabilities=shares)
