"""Which share of a content with independent attributes a filter matches, without enumerating it.

One conjunction: the product over attributes of the shares of values that pass all its tests.
Several of which one must hold: inclusion and exclusion, since several together are one too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from tidings.model.content import IndependentContent
from tidings.model.filters import Conjunction, Constraint, Filter
from tidings.model.matching import AttributeValues

MOST_CONJUNCTIONS = 6  # of a filter, up to which the 2ⁿ − 1 terms are added up


def match_shares(filters: Sequence[Filter], content: IndependentContent) -> NDArray[np.float64]:
    """Compute the share of a publisher's events that each filter matches, exact to rounding.

    NaN for filters of more than ``MOST_CONJUNCTIONS`` conjunctions.

    >>> from tidings.model.content import AttributeLaw
    >>> from tidings.model.filters import as_filter
    >>> coin = AttributeLaw(attribute="a", values=(0, 1), probabilities=(0.5, 0.5))
    >>> die = AttributeLaw(attribute="b", values=(1, 2, 3, 4, 5), probabilities=(0.2,) * 5)
    >>> both = IndependentContent(attributes=(coin, die))
    >>> wanted = [{"a": 1, "b": {"above": 2}}, [{"a": 1}, {"b": 5}]]
    >>> match_shares([as_filter(one) for one in wanted], both).round(12).tolist()
    [0.3, 0.6]
    """
    values = {law.attribute: AttributeValues(law.values) for law in content.attributes}
    shares = {law.attribute: np.array(law.probabilities) for law in content.attributes}
    nowhere, always = AttributeValues([None]), np.ones(1)

    @cache
    def passing(attribute: str, tests: frozenset[Constraint]) -> float:
        own, share = values.get(attribute, nowhere), shares.get(attribute, always)
        passed = np.all([own.events_that_pass(test) for test in tests], axis=0)
        return float(share @ passed)

    def all_of(conjunctions: Sequence[Conjunction]) -> float:
        by_attribute: dict[str, set[Constraint]] = {}
        for conjunction in conjunctions:
            for test in conjunction.constraints:
                by_attribute.setdefault(test.attribute, set()).add(test)
        product = 1.0
        for attribute, tests in by_attribute.items():
            product *= passing(attribute, frozenset(tests))
        return product

    def one_of(conjunctions: Sequence[Conjunction]) -> float:
        if len(conjunctions) > MOST_CONJUNCTIONS:
            return math.nan
        terms = (
            all_of(chosen) if size % 2 else -all_of(chosen)
            for size in range(1, len(conjunctions) + 1)
            for chosen in combinations(conjunctions, size)
        )
        return max(math.fsum(terms), 0.0)

    return np.array([one_of(wanted.conjunctions) for wanted in filters])
