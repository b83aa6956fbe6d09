import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.model.filters import BOUNDS, Conjunction, Constraint, Filter, as_filter, matches
from tidings.model.matching import content_classes, match_matrix

TEXTS = st.text("ab\0\U0010ffff", max_size=3) | st.text("a./$", max_size=5)
NUMBERS = st.sampled_from([0, 1, 1.0, 1.5, -1, 2**53, 2**53 + 1, float(2**53), 1e300])
VALUES = TEXTS | NUMBERS | st.booleans()
ATTRIBUTES = st.sampled_from("xy")
EVENTS = st.lists(st.dictionaries(ATTRIBUTES, VALUES | st.none()), max_size=12)


def constraints(test, value):
    return st.builds(Constraint, attribute=ATTRIBUTES, test=st.sampled_from(test), value=value)


CONSTRAINTS = st.one_of(
    constraints(["equals", "not"], VALUES),
    constraints(list(BOUNDS), TEXTS | NUMBERS),
    constraints(["prefix", "contains"], TEXTS),
    constraints(["nats"], st.sampled_from(["a", "a.*", "*.a", "a.>", ">"])),
    constraints(["mqtt"], st.sampled_from(["a", "a/+", "+/a", "/#", "a/#", "#", "$a/+"])),
    constraints(["one_of"], st.lists(VALUES, min_size=1, max_size=3).map(tuple)),
    constraints(["exists"], st.booleans()),
)
CONJUNCTIONS = st.lists(CONSTRAINTS, max_size=3).map(lambda c: Conjunction(constraints=tuple(c)))
FILTERS = st.lists(CONJUNCTIONS, max_size=3).map(lambda c: Filter(conjunctions=tuple(c)))


# Every filter meets every event, so an example holds up to a hundred cases.
@given(st.lists(FILTERS, max_size=8), EVENTS)
@settings(deadline=None, max_examples=100)
def test_the_matrix_is_what_matching_one_by_one_gives(filters, events):
    matrix = match_matrix(filters, events)
    assert matrix.shape == (len(events), len(filters))
    assert matrix.dtype == np.bool_
    assert matrix.tolist() == [[matches(wanted, event) for wanted in filters] for event in events]


def test_bounds_cut_exactly_at_values_that_occur():
    """Every bound at, between and beside values of its kind and of others."""
    values = [False, True, 0, 1, 1.5, 2, "", "a", "a\0", "b", "ba"]
    cuts = [-1, 0, 0.5, 1, 2, 3, "", "a", "aa", "b", "c"]
    events = [{}, *({"a": value} for value in values)]
    filters = [as_filter({"a": {test: cut}}) for test in [*BOUNDS, "equals", "not"] for cut in cuts]
    expected = [[matches(wanted, event) for wanted in filters] for event in events]
    assert match_matrix(filters, events).tolist() == expected


def test_pieces_are_found_in_every_text_and_not_across_texts():
    events = [{"a": text} for text in ("ab", "ba", "b", "aab", "", "xabab", "b\0a")]
    wanted = [
        as_filter({"a": {"contains": piece}}) for piece in ("ab", "ba", "b", "", "b\0a", "\0")
    ]
    expected = [
        [str(one["a"]).find(p) >= 0 for p in ("ab", "ba", "b", "", "b\0a", "\0")] for one in events
    ]
    assert match_matrix(wanted, events).tolist() == expected


def test_repeated_filters_have_equal_columns():
    cheap, dear = as_filter({"price": {"below": 9}}), as_filter({"price": {"at_least": 9}})
    matrix = match_matrix([cheap, dear, cheap], [{"price": price} for price in range(20)])
    assert (matrix[:, 0] == matrix[:, 2]).all()
    assert (matrix[:, 0] != matrix[:, 1]).all()


def test_many_filters_and_events_at_once():
    rng = np.random.default_rng(5)
    prices, cuts = rng.uniform(0, 100, 3000), rng.uniform(0, 100, 3000)
    topics, wishes = rng.integers(0, 4, 3000), rng.integers(0, 4, 3000)
    events = [
        {"topic": f"t{topic}", "price": float(price)}
        for topic, price in zip(topics, prices, strict=True)
    ]
    filters = [
        as_filter({"topic": f"t{wish}", "price": {"below": float(cut)}})
        for wish, cut in zip(wishes, cuts, strict=True)
    ]
    expected = (topics[:, None] == wishes[None, :]) & (prices[:, None] < cuts[None, :])
    assert (match_matrix(filters, events) == expected).all()


def test_no_filters_and_no_events():
    assert match_matrix([], [{"a": 1}]).shape == (1, 0)
    assert match_matrix([as_filter({"a": 1})], []).shape == (0, 1)


matrices = st.integers(0, 12).flatmap(
    lambda filters: st.lists(
        st.lists(st.booleans(), min_size=filters, max_size=filters), max_size=12
    ).map(lambda rows: np.array(rows, dtype=bool).reshape(len(rows), filters))
)


@given(matrices)
@settings(deadline=None)
def test_classes_hold_exactly_the_events_that_no_filter_tells_apart(matrix):
    class_of_event, class_matrix = content_classes(matrix)
    assert class_of_event.dtype == np.int64
    assert class_matrix.shape[1] == matrix.shape[1]
    assert (class_matrix[class_of_event] == matrix).all()
    assert len(np.unique(class_matrix, axis=0)) == len(class_matrix)
    _, first_events = np.unique(class_of_event, return_index=True)
    assert len(first_events) == len(class_matrix)
    assert (np.diff(first_events) > 0).all()  # numbered by first appearance
