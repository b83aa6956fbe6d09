r"""Whether one filter covers another: does every event that matches the narrow match the wide?

All events count, not only those that somebody publishes: numbers are the real numbers, dense and
without end; texts are all finite sequences of code points, in code-point order; flags are two; any
attribute may be absent.

Under that reading the answer for **single conjunctions is exact**, whatever tests they combine.
A conjunction is a product of one set of values per attribute, so it lies within another as soon as
it is empty or each of its sets lies within the other's; and a set of values escapes a test exactly
when the set has a member in the test's complement. That leaves one question, whether tests have a
common value, which is decided kind by kind:

* Numbers leave an interval less finitely many points: empty, one point, or more than any list.
* Texts are harder only because their order is not dense (nothing lies between ``a`` and ``a\0``).
  ``above x`` is ``at_least x\0`` and a prefix is a range too, so order and prefix leave one
  half-open range. It is a finite list of single texts, which are checked one by one, and of
  cylinders: "these first letters, then one letter of a range, then anything". "Anything" has room
  for every ``contains``, set apart by a letter that the piece to avoid does not have, in endlessly
  many ways. So a cylinder is empty only where its first letters already hold the piece to avoid, or
  where a ``contains`` does.
* Patterns with wildcards are neither a range nor a piece. Two of one broker are compared level by
  level; where one is among other tests, all are followed letter by letter
  (:mod:`tidings.model.text_search`).

**For OR the answer is sound but not complete**: each conjunction of the narrow filter must lie
within one conjunction of the wide one. Where only several of them together cover it (``below: 3``
or ``at_least: 3`` around ``between: [0, 9]``), the answer is False. To be complete there too is as
hard as to prove Boolean formulas unsatisfiable.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from tidings.model.document import Place, describe
from tidings.model.events import VALUE_KINDS, Value, ValueKind, value_kind
from tidings.model.filters import Conjunction, Constraint, Filter, Test, accepts, read_filter
from tidings.model.text_search import LAST_LETTER, find_text
from tidings.model.wildcards import WILD_TESTS, pattern_covers

Tests = tuple[Constraint, ...]

_OPPOSITE: dict[Test, Test] = {
    "below": "at_least",
    "at_least": "below",
    "above": "at_most",
    "at_most": "above",
    "not": "equals",
    "equals": "not",
}


def covers(wide: Filter, narrow: Filter) -> bool:
    """Test whether every event that matches ``narrow`` matches ``wide``; True is always right.

    False is right too, unless several conjunctions of ``wide`` must join to cover one of the
    others.

    >>> from tidings.model.filters import as_filter
    >>> covers(as_filter({"code": {"prefix": "AB"}}), as_filter({"code": ["ABC", "ABD"]}))
    True
    >>> covers(as_filter({"price": {"above": 0}}), as_filter({"price": {"at_least": 0}}))
    False
    """
    return all(
        any(conjunction_covers(large, small) for large in wide.conjunctions)
        or not satisfiable(small)
        for small in narrow.conjunctions
    )


def conjunction_covers(wide: Conjunction, narrow: Conjunction) -> bool:
    """Test whether every event that passes ``narrow`` passes ``wide``; sound and complete."""
    offered = _by_attribute(narrow)
    return all(
        not _escapes(offered.get(constraint.attribute, ()), constraint)
        for constraint in wide.constraints
    ) or not satisfiable(narrow)


@lru_cache(maxsize=16_384)
def satisfiable(conjunction: Conjunction) -> bool:
    """Test whether any event at all passes a conjunction; exact.

    >>> from tidings.model.filters import as_filter
    >>> satisfiable(as_filter({"code": {"prefix": "B", "below": "AZ"}}).conjunctions[0])
    False
    """
    return all(
        any(_inhabited(tests, kind) for kind in VALUE_KINDS)
        for tests in _by_attribute(conjunction).values()
    )


def overlaps(one: Filter, other: Filter) -> bool:
    """Test whether some event matches both filters; exact, also for OR.

    >>> from tidings.model.filters import as_filter
    >>> overlaps(as_filter({"price": {"below": 3}}), as_filter({"topic": "stock"}))
    True
    """
    return any(
        satisfiable(Conjunction(constraints=left.constraints + right.constraints))
        for left in one.conjunctions
        for right in other.conjunctions
    )


def read_wants(place: Place) -> Filter | None:
    """Read a filter; give None after reporting every problem, also tests that never hold.

    >>> place = Place({"price": {"above": 5, "below": 3}})
    >>> read_wants(place) is None, str(place.problems[0])
    (True, 'price: got below 3 and above 5; wants tests that at least one value can pass')
    """
    before = len(place.problems)
    wanted = read_filter(place)
    alternatives = [place] if isinstance(place.value, Mapping) else []
    if isinstance(place.value, list | tuple):
        alternatives = [place.inside(index) for index in range(len(place.value))]
    for one in alternatives:
        for attribute in one.value if isinstance(one.value, Mapping) else ():
            tests = one.value[attribute]
            # One test alone contradicts nothing.
            if isinstance(tests, Mapping) and (len(tests) > 1 or "all" in tests):
                _report_contradiction(one.inside(attribute), str(attribute))
    return wanted if len(place.problems) == before else None


def _report_contradiction(place: Place, attribute: str) -> None:
    alone = read_filter(Place({attribute: place.value}))  # its problems are noted already
    if alone is None or satisfiable(alone.conjunctions[0]):
        return
    tests = alone.conjunctions[0].constraints
    kinds = {one.kinds for one in tests if one.test not in {"not", "exists", "one_of"}}
    place.report(
        "tests that at least one value can pass",
        saw=" and ".join(f"{one.test} {describe(one.value)}" for one in tests),
        fix="no value is a number, a text and a boolean at once" if len(kinds) > 1 else "",
    )


@lru_cache(maxsize=16_384)
def _by_attribute(conjunction: Conjunction) -> dict[str, Tests]:
    tests: dict[str, Tests] = {}
    for constraint in conjunction.constraints:
        tests[constraint.attribute] = (*tests.get(constraint.attribute, ()), constraint)
    return tests


def _escapes(tests: Tests, wanted: Constraint) -> bool:
    """Test whether some value (or absence) passes all tests and fails the wanted one."""
    if wanted in tests:
        return False
    return any(
        _inhabited((*tests, *denial), kind, denied)
        for kind in VALUE_KINDS
        for denial, denied in _denials(wanted, kind)
    )


def _denials(wanted: Constraint, kind: ValueKind) -> list[tuple[Tests, Constraint | None]]:
    """List alternatives for a value of a kind that fails a test: tests to pass, and one to fail."""
    always: list[tuple[Tests, Constraint | None]] = [((), None)]
    never: list[tuple[Tests, Constraint | None]] = []
    if wanted.test == "exists":
        return never if (kind != "absent") == wanted.value else always
    if kind == "absent":
        return always
    if kind not in wanted.kinds:
        return never if wanted.test == "not" else always
    if wanted.test == "contains" or wanted.test in WILD_TESTS:
        return [((), wanted)]
    if wanted.test == "prefix":
        # Texts without this prefix come before all that have it, or after.
        start = str(wanted.value)
        end = after_prefix(start)
        outside: list[Tests] = [(_test("below", start),)]
        if end is not None:
            outside.append((_test("at_least", end),))
        return [(tests, None) for tests in outside]
    if wanted.test == "one_of":
        return [(tuple(_test("not", value) for value in wanted.values), None)]
    return [((_test(_OPPOSITE[wanted.test], wanted.values[0]),), None)]


def _inhabited(tests: Tests, kind: ValueKind, denied: Constraint | None = None) -> bool:
    """Test whether a value of a kind passes all tests and fails the one that is denied."""
    candidates = _candidates(tests, kind)
    if candidates is not None:
        return any(_passes(value, tests, denied) for value in candidates)
    if any(kind not in one.kinds for one in tests if one.test not in {"not", "exists"}):
        return False
    return _number_exists(tests) if kind == "number" else _text_exists(tests, denied)


def _candidates(tests: Tests, kind: ValueKind) -> Sequence[Value | None] | None:
    """List the only values that can pass; give None where they cannot be listed."""
    if kind == "absent":
        return [None]
    if kind == "flag":
        return [False, True]
    for one in tests:
        if one.test in {"equals", "one_of"}:
            return [value for value in one.values if value_kind(value) == kind]
        if one.test == "exists" and one.value is False:
            return []
    return None


def _passes(value: Value | None, tests: Tests, denied: Constraint | None) -> bool:
    if denied is not None and accepts(denied, value):
        return False
    return all(accepts(one, value) for one in tests)


def _number_exists(tests: Tests) -> bool:
    """Test whether a real number lies within all bounds; if two do, infinitely many do."""
    lows: list[Any] = [one.values[0] for one in tests if one.test in {"above", "at_least"}]
    highs: list[Any] = [one.values[0] for one in tests if one.test in {"below", "at_most"}]
    if not lows or not highs:
        return True
    low, high = max(lows), min(highs)
    return bool(low < high) or (low == high and _passes(low, tests, None))


def _text_exists(tests: Tests, denied: Constraint | None) -> bool:
    """Test whether a text passes all tests and fails the one that is denied.

    The tests are bounds, prefixes, pieces, exceptions and patterns.
    """
    if denied is not None and len(tests) == 1 and denied.test == tests[0].test in WILD_TESTS:
        # What is asked most often, and much quicker than a search.
        return not pattern_covers(denied.test, str(denied.value), str(tests[0].value))
    if any(one is not None and one.test in WILD_TESTS for one in (*tests, denied)):
        return find_text(tests, denied) is not None
    lacking = None if denied is None else str(denied.value)
    low, high = _text_range(tests)
    if high is not None and low >= high:
        return False
    if any(_passes(text, tests, denied) for text in _single_texts(low, high)):
        return True
    pieces = [str(one.value) for one in tests if one.test == "contains"]
    if lacking is not None and any(lacking in piece for piece in pieces):
        return False
    return any(_has_room(stem, first, last, lacking) for stem, first, last in _cylinders(low, high))


def _text_range(tests: Tests) -> tuple[str, str | None]:
    """Merge bounds and prefixes into one range: from a first text, before an end (None: no end)."""
    low = ""
    highs: list[str] = []
    for one in tests:
        text = str(one.value)
        match one.test:
            case "at_least" | "prefix":
                low = max(low, text)
            case "above":
                low = max(low, text + "\0")
            case "below":
                highs.append(text)
            case "at_most":
                highs.append(text + "\0")
        if one.test == "prefix" and (end := after_prefix(text)) is not None:
            highs.append(end)
    return low, min(highs, default=None)


def _single_texts(low: str, high: str | None) -> Iterator[str]:
    """Yield the members of a range that no cylinder of :func:`_cylinders` holds."""
    for length in range(len(high or "")):
        text = (high or "")[:length]
        if text >= low:
            yield text


def _cylinders(low: str, high: str | None) -> Iterator[tuple[str, int, int]]:
    """Yield the rest of a range as cylinders: stem, first letter, last letter.

    A cylinder holds the texts that begin with its stem and then a letter from first to last.
    """
    shared = -1 if high is None else _shared_length(low, high)
    if high is None or shared < len(low):
        yield low, 0, LAST_LETTER  # low itself needs no mention: it passes only if these do
        for at in range(shared + 1, len(low)):
            yield low[:at], ord(low[at]) + 1, LAST_LETTER
    if high is None:
        return
    if shared < len(low):
        yield low[:shared], ord(low[shared]) + 1, ord(high[shared]) - 1
    for at in range(shared + (shared < len(low)), len(high)):
        yield high[:at], 0, ord(high[at]) - 1


def _has_room(stem: str, first: int, last: int, lacking: str | None) -> bool:
    """Test whether a cylinder has a member that lacks a piece; then it has infinitely many."""
    if first > last or (lacking is not None and lacking in stem):
        return False
    # Of two letters at most one can complete the piece.
    return first < last or lacking is None or not (stem + chr(first)).endswith(lacking)


def _shared_length(one: str, other: str) -> int:
    length = 0
    while length < min(len(one), len(other)) and one[length] == other[length]:
        length += 1
    return length


def after_prefix(start: str) -> str | None:
    """Find the first text after all that begin with ``start``; give None if there is none."""
    kept = start.rstrip(chr(LAST_LETTER))
    return kept[:-1] + chr(ord(kept[-1]) + 1) if kept else None


def _test(test: Test, value: Value) -> Constraint:
    return Constraint(attribute="", test=test, value=value)
