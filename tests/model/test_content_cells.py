from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.model.content import AttributeLaw, IndependentContent
from tidings.model.content_cells import Cells, Sampling
from tidings.model.filters import as_filter, matches
from tidings.model.match_shares import MOST_CONJUNCTIONS, match_shares
from tidings.model.matching import match_matrix
from tidings.model.reading import from_document
from tidings.model.routes import route

TESTS = [
    {},
    {"a": 1},
    {"a": {"below": 3}, "b": "x"},
    {"b": {"prefix": "x"}},
    [{"a": 4}, {"c": {"exists": False}}],
    {"c": {"not": True}},
    {"a": {"at_least": 2}, "c": True},
    {"z": 1},
]
LAWS = [
    AttributeLaw(attribute="a", values=(0, 1, 2, 3, 4), probabilities=(0.1, 0.2, 0.3, 0.2, 0.2)),
    AttributeLaw(attribute="b", values=("x", "xy", "y"), probabilities=(0.5, 0.25, 0.25)),
    AttributeLaw(attribute="c", values=(None, True, False), probabilities=(0.3, 0.3, 0.4)),
    AttributeLaw(attribute="d", values=tuple(range(10)), probabilities=(0.1,) * 10),
]
CONTENT = IndependentContent(attributes=tuple(LAWS))


def by_match(filters, pairs):
    """The probability of every set of filters that match."""
    found = {}
    for event, share in pairs:
        key = tuple(matches(wanted, event) for wanted in filters)
        found[key] = found.get(key, 0.0) + share
    return found


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(range(len(TESTS))), min_size=1, unique=True))
def test_cells_are_the_contents_as_filters_see_them(chosen):
    filters = tuple(as_filter(TESTS[index]) for index in chosen)
    cells, drawn = Cells(filters=filters, contents=(CONTENT,)).cells(CONTENT, "p")
    assert not drawn
    found = by_match(filters, [(cell.event, cell.probability) for cell in cells])
    expected = by_match(filters, [(row.event, row.probability) for row in CONTENT.rows()])
    assert found.keys() == expected.keys()
    for key, share in expected.items():
        assert found[key] == pytest.approx(share, rel=1e-12)


def test_cells_are_few_where_filters_ask_for_little():
    filters = (as_filter({"a": {"below": 2}}), as_filter({"a": {"below": 2}, "b": "y"}))
    cells, _ = Cells(filters=filters, contents=(CONTENT,)).cells(CONTENT, "p")
    # Where a is not below 2 nothing holds any more, whatever b is.
    assert [cell.event for cell in cells] == [
        {"a": 0, "b": "x", "d": 0},
        {"a": 0, "b": "y", "d": 0},
        {"a": 2, "b": "x", "d": 0},
    ]
    assert [cell.probability for cell in cells] == pytest.approx([0.225, 0.075, 0.7], rel=1e-12)


def test_values_that_must_be_told_apart_are():
    cells, _ = Cells(filters=(), contents=(CONTENT,), distinguished=("b",)).cells(CONTENT, "p")
    assert [cell.event["b"] for cell in cells] == ["x", "xy", "y"]


def dozens(attributes=30, values=10):
    """More contents than atoms: every attribute has ten values, filters ask for two of them."""
    shares = (1.0 / values,) * values
    return IndependentContent(
        attributes=tuple(
            AttributeLaw(attribute=f"k{i:02d}", values=tuple(range(values)), probabilities=shares)
            for i in range(attributes)
        )
    )


def test_dozens_of_attributes_are_exact_where_filters_touch_few():
    content = dozens()
    filters = tuple(
        as_filter({"k03": {"below": i}, "k07": {"at_least": j}})
        for i, j in itertools.product(range(1, 10), range(1, 10))
    )
    cells, drawn = Cells(filters=filters, contents=(content,)).cells(content, "p")
    assert not drawn
    assert len(cells) <= 100
    pairs = [(cell.event, cell.probability) for cell in cells]
    for wanted, (i, j) in zip(filters, itertools.product(range(1, 10), range(1, 10)), strict=True):
        share = sum(p for event, p in pairs if matches(wanted, event))
        assert share == pytest.approx(i / 10 * (10 - j) / 10, rel=1e-12)


def test_shares_that_filters_match_are_those_of_all_contents():
    """Products over attributes, inclusion and exclusion of alternatives; absent attributes too."""
    filters = [*map(as_filter, TESTS), as_filter([{"d": {"below": i}} for i in range(1, 8)])]
    assert len(filters[-1].conjunctions) > MOST_CONJUNCTIONS
    filters.append(as_filter([TESTS[2], TESTS[3], TESTS[5], {"a": {"above": 1}, "d": 7}]))
    matched = match_matrix(filters, [row.event for row in CONTENT.rows()])
    expected = np.array([row.probability for row in CONTENT.rows()]) @ matched
    expected[len(TESTS)] = np.nan  # too many alternatives
    np.testing.assert_allclose(match_shares(filters, CONTENT), expected, rtol=1e-12, atol=1e-15)


@pytest.mark.statistical
def test_what_is_too_much_is_drawn_with_the_right_shares():
    content = dozens()
    filters = tuple(as_filter({f"k{i:02d}": {"below": 1 + i % 9}}) for i in range(30))
    sampling = Sampling(most_cells=1000, draws=6_000, seed=5)
    view = Cells(filters=filters, contents=(content,), sampling=sampling)
    cells, drawn = view.cells(content, "p")
    assert drawn
    assert sum(cell.probability for cell in cells) == pytest.approx(1.0, rel=1e-12)
    matched = match_matrix(filters, [cell.event for cell in cells])
    shares = np.array([cell.probability for cell in cells]) @ matched
    for i, share in enumerate(shares):
        exact = (1 + i % 9) / 10
        error = math.sqrt(exact * (1 - exact) / sampling.draws)
        assert share == pytest.approx(exact, abs=4.5 * error)
    again, _ = view.cells(content, "p")
    assert again == cells
    other, _ = view.cells(content, "q")
    assert other != cells
    parts = [
        replace(view, sampling=replace(sampling, batch=(k, 4))).cells(content, "p")[0]
        for k in range(4)
    ]
    total = {}
    for cell in itertools.chain(*parts):
        total[cell.text] = total.get(cell.text, 0.0) + cell.probability / 4
    assert total == pytest.approx({cell.text: cell.probability for cell in cells}, rel=1e-12)


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(most_cells=3, draws=500)])
def test_unions_of_filters_only_grow_towards_the_root(sampling):
    """What crosses an arc crosses every arc that leads to it, and has somebody who wants it."""
    random = np.random.default_rng(2)
    levels = [{"p": 0.1, "value": value} for value in range(10)]
    system = from_document(
        {
            "tidings": 1,
            "brokers": {f"b{i}": {} for i in range(7)},
            "links": [{"between": [f"b{(i - 1) // 2}", f"b{i}"]} for i in range(1, 7)],
            "publishers": {
                "p": {
                    "at": "b0",
                    "every": 1,
                    "content": {"independent": {f"k{i}": levels for i in range(12)}},
                }
            },
            "subscribers": {
                f"s{i}": {
                    "at": f"b{random.integers(7)}",
                    "wants": {f"k{random.integers(12)}": {"below": int(random.integers(1, 9))}},
                }
                for i in range(12)
            },
        }
    )
    routes = route(system, sampling)
    assert bool(routes.sampled) == (sampling.most_cells == 3)
    crosses = routes.interest > 0
    for index, arc in enumerate(routes.arcs):
        inwards = [i for i, each in enumerate(routes.arcs) if each.target == arc.source]
        for before in inwards:
            if before != index ^ 1:
                assert np.all(crosses[before] >= crosses[index])
    homes = routes.home_of_subscriber
    local = np.zeros((7, routes.class_count), dtype=bool)
    for subscriber, home in enumerate(homes):
        local[home] |= routes.wanted_by(subscriber)
    leaf = [i for i, arc in enumerate(routes.arcs) if arc.target == 6]
    assert np.array_equal(crosses[leaf[0]], local[6])
