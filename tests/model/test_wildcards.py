"""Patterns against a matcher written otherwise, and covering against all topics there are."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.model.content import AttributeLaw, IndependentContent
from tidings.model.covering import conjunction_covers, covers, overlaps, satisfiable
from tidings.model.filters import (
    BOUNDS,
    Conjunction,
    Constraint,
    accepts,
    as_filter,
    filter_schema,
    matches,
)
from tidings.model.match_shares import match_shares
from tidings.model.reading import dumps, load, loads, save
from tidings.model.text_search import find_text
from tidings.model.wildcards import advance, bad_pattern, begin, ends, levels_of, stem

ONE_AND_REST = {"nats": ("*", ">"), "mqtt": ("+", "#")}
SEPARATOR = {"nats": ".", "mqtt": "/"}


def reference(test, pattern, text):
    """Whether a broker delivers a topic, level by level from the left."""
    if test == "nats":
        tokens = text.split(".")
        whitespace = any(letter in text for letter in " \t\r\n\f")
        if whitespace or any(token in ("", "*", ">") for token in tokens):
            return False
        return walk(pattern.split("."), tokens, *ONE_AND_REST[test], least=1)
    if text == "" or set(text) & set("+#\0"):
        return False
    if pattern.startswith("$share/"):
        pattern = pattern.split("/", 2)[2]
    if text[0] == "$" and pattern[0] in "+#":
        return False
    return walk(pattern.split("/"), text.split("/"), *ONE_AND_REST[test], least=0)


def walk(pattern, levels, one, rest, least):
    if pattern == [rest]:
        return len(levels) >= least
    if not pattern or not levels:
        return not pattern and not levels
    fits = pattern[0] in (one, levels[0])
    return fits and walk(pattern[1:], levels[1:], one, rest, least)


def constraint(test, value):
    return Constraint(attribute="a", test=test, value=value)


def joined(*constraints):
    return Conjunction(constraints=constraints)


def patterns(test, levels=("a", "b", "ab"), most=3):
    one, rest = ONE_AND_REST[test]
    names = [*levels, one, one] + (["", "$a"] if test == "mqtt" else [])
    body = st.lists(st.sampled_from(names), max_size=most)
    made = st.tuples(body, st.booleans()).map(lambda pair: [*pair[0], *([rest] if pair[1] else [])])
    text = made.map(SEPARATOR[test].join)
    return text.filter(lambda pattern: bad_pattern(test, pattern) is None)


WILD = st.one_of(
    *(patterns(test).map(lambda pattern, test=test: (test, pattern)) for test in ONE_AND_REST)
)
TOPIC_LETTERS = st.text("ab./$*>+# \0é", max_size=8)


@given(WILD, TOPIC_LETTERS | st.lists(st.sampled_from(["a", "b", "ab"])).map("/".join))
@settings(deadline=None, max_examples=300)
def test_matching_is_what_the_reference_says(wild, text):
    test, pattern = wild
    expected = reference(test, pattern, text)
    assert accepts(constraint(test, pattern), text) == expected
    assert text.startswith(stem(test, pattern)) or not expected
    levels, at = levels_of(test, pattern), begin()
    for letter in text:
        at = None if at is None else advance(test, levels, at, letter)
    assert (at is not None and ends(test, levels, at)) == expected


# A level that no pattern names stands for all such levels.
TOPICS = {
    test: [
        SEPARATOR[test].join(levels)
        for size in range(1, 5)
        for levels in itertools.product([*names, "other"], repeat=size)
    ]
    for test, names in {"nats": ("a", "b"), "mqtt": ("a", "", "$a")}.items()
}


@pytest.mark.parametrize("test", TOPICS)
@given(st.data())
@settings(deadline=None, max_examples=200)
def test_covering_and_overlap_are_those_of_all_topics(test, data):
    names = ("a", "b") if test == "nats" else ("a",)
    one, other = (data.draw(patterns(test, names, most=2)) for _ in "12")
    wide, narrow = as_filter({"a": {test: one}}), as_filter({"a": {test: other}})
    wanted = [(matches(wide, {"a": t}), matches(narrow, {"a": t})) for t in TOPICS[test]]
    covered = all(by_one for by_one, by_other in wanted if by_other)
    assert covers(wide, narrow) == covered
    assert (find_text((constraint(test, other),), constraint(test, one)) is None) == covered
    assert overlaps(wide, narrow) == any(by_one and by_other for by_one, by_other in wanted)


LETTERS = "a./b$"
SHORT_TEXTS = ["".join(t) for size in range(6) for t in itertools.product(LETTERS, repeat=size)]
PIECES = st.text("a./", max_size=2)
OTHERS = st.one_of(
    st.tuples(st.sampled_from(["prefix", "contains", *BOUNDS, "not"]), PIECES),
    st.tuples(st.just("not"), st.just(5)),
)
SMALL_WILD = st.one_of(
    *(patterns(t, ("a",), 2).map(lambda pattern, t=t: (t, pattern)) for t in ONE_AND_REST)
)
ON_TEXT = (SMALL_WILD | OTHERS).map(lambda pair: constraint(*pair))


@given(SMALL_WILD | OTHERS, st.lists(ON_TEXT, max_size=2), SMALL_WILD)
@settings(deadline=None, max_examples=100)
def test_covering_among_other_tests_is_exact(wide, some, wild):
    """What is not covered has a witness, what is covered has none among thousands of texts."""
    wanted, inside = constraint(*wide), (*some, constraint(*wild))
    if "text" in wanted.kinds:
        witness = find_text(inside, wanted)
        assert conjunction_covers(joined(wanted), joined(*inside)) == (witness is None)
        if witness is not None:
            assert all(accepts(one, witness) for one in inside)
            assert not accepts(wanted, witness)
    escaping = [
        text
        for text in SHORT_TEXTS
        if not accepts(wanted, text) and all(accepts(one, text) for one in inside)
    ]
    if conjunction_covers(joined(wanted), joined(*inside)):
        assert escaping == []


@given(st.lists(ON_TEXT, max_size=3))
@settings(deadline=None, max_examples=100)
def test_a_text_that_is_found_passes_and_none_is_overlooked(tests):
    found = find_text(tuple(tests))
    if found is None:
        assert not any(all(accepts(one, text) for one in tests) for text in SHORT_TEXTS)
    else:
        assert all(accepts(one, found) for one in tests)


HARD = st.text("\0a\U0010ffff", max_size=3)
PLAIN = st.tuples(st.sampled_from(["prefix", "contains", "not", *BOUNDS]), HARD)


@given(st.lists(PLAIN.map(lambda pair: constraint(*pair)), min_size=1, max_size=3), HARD)
@settings(deadline=None, max_examples=200)
def test_the_search_agrees_with_what_is_decided_by_ranges_and_pieces(tests, piece):
    text_only = (constraint("prefix", ""), *tests)
    assert satisfiable(joined(*text_only)) == (find_text(tuple(tests)) is not None)
    lacking = constraint("contains", piece)
    covered = conjunction_covers(joined(lacking), joined(*text_only))
    assert covered == (find_text(text_only, lacking) is None)


@pytest.mark.parametrize(
    ("wide", "narrow", "expected"),
    [
        ({"nats": "orders.>"}, {"nats": "orders.*.eu"}, True),
        ({"nats": "orders.*"}, {"nats": "orders.>"}, False),
        ({"nats": "*.>"}, {"nats": ">"}, False),
        ({"nats": ">"}, {"nats": "*.*"}, True),
        ({"nats": "orders.*"}, ["orders.eu", "orders.us"], True),
        ({"nats": "orders.*"}, ["orders.eu", "orders"], False),
        ({"prefix": "orders."}, {"nats": "orders.>"}, True),
        ({"nats": "orders.>"}, {"prefix": "orders."}, False),  # 'orders.' itself is no subject
        ({"contains": ".eu."}, {"nats": "*.eu.>"}, True),
        ({"not": "orders"}, {"nats": "orders.>"}, True),
        ("orders", {"nats": "orders"}, True),
        ({"nats": "orders"}, "orders", True),
        ({"at_least": "a.", "below": "a/"}, {"nats": "a.>"}, True),
        ({"mqtt": "a/#"}, "a", True),
        ({"mqtt": "a/#"}, {"mqtt": "a/+/#"}, True),
        ({"mqtt": "a/+/#"}, {"mqtt": "a/#"}, False),
        ({"mqtt": "#"}, {"mqtt": "+/#"}, True),
        ({"mqtt": "+/#"}, {"mqtt": "#"}, True),
        ({"mqtt": "#"}, {"mqtt": "$SYS/#"}, False),
        ({"mqtt": "#"}, {"mqtt": "a"}, True),
        ({"mqtt": "sensors/+"}, {"mqtt": "$share/g/sensors/+"}, True),
        ({"mqtt": "$share/g/sensors/+"}, {"mqtt": "sensors/+"}, True),
        ({"mqtt": "#"}, {"nats": ">"}, False),
        ({"nats": "*"}, {"nats": ">", "not": "a.b", "mqtt": "+"}, False),
        ({"exists": True}, {"mqtt": "#"}, True),
        ({"not": 5}, {"nats": ">"}, True),
        (99, {"nats": "a.*", "prefix": "b"}, True),
        (99, {"nats": "a.*", "below": 3}, True),
    ],
)
def test_covering_worth_naming(wide, narrow, expected):
    assert covers(as_filter({"a": wide}), as_filter({"a": narrow})) is expected


VALIDATOR = pytest.importorskip("jsonschema").Draft202012Validator(filter_schema())


@given(st.sampled_from(["nats", "mqtt"]), st.text("a.*>/+#$ \n", max_size=5) | TOPIC_LETTERS)
@settings(deadline=None, max_examples=200)
def test_the_schema_takes_what_the_reader_takes(test, pattern):
    taken = bad_pattern(test, pattern) is None
    assert VALIDATOR.is_valid({"a": {test: pattern}}) == taken


@pytest.mark.parametrize("pattern", ["$share", "$share/g", "$share/g/", "$share/g/a", "$shared/a"])
def test_the_schema_knows_shared_subscriptions(pattern):
    taken = bad_pattern("mqtt", pattern) is None
    assert VALIDATOR.is_valid({"a": {"mqtt": pattern}}) == taken


def test_shares_of_independent_contents():
    topics = AttributeLaw(
        attribute="topic",
        values=("orders.eu", "orders.eu.new", "orders", None),
        probabilities=(0.5, 0.25, 0.125, 0.125),
    )
    wanted = [{"nats": "orders.>"}, {"nats": "*.eu"}, {"nats": "*.*.*"}, {"nats": ">"}]
    shares = match_shares(
        [as_filter({"topic": one}) for one in wanted], IndependentContent(attributes=(topics,))
    )
    assert shares.tolist() == [0.75, 0.5, 0.25, 0.875]


def test_a_system_is_written_back_as_it_was_read_to_a_file_and_to_tables(tmp_path):
    text = """
    tidings: 1
    brokers: {b: {}}
    publishers: {p: {at: b, every: 1s, content: {event: {topic: orders.eu}}}}
    subscribers:
      one: {at: b, wants: {topic: {nats: orders.*}}}
      two: {at: b, wants: [{topic: {nats: ">"}}, {topic: {mqtt: $share/g/a/#}}]}
    """
    system = loads(text)
    assert loads(dumps(system)) == system
    assert "$share/g/a/#" in dumps(system)
    save(system, tmp_path / "folder")
    assert load(tmp_path / "folder") == system
