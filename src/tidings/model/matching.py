"""Many events against many filters at once, and the classes of content that follow.

What takes time is not the size of the answer but asking a test again for a value already seen. So
every attribute's distinct values are put in order once, a test becomes a piece of that order (found
by bisection) or a few places in it, and filters are combined from whole columns.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidings.model.covering import after_prefix
from tidings.model.events import Event, Value, value_key, value_kind
from tidings.model.filters import Constraint, Filter
from tidings.model.wildcards import expression, stem

Flags = NDArray[np.bool_]
_SEPARATOR = "\0"
_ROWS = 256  # of a matrix that are packed at once
_REMEMBERED = 4096  # columns of tests that many filters share, such as the topic


def match_matrix(filters: Sequence[Filter], events: Sequence[Event]) -> Flags:
    """Test which events match which filters: one row per event, one column per filter.

    The same answers as :func:`tidings.model.filters.matches`. Columns lie together in memory.

    >>> from tidings.model.filters import as_filter
    >>> match_matrix([as_filter({}), as_filter({"price": {"below": 20}})], [{"price": 12}, {}])
    array([[ True,  True],
           [ True, False]])
    """
    named = {
        constraint.attribute
        for wanted in filters
        for conjunction in wanted.conjunctions
        for constraint in conjunction.constraints
    }
    columns = {name: AttributeValues([event.get(name) for event in events]) for name in named}

    @lru_cache(maxsize=_REMEMBERED)
    def column(constraint: Constraint) -> Flags:
        return columns[constraint.attribute].events_that_pass(constraint)

    by_filter = np.zeros((len(filters), len(events)), dtype=np.bool_)
    first_with: dict[Filter, int] = {}
    for row, wanted in enumerate(filters):
        first = first_with.setdefault(wanted, row)
        if first < row:
            by_filter[row] = by_filter[first]
            continue
        for conjunction in wanted.conjunctions:
            passing = np.ones(len(events), dtype=np.bool_)
            for constraint in conjunction.constraints:
                passing &= column(constraint)
            by_filter[row] |= passing
    return by_filter.T


def content_classes(matrix: Flags) -> tuple[NDArray[np.int64], Flags]:
    """Find the class of each event, and the filters that each class matches.

    Events that no filter tells apart (equal rows of the matrix) are one class; classes are numbered
    in the order in which their first event appears.

    >>> matrix = np.array([[False, True], [True, True], [False, True]])
    >>> class_of_event, class_matrix = content_classes(matrix)
    >>> class_of_event.tolist(), class_matrix.tolist()
    ([0, 1, 0], [[False, True], [True, True]])
    """
    # Some rows at a time: the matrix lies in memory column by column.
    blocks = np.array_split(matrix, len(matrix) // _ROWS + 1)
    packed = np.concatenate([np.packbits(np.ascontiguousarray(b), axis=1) for b in blocks])
    number_of: dict[bytes, int] = {}
    class_of_event = np.empty(len(matrix), dtype=np.int64)
    first_event: list[int] = []
    for event, bits in enumerate(packed):
        number = number_of.setdefault(bits.tobytes(), len(number_of))
        if number == len(first_event):
            first_event.append(event)
        class_of_event[event] = number
    return class_of_event, np.ascontiguousarray(matrix[np.array(first_event, dtype=np.intp)])


class AttributeValues:
    """The values of one attribute over all events, each distinct value once and in order."""

    def __init__(self, values: Sequence[Value | None]) -> None:
        keys = [value_key(value) for value in values]
        ordered = sorted({*keys, value_key(None)})
        self._place_of = {key: place for place, key in enumerate(ordered)}
        self._values: list[Any] = [value for _, value in ordered]
        self._place_of_event = np.array([self._place_of[key] for key in keys], dtype=np.intp)
        kinds = [value_kind(value) for value in self._values]
        self._extent = {
            kind: (kinds.index(kind), kinds.index(kind) + kinds.count(kind)) for kind in set(kinds)
        }
        first, end = self._extent.get("text", (0, 0))
        texts = [str(value) for value in self._values[first:end]]
        self._joined = _SEPARATOR.join(texts)
        self._starts = list(accumulate((len(text) + 1 for text in texts), initial=0))

    def events_that_pass(self, constraint: Constraint) -> Flags:
        """Test which events pass one test on this attribute."""
        passing = np.zeros(len(self._values), dtype=np.bool_)
        match constraint.test:
            case "exists":
                passing[:] = constraint.value is True
                passing[0] = constraint.value is False  # absence sorts first
            case "not":
                passing[1:] = True
                passing[self._places(constraint)] = False
            case "equals" | "one_of":
                passing[self._places(constraint)] = True
            case "contains":
                passing[self._places_containing(str(constraint.value))] = True
            case "nats" | "mqtt":
                passing[self._places_on_pattern(constraint)] = True
            case _:
                first, end = self._range(constraint)
                passing[first:end] = True
        return passing[self._place_of_event]

    def _places(self, constraint: Constraint) -> NDArray[np.intp]:
        """Find the indices of the test's values, as far as they occur."""
        keys = [value_key(value) for value in constraint.values]
        places = [self._place_of[key] for key in keys if key in self._place_of]
        return np.array(places, dtype=np.intp)

    def _range(self, constraint: Constraint) -> tuple[int, int]:
        """Find the range of the sorted values that passes a bound or a prefix."""
        first, end = self._extent.get(constraint.kinds[0], (0, 0))
        bound: Any = constraint.value
        match constraint.test:
            case "below":
                return first, bisect_left(self._values, bound, first, end)
            case "at_most":
                return first, bisect_right(self._values, bound, first, end)
            case "above":
                return bisect_right(self._values, bound, first, end), end
            case "at_least":
                return bisect_left(self._values, bound, first, end), end
        return self._range_of_prefix(bound)

    def _range_of_prefix(self, start: str) -> tuple[int, int]:
        first, end = self._extent.get("text", (0, 0))
        after = after_prefix(start)
        begin = bisect_left(self._values, start, first, end)
        return begin, end if after is None else bisect_left(self._values, after, first, end)

    def _places_on_pattern(self, constraint: Constraint) -> list[int]:
        """Find the indices of the texts that a pattern wants.

        Only those that begin as it does are read.
        """
        test, pattern = constraint.test, str(constraint.value)
        fits = expression(test, pattern).fullmatch
        places = range(*self._range_of_prefix(stem(test, pattern)))
        return [place for place in places if fits(self._values[place])]

    def _places_containing(self, piece: str) -> list[int]:
        """Find the indices of the texts that contain a piece.

        It takes one search through all of them, joined.
        """
        first, end = self._extent.get("text", (0, 0))
        if not piece or _SEPARATOR in piece:
            return [place for place in range(first, end) if piece in self._values[place]]
        places = []
        at = self._joined.find(piece)
        while at >= 0:
            text = bisect_right(self._starts, at) - 1
            places.append(first + text)
            at = self._joined.find(piece, self._starts[text + 1])
        return places
