import json
import math

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.errors import InvalidInputError
from tidings.model.document import Place
from tidings.model.filters import (
    BOUNDS,
    EVERYTHING,
    Conjunction,
    Constraint,
    Filter,
    accepts,
    as_filter,
    filter_document,
    filter_schema,
    matches,
    read_filter,
)

jsonschema = pytest.importorskip("jsonschema")

VALIDATOR = jsonschema.Draft202012Validator(filter_schema())

texts = st.text("abAB\0é\U0010ffff", max_size=3)
numbers = st.integers(-2, 2) | st.sampled_from([0.5, 1.0, 2**53 + 1, 1e300])
values = texts | numbers | st.booleans()
attributes = st.sampled_from("xyz")


def constraints():
    def of(test, value):
        return st.builds(Constraint, attribute=attributes, test=st.sampled_from(test), value=value)

    return (
        of(["equals", "not"], values)
        | of(list(BOUNDS), texts | numbers)
        | of(["prefix", "contains"], texts)
        | of(["nats"], st.sampled_from(["a", "a.*", "*.A.>", ">"]))
        | of(["mqtt"], st.sampled_from(["a", "/+", "a/#", "#", "$share/g/+/A"]))
        | of(["one_of"], st.lists(values, min_size=1, max_size=3).map(tuple))
        | of(["exists"], st.booleans())
    )


conjunctions = st.lists(constraints(), max_size=5).map(
    lambda found: Conjunction(constraints=tuple(found))
)
filters = st.lists(conjunctions, min_size=1, max_size=3).map(
    lambda found: Filter(conjunctions=tuple(found))
)
events = st.dictionaries(attributes, values)


def problems_of(document):
    place = Place(document)
    assert read_filter(place) is None
    return [str(problem) for problem in place.problems]


# ---- what tests mean ---------------------------------------------------------------------------

PASSING = {  # written test -> values that pass; all others of VALUES do not
    "2": [2, 2.0],
    "true": [True],
    "'2'": ["2"],
    "{equals: 2}": [2, 2.0],
    "{not: 2}": [0, 1, 3.5, True, False, "", "2", "AB", "ABC", "BC"],
    "{not: [2, AB, true]}": [0, 1, 3.5, False, "", "2", "ABC", "BC"],
    "{below: 2}": [0, 1],
    "{at_most: 2}": [0, 1, 2, 2.0],
    "{above: 1}": [2, 2.0, 3.5],
    "{at_least: 1}": [1, 2, 2.0, 3.5],
    "{below: AC}": ["", "2", "AB", "ABC"],
    "{above: AB}": ["ABC", "BC"],
    "{at_least: AB}": ["AB", "ABC", "BC"],
    "{between: [1, 2]}": [1, 2, 2.0],
    "{between: [AB, ABC]}": ["AB", "ABC"],
    "{above: 0, below: 3}": [1, 2, 2.0],
    "{one_of: [0, AB, true]}": [0, True, "AB"],
    "[0, AB, true]": [0, True, "AB"],
    "{prefix: AB}": ["AB", "ABC"],
    "{prefix: ''}": ["", "2", "AB", "ABC", "BC"],
    "{contains: BC}": ["ABC", "BC"],
    "{all: [{contains: A}, {contains: C}]}": ["ABC"],
    "{nats: '*'}": ["2", "AB", "ABC", "BC"],
    "{nats: AB}": ["AB"],
    "{mqtt: '#'}": ["2", "AB", "ABC", "BC"],
    "{mqtt: $share/readers/AB/#}": ["AB"],
    "{exists: true}": [0, 1, 2, 2.0, 3.5, True, False, "", "2", "AB", "ABC", "BC"],
    "{exists: false}": [None],
}
VALUES = [0, 1, 2, 2.0, 3.5, True, False, "", "2", "AB", "ABC", "BC", None]


@pytest.mark.parametrize("written", PASSING)
def test_which_values_pass_a_test(written):
    wanted = as_filter({"a": yaml.safe_load(written)})
    passing = [v for v in VALUES if matches(wanted, {} if v is None else {"a": v})]
    assert list(map(repr, passing)) == list(map(repr, PASSING[written]))


def test_tests_on_several_attributes_are_joined_by_and_and_mappings_by_or():
    wanted = as_filter([{"a": 1, "b": {"below": 3}}, {"c": {"exists": True}}])
    assert matches(wanted, {"a": 1, "b": 2})
    assert not matches(wanted, {"a": 1, "b": 3})
    assert not matches(wanted, {"a": 1})
    assert matches(wanted, {"c": False})


def test_everything_and_nothing():
    assert as_filter({}) == as_filter([{}]) == EVERYTHING
    assert matches(EVERYTHING, {})
    assert not matches(Filter(), {})
    assert filter_document(EVERYTHING) == {}
    assert filter_document(Filter()) == []


def test_whole_numbers_beyond_the_floats_compare_exactly():
    wanted = as_filter({"a": {"above": 2**53}})
    assert matches(wanted, {"a": 2**53 + 1})
    assert not matches(wanted, {"a": float(2**53)})


@given(filters, events)
def test_matching_is_or_of_and(wanted, event):
    expected = False
    for conjunction in wanted.conjunctions:
        expected |= all(accepts(one, event.get(one.attribute)) for one in conjunction.constraints)
    assert matches(wanted, event) == expected


@given(conjunctions, events)
def test_null_means_absent(conjunction, event):
    wanted = Filter(conjunctions=(conjunction,))
    assert matches(wanted, event) == matches(wanted, dict.fromkeys("xyz") | event)


# ---- equality ----------------------------------------------------------------------------------


@given(st.lists(constraints(), max_size=5), st.randoms())
def test_order_and_repetition_do_not_matter(found, random):
    shuffled = found + found[:2]
    random.shuffle(shuffled)
    one, other = Conjunction(constraints=tuple(found)), Conjunction(constraints=tuple(shuffled))
    assert one == other
    assert hash(one) == hash(other)


def test_true_is_not_one():
    assert as_filter({"a": True}) != as_filter({"a": 1})
    assert as_filter({"a": [True, 1]}) != as_filter({"a": [1, 2]})
    assert as_filter({"a": [True, 1, 1.0]}) == as_filter({"a": [1, True]})
    assert as_filter({"a": 1}) == as_filter({"a": 1.0}) == as_filter({"a": [1]})


def test_a_range_equals_its_two_bounds():
    assert as_filter({"a": {"between": [1, 2]}}) == as_filter({"a": {"at_least": 1, "at_most": 2}})


# ---- documents ---------------------------------------------------------------------------------


@given(filters)
@settings(deadline=None)
def test_a_filter_survives_its_document_in_json(wanted):
    document = filter_document(wanted)
    assert as_filter(json.loads(json.dumps(document))) == wanted
    assert json.dumps(filter_document(as_filter(document))) == json.dumps(document)
    VALIDATOR.validate(document)


@given(filters)
@settings(deadline=None, max_examples=50)
def test_a_filter_survives_its_document_in_yaml(wanted):
    assert as_filter(yaml.safe_load(yaml.safe_dump(filter_document(wanted)))) == wanted


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("{b: {equals: 1.0}, a: [x]}", {"a": "x", "b": 1}),
        ("[{a: 1}, {a: 1}]", {"a": 1}),
        ("[{b: 1}, {a: 1}]", [{"a": 1}, {"b": 1}]),
        ("{a: [2, 1, 2]}", {"a": {"one_of": [1, 2]}}),
        ("{a: {at_least: 1, at_most: 2}}", {"a": {"between": [1, 2]}}),
        ("{a: {at_least: 2, at_most: 1}}", {"a": {"at_most": 1, "at_least": 2}}),
        ("{a: {at_least: 2, at_most: x}}", {"a": {"at_most": "x", "at_least": 2}}),
        ("{a: {not: [2, 1]}}", {"a": {"not": [1, 2]}}),
        ("{a: {all: [{prefix: x}]}}", {"a": {"prefix": "x"}}),
        ("{a: {all: [{contains: x}, {contains: y}], not: z}}",
         {"a": {"all": [{"not": "z"}, {"contains": "x"}, {"contains": "y"}]}}),
    ],
)  # fmt: skip
def test_the_canonical_form(written, canonical):
    assert filter_document(as_filter(yaml.safe_load(written))) == canonical


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ([], "[] matches nothing"),
        (3, "a mapping (attribute: test)"),
        (None, "a mapping (attribute: test)"),
        ("orders", "did you mean {topic: orders}?"),
        ("orders.>", "did you mean {topic: {nats: orders.>}}?"),
        ("sensors/#", "did you mean {topic: {mqtt: sensors/#}}?"),
        ([3], "[1]: got 3; wants a mapping"),
        ([[{}]], "[1]: got a list of 1; wants a mapping"),
        ({3: 1}, "the name of an attribute"),
        ({"": 1}, "the name of an attribute"),
        ({"a": None}, "{exists: false}"),
        ({"a": {}}, "at least one test"),
        ({"a": []}, "at least one"),
        ({"a": {"bellow": 3}}, "did you mean 'below'?"),
        ({"a": {"below": True}}, "true and false have no order"),
        ({"a": {"above": math.nan}}, "a finite number"),
        ({"a": math.nan}, "a finite number"),
        ({"a": math.inf}, "a finite number"),
        ({"a": 10**400}, "a finite number"),
        ({"a": {"below": [1]}}, "a finite number"),
        ({"a": {"below": None}}, "a finite number"),
        ({"a": {"between": [2, 1]}}, "got [2, 1]; wants the lowest first"),
        ({"a": {"between": [1, "b"]}}, "two numbers or two texts"),
        ({"a": {"between": [1]}}, "a list of two"),
        ({"a": {"between": 1}}, "a list of two"),
        ({"a": {"between": [1, True]}}, "true and false have no order"),
        ({"a": {"one_of": []}}, "at least one"),
        ({"a": {"one_of": 3}}, "a list of values"),
        ({"a": {"one_of": [[1]]}}, "a.one_of[1]: got a list of 1"),
        ({"a": {"not": []}}, "at least one"),
        ({"a": {"not": None}}, "got nothing"),
        ({"a": {"prefix": 3}}, "quote a number"),
        ({"a": {"contains": ["x"]}}, "a text"),
        ({"a": {"nats": 3}}, "quote a number"),
        ({"a": {"nats": ""}}, "a.nats: got ''; wants NATS: tokens separated by '.'"),
        ({"a": {"nats": "a..b"}}, "token 2 is empty"),
        ({"a": {"nats": "a."}}, "token 2 is empty"),
        ({"a": {"nats": "a.>.b"}}, "'>' is not the last token"),
        ({"a": {"nats": "a*"}}, "'*' stands for a token only where it is a whole token"),
        ({"a": {"nats": "a b.c"}}, "no NATS topic holds 'a b'"),
        ({"a": {"mqtt": ""}}, "it is empty"),
        ({"a": {"mqtt": "a/#/b"}}, "got 'a/#/b'; wants MQTT: levels separated by '/'"),
        ({"a": {"mqtt": "a/b#"}}, "'#' stands for a level only where it is a whole level"),
        ({"a": {"mqtt": "a+/b"}}, "'+' stands for a level only where it is a whole level"),
        ({"a": {"mqtt": "a\0"}}, "no MQTT topic holds"),
        ({"a": {"mqtt": "$share/g"}}, "$share/GROUP/FILTER"),
        ({"a": {"mqtt": "$share/g/"}}, "$share/GROUP/FILTER"),
        ({"a": {"mqtt": "$share//a"}}, "$share/GROUP/FILTER"),
        ({"a": {"mqtt": "$share/+/a"}}, "$share/GROUP/FILTER"),
        ({"a": {"mqtt": "$share/g/a#"}}, "'#' stands for a level only"),
        ({"a": {"exists": "yes"}}, "true or false"),
        ({"a": {"all": []}}, "at least one"),
        ({"a": {"all": 3}}, "a list of test mappings"),
        ({"a": {"all": [3]}}, "a mapping of tests"),
        ({"a": {"all": [{"all": [{"not": 3}]}]}}, "unknown field 'all'"),
        ({"a": "\ud800"}, "valid Unicode"),
    ],
)
def test_a_problem_is_noted_once_and_says_what_is_wanted(document, expected):
    problems = problems_of(document)
    assert len(problems) == 1
    assert expected in problems[0]
    with pytest.raises(InvalidInputError):
        as_filter(document)


def test_all_problems_are_found_in_one_reading():
    problems = problems_of([{"a": {"below": True, "abov": 3}}, 5, {"b": {"between": [3, 1, "x"]}}])
    assert len(problems) == 4
    assert [problem.split(":")[0] for problem in problems] == [
        "[1].a.abov", "[1].a.below", "[2]", "[3].b.between",
    ]  # fmt: skip


WORDS = ["a", "equals", "not", "one_of", "below", "between", "prefix", "nats", "exists", "all"]
SCRAPS = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 2) | st.floats() | st.text("ab", max_size=2),
    lambda part: (
        st.lists(part, max_size=3)
        | st.dictionaries(st.sampled_from(["", 1, *WORDS]), part, max_size=3)
    ),
    max_leaves=8,
)


@given(SCRAPS | st.dictionaries(st.just("a"), SCRAPS, min_size=1))
@settings(deadline=None, max_examples=200)
def test_reading_anything_gives_a_filter_or_problems_and_never_raises(document):
    place = Place(document)
    wanted = read_filter(place)
    assert (wanted is None) == bool(place.problems)
    if wanted is not None:
        VALIDATOR.validate(document)
        assert as_filter(filter_document(wanted)) == wanted


@pytest.mark.parametrize(
    "document",
    [[], 3, None, {"a": {}}, {"a": []}, {"a": {"bellow": 3}}, {"a": {"below": True}},
     {"a": {"between": [1]}}, {"a": {"between": [1, "x"]}}, {"a": {"prefix": 3}},
     {"a": {"exists": 1}}, {"a": None}, {"a": {"all": [{"all": [{"not": 3}]}]}}],
)  # fmt: skip
def test_the_schema_refuses_what_the_reader_refuses(document):
    assert not VALIDATOR.is_valid(document)


def test_the_schema_is_a_schema():
    jsonschema.Draft202012Validator.check_schema(filter_schema())


@pytest.mark.parametrize(
    ("test", "value"),
    [("between", (1, 2)), ("below", True), ("below", (1, 2)), ("one_of", ()), ("one_of", 3),
     ("equals", (1, 2)), ("equals", None), ("one_of", (None, 1)), ("prefix", 3), ("contains", True),
     ("nats", "a..b"), ("mqtt", "a#"), ("mqtt", 3), ("exists", "yes"),
     ("not", None), ("equals", math.nan)],
)  # fmt: skip
def test_a_constraint_refuses_what_it_cannot_hold(test, value):
    with pytest.raises(InvalidInputError):
        Constraint(attribute="a", test=test, value=value)
