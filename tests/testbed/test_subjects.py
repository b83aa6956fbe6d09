"""Contents become subjects one to one, filters the sets of subjects they match."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.errors import UnsupportedError
from tidings.model.content import AttributeLaw, IndependentContent
from tidings.model.filters import matches
from tidings.model.reading import loads
from tidings.testbed.workload import _token, contents_of, schedule, subjects

SYSTEM = """
tidings: 1
brokers: {b: {}}
publishers:
  p:
    at: b
    every: 1s
    content:
      independent:
        topic: [{p: 0.4, value: a}, {p: 0.3, value: b.c}, {p: 0.3, value: "*"}]
        price:
          [{p: 0.4, value: 1}, {p: 0.2, value: 1.5}, {p: 0.2, value: "1"}, {p: 0.2, value: true}]
  q: {at: b, every: {rate: 3/s}, content: [{p: 1, event: {topic: a}}], lifetime: {exponential: 2s}}
subscribers:
  all: {at: b, wants: {}}
  cheap: {at: b, wants: {price: {below: 1.2}}}
  either: {at: b, wants: [{topic: a}, {price: true}]}
"""

values = st.one_of(
    st.none(), st.booleans(), st.integers(-99, 99), st.floats(-9, 9), st.text(max_size=6)
)


@given(st.lists(values, max_size=8))
def test_tokens_are_legal_and_tell_values_apart(chosen):
    tokens = [_token(value) for value in chosen]
    assert all(re.fullmatch(r"[!-~]+", token) for token in tokens)
    assert not any(set(token) & set(".*> ") for token in tokens)
    kinds = {(type(value).__name__, repr(value)) for value in chosen}
    assert len(set(tokens)) == len(kinds)


def test_filters_become_the_subjects_of_what_they_match():
    system = loads(SYSTEM)
    contents = contents_of(system)
    found = subjects(system, contents)
    rows = {row.text: row for each in contents for row in each}
    assert len(set(found.of_content.values())) == len(rows) == 13
    for subscriber, asked in zip(system.subscribers, found.of_subscriber, strict=True):
        wanted = {
            found.of_content[text]
            for text, row in rows.items()
            if matches(subscriber.wants, row.event)
        }
        assert set(asked) == wanted
        assert len(asked) == len(wanted)


def test_contents_that_are_too_many_are_refused_by_name():
    system = loads(SYSTEM)
    values = tuple(range(100))
    laws = tuple(
        AttributeLaw(attribute=name, values=values, probabilities=(0.01,) * 100) for name in "xy"
    )
    first = replace(system.publishers[0], content=IndependentContent(attributes=laws))
    large = replace(system, publishers=(first, *system.publishers[1:]))
    with pytest.raises(UnsupportedError, match=r"publishers\.p\.content \(10,000 combinations\)"):
        contents_of(large)


def test_a_schedule_is_the_same_for_a_seed_and_periodic_from_a_random_phase():
    system = loads(SYSTEM)
    contents = contents_of(system)
    planned = schedule(system, contents, 50.0, seed=3)
    assert planned == schedule(system, contents, 50.0, seed=3)
    assert planned != schedule(system, contents, 50.0, seed=4)
    periodic = [each.at_s for each in planned if each.publisher == 0]
    assert len(periodic) == 50
    assert {round(b - a, 9) for a, b in itertools.pairwise(periodic)} == {1.0}
    assert all(each.lifetime_s is None for each in planned if each.publisher == 0)
    assert len({each.lifetime_s for each in planned if each.publisher == 1}) > 100
    phases = [schedule(system, contents, 1.0, seed=seed)[0].at_s for seed in range(40)]
    assert min(phases) < 0.1
