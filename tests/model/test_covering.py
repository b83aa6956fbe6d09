"""Covering against a search for witnesses: events around the constants of both filters.

The search knows nothing of how covering is decided. It tries absence, flags, numbers on, between
and beside the constants, and texts that begin like a constant, go on with a letter near one of its
letters, and then hold the wanted pieces. A True answer must never meet a witness, a False one must
have one.
"""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.model.covering import conjunction_covers, covers, overlaps, satisfiable
from tidings.model.filters import (
    BOUNDS,
    EVERYTHING,
    Conjunction,
    Constraint,
    Filter,
    accepts,
    as_filter,
    matches,
)

LAST, NEXT_TO_LAST = chr(0x10FFFF), chr(0x10FFFE)


def constraint(attribute, test, value):
    return Constraint(attribute=attribute, test=test, value=value)


def drawn_on(attribute, texts, numbers):
    values = texts | numbers | st.booleans()
    single = st.tuples(st.sampled_from(["equals", "not"]), values)
    bound = st.tuples(st.sampled_from(list(BOUNDS)), texts | numbers)
    piece = st.tuples(st.sampled_from(["prefix", "contains"]), texts)
    several = st.tuples(st.just("one_of"), st.lists(values, min_size=1, max_size=3).map(tuple))
    exists = st.tuples(st.just("exists"), st.booleans())
    # Order and pieces of texts are where it is hard: let them be frequent.
    drawn = st.one_of(bound, bound, piece, piece, single, several, exists)
    return drawn.map(lambda pair: constraint(attribute, *pair))


TEXTS = st.text("ab", max_size=3)
HARD_TEXTS = st.text(f"\0a{LAST}", max_size=3)
NUMBERS = st.sampled_from([0, 1, 1.5, 2])
ON_A = drawn_on("a", TEXTS, NUMBERS)
ON_A_HARD = drawn_on("a", HARD_TEXTS, NUMBERS)
ONLY_TEXT = drawn_on("a", TEXTS | HARD_TEXTS, TEXTS)


def joined(found):
    return Conjunction(constraints=tuple(found))


def candidate_values(constraints):
    values = [value for one in constraints for value in one.values]
    numbers = sorted(v for v in values if isinstance(v, int | float) and not isinstance(v, bool))
    between = [(low + high) / 2 for low, high in itertools.pairwise(numbers)]
    beside = [numbers[0] - 1, numbers[-1] + 1] if numbers else [7]
    return [None, False, True, *numbers, *between, *beside, *candidate_texts(constraints)]


def candidate_texts(constraints):
    constants = [v for one in constraints for v in one.values if isinstance(v, str)]
    pieces = [str(one.value) for one in constraints if one.test == "contains"]
    letters = {"\0", "#", LAST, *"".join(constants)}
    for letter in "".join(constants):
        near = range(max(ord(letter) - 2, 0), min(ord(letter) + 2, ord(LAST)) + 1)
        letters.update(map(chr, near))
    stems = {text[:length] for text in constants for length in range(len(text) + 1)} | {""}
    starts = stems | {stem + letter for stem in stems for letter in letters}
    # Not always all pieces: the one that the wide side wants is to be avoided.
    chosen = [c for size in range(len(pieces) + 1) for c in itertools.combinations(pieces, size)]
    tails = {"", *("".join(f"#{piece}" for piece in some) + "#" for some in chosen)}
    # Pieces may also have to sit in what the range fixes, or right behind it.
    direct = {"", *pieces}
    return sorted({start + tail for start in starts for tail in tails | direct})


def witness_against(wide, narrow):
    """A value of attribute ``a`` (the only one here) that is in ``narrow`` and not in ``wide``."""
    every = (*wide.constraints, *narrow.constraints)
    for value in candidate_values(every):
        inside = all(accepts(one, value) for one in narrow.constraints)
        if inside and not all(accepts(one, value) for one in wide.constraints):
            return {} if value is None else {"a": value}
    return None


def assert_exact(wide, narrow):
    witness = witness_against(wide, narrow)
    assert conjunction_covers(wide, narrow) == (witness is None), witness


@given(st.lists(ON_A, max_size=2), st.lists(ON_A, max_size=3))
@settings(deadline=None, max_examples=200)
def test_covering_of_conjunctions_is_exact(wide, narrow):
    assert_exact(joined(wide), joined(narrow))


@given(ON_A_HARD, st.lists(ON_A_HARD, max_size=3))
@settings(deadline=None, max_examples=200)
def test_covering_is_exact_at_the_ends_of_the_alphabet(wide, narrow):
    assert_exact(joined([wide]), joined(narrow))


@given(ONLY_TEXT, st.lists(ONLY_TEXT, min_size=1, max_size=4))
@settings(deadline=None, max_examples=200)
def test_covering_is_exact_for_many_tests_on_one_text(wide, narrow):
    assert_exact(joined([wide]), joined(narrow))


NUMERIC = st.tuples(st.sampled_from([*BOUNDS, "equals", "not"]), st.sampled_from([0, 1, 1.5]))
ON_NUMBERS = NUMERIC.map(lambda pair: constraint("a", *pair))


@given(ON_NUMBERS, st.lists(ON_NUMBERS, min_size=1, max_size=4))
@settings(deadline=None, max_examples=200)
def test_covering_is_exact_for_many_tests_on_one_number(wide, narrow):
    assert_exact(joined([wide]), joined(narrow))


def order_and_pieces(letters):
    """Bounds and exceptions inside, a piece outside: where it is decided letter by letter."""
    texts = st.text(letters, max_size=2)
    inside = st.tuples(st.sampled_from([*BOUNDS, "not", "not", "prefix", "contains"]), texts)
    outside = st.tuples(st.sampled_from(["contains", "contains", "prefix"]), texts)
    made = [pairs.map(lambda pair: constraint("a", *pair)) for pairs in (outside, inside)]
    return st.tuples(made[0], st.lists(made[1], min_size=1, max_size=3))


@given(st.one_of(map(order_and_pieces, ["ab", "\0\1", f"a{LAST}", f"{NEXT_TO_LAST}{LAST}"])))
@settings(deadline=None, max_examples=300)
def test_covering_by_a_piece_is_exact_where_order_decides_letters(pair):
    wide, narrow = pair
    assert_exact(joined([wide]), joined(narrow))


@given(st.lists(ON_A, max_size=4))
@settings(deadline=None, max_examples=200)
def test_satisfiability_is_exact(found):
    passing = [v for v in candidate_values(found) if all(accepts(one, v) for one in found)]
    assert satisfiable(joined(found)) == bool(passing)


ON_AB = ON_A | drawn_on("b", TEXTS, NUMBERS)


@given(st.lists(ON_AB, max_size=3), st.lists(ON_AB, max_size=4))
@settings(deadline=None, max_examples=200)
def test_several_attributes(wide, narrow):
    """The witness is an event; each attribute on its own may supply what breaks the wide side."""
    every = [*wide, *narrow]
    inside = {
        name: [
            value
            for value in candidate_values([one for one in every if one.attribute == name])
            if all(accepts(one, value) for one in narrow if one.attribute == name)
        ]
        for name in "ab"
    }
    small = Filter(conjunctions=(joined(narrow),))
    large = Filter(conjunctions=(joined(wide),))
    found = False
    if inside["a"] and inside["b"]:
        firsts = {name: values[0] for name, values in inside.items()}
        for name, values in inside.items():
            events = ({**firsts, name: value} for value in values)
            found |= any(matches(small, one) and not matches(large, one) for one in events)
    assert covers(large, small) == (not found)
    assert conjunction_covers(joined(wide), joined(narrow)) == (not found)


SMALL_DOMAIN = [None, True, False, 0, 1, 1.5, 2, *map("".join, itertools.product("ab", repeat=2))]
SMALL_DOMAIN += ["", "a", "b", *map("".join, itertools.product("ab", repeat=3))]


def filters_on(constraints):
    some = st.lists(st.lists(constraints, max_size=3).map(joined), max_size=3)
    return some.map(lambda found: Filter(conjunctions=tuple(found)))


@given(filters_on(ON_A), filters_on(ON_A))
@settings(deadline=None, max_examples=150)
def test_covering_of_any_filters_is_sound(wide, narrow):
    if covers(wide, narrow):
        for value in SMALL_DOMAIN:
            event = {} if value is None else {"a": value}
            assert matches(wide, event) or not matches(narrow, event)


@given(filters_on(ON_A), filters_on(ON_A))
@settings(deadline=None, max_examples=150)
def test_overlap_is_exact_also_for_or(one, other):
    every = [c for side in (one, other) for part in side.conjunctions for c in part.constraints]
    shared = [
        value
        for value in candidate_values(every)
        if matches(one, {"a": value}) and matches(other, {"a": value})
    ]
    assert overlaps(one, other) == overlaps(other, one) == bool(shared)


@given(filters_on(ON_AB))
@settings(deadline=None)
def test_every_filter_covers_itself_and_lies_between_nothing_and_everything(wanted):
    assert covers(wanted, wanted)
    assert covers(EVERYTHING, wanted)
    assert covers(wanted, Filter())


@given(filters_on(ON_A), filters_on(ON_A), filters_on(ON_A))
@settings(deadline=None)
def test_covering_is_transitive(one, two, three):
    if covers(one, two) and covers(two, three):
        assert covers(one, three)


@pytest.mark.parametrize(
    ("wide", "narrow", "expected"),
    [
        # equality and what it implies
        ({"prefix": "AB"}, "ABC", True),
        ({"contains": "BC"}, ["ABC", "BCD"], True),
        ({"contains": "BC"}, ["ABC", "BD"], False),
        ({"below": 3}, [1, 2], True),
        ([1, 2, 3], {"one_of": [1, 2, 4], "not": 4}, True),
        ({"not": 3}, {"above": 3}, True),
        ({"not": 3}, {"at_least": 3}, False),
        ({"not": 3}, "3", True),
        ({"not": True}, 1, True),
        # numbers are dense
        ([1, 2], {"between": [1, 2]}, False),
        (1, {"between": [1, 1]}, True),
        ({"below": 1}, {"between": [1, 1], "not": 1}, True),
        ({"at_most": 2}, {"below": 2}, True),
        ({"below": 2}, {"at_most": 2}, False),
        ({"below": 2}, {"at_most": 2, "not": 2}, True),
        ({"above": 2**53}, {"at_least": 2**53 + 1}, True),
        # texts are not
        ("a", {"at_least": "a", "below": "a\0"}, True),
        ("a", {"above": "`", "at_most": "a", "prefix": "a"}, True),
        ({"prefix": "a"}, {"at_least": "a", "below": "b"}, True),
        ({"prefix": "a"}, {"at_least": "a", "at_most": "b"}, False),
        ({"at_least": "a", "below": "b"}, {"prefix": "a"}, True),
        ({"prefix": "ab"}, {"prefix": "abc"}, True),
        ({"prefix": "abc"}, {"prefix": "ab"}, False),
        ({"contains": "ab"}, {"prefix": "xab"}, True),
        ({"contains": "b"}, {"contains": "abc"}, True),
        ({"contains": "ab"}, {"all": [{"contains": "a"}, {"contains": "b"}]}, False),
        ({"contains": "ab"}, {"prefix": "a", "contains": "b"}, False),
        ({"contains": "ab"}, {"prefix": "a", "contains": "b", "at_most": "ab"}, False),
        # "a\0b" and the like lie below "ab"; up to "a" and a last "b" nothing else does
        ({"contains": "b"}, {"at_least": "ab", "at_most": "ab\0\0"}, True),
        ({"contains": ""}, {"below": "x"}, True),
        # order alone can force a piece, letter by letter
        ({"contains": "b"}, {"at_least": "b"}, False),
        ({"contains": LAST}, {"at_least": NEXT_TO_LAST + LAST}, True),
        ({"contains": LAST + LAST}, {"at_least": "a" + LAST + LAST, "below": "b"}, True),
        ({"contains": "\0"}, {"at_least": "a", "below": "a\1", "not": "a"}, True),
        ({"contains": "\0"}, {"below": "\2", "not": ""}, False),
        ({"prefix": ""}, {"below": 3}, False),
        ({"exists": True}, {"not": 3}, True),
        ({"exists": True}, {"exists": False}, False),
        ({"not": 3}, {"exists": False}, False),
        # what nobody can pass is covered by anything
        (99, {"prefix": "a", "below": "A"}, True),
        (99, {"below": 1, "above": 1}, True),
        (99, {"below": 1, "prefix": "a"}, True),
        (99, {"exists": False, "not": 1}, True),
        (99, {"one_of": [True, False], "not": [True, False]}, True),
        (True, {"one_of": [True, False], "not": False}, True),
    ],
)
def test_combinations_worth_naming(wide, narrow, expected):
    assert covers(as_filter({"a": wide}), as_filter({"a": narrow})) is expected


def test_a_missing_attribute_is_not_covered_by_a_test_on_it():
    assert not covers(as_filter({"a": {"exists": True}}), EVERYTHING)
    assert not covers(as_filter({"a": {"exists": False}}), EVERYTHING)
    assert not covers(as_filter({"a": 1}), as_filter({"b": 1}))
    assert covers(as_filter({"a": 1}), as_filter({"a": 1, "b": 1}))
    assert covers(as_filter({"z": 1}), as_filter({"a": {"above": 1, "below": 1}, "b": 1}))


def test_or_is_covered_part_by_part():
    wide = as_filter([{"a": {"below": 3}}, {"b": 1}])
    assert covers(wide, as_filter([{"a": 1}, {"a": 9, "b": 1}]))
    assert not covers(wide, as_filter([{"a": 1}, {"a": 9}]))
    # The documented limit: two parts that cover only together.
    split = as_filter([{"a": {"below": 3}}, {"a": {"at_least": 3}}])
    assert not covers(split, as_filter({"a": {"between": [0, 9]}}))
