"""A text that passes several tests and fails another one, sought letter by letter.

Every test on a text can be followed along its letters in finitely many states: how much of a
constant has been seen, whether the order is decided, which level of a pattern has been reached. So
all tests together are one finite machine, and a text exists exactly where it can reach a state in
which all of them may end. Letters that no test names are alike where they lie between the same
letters that some test names: of each such gap one is tried.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from tidings.model import wildcards
from tidings.model.filters import Constraint

LAST_LETTER = 0x10FFFF
_LESS, _MORE = -1, -2
States = tuple[Any, ...]  # of every machine


@dataclass(frozen=True, slots=True, kw_only=True)
class _Machine:
    """One test: where it begins, where a letter leads (None: it has failed), where it may end."""

    start: Any
    step: Callable[[Any, str], Any]
    ends: Callable[[Any], bool]


@lru_cache(maxsize=16_384)
def find_text(tests: tuple[Constraint, ...], denied: Constraint | None = None) -> str | None:
    """Find a text that passes all tests, and fails the denied one; None: there is none.

    ``equals`` and ``one_of`` list their texts, and are not for this search.

    >>> two = Constraint(attribute="a", test="nats", value="orders.*")
    >>> more = Constraint(attribute="a", test="nats", value="orders.>")
    >>> find_text((two,), more) is None, find_text((more,), two) is None
    (True, False)
    """
    asked = [one for one in tests if "text" in one.kinds]  # texts pass all others: {not: 5}
    passing = len(asked)
    if denied is not None:
        asked.append(denied)
    machines, letters = [_machine(one) for one in asked], _letters(asked)
    start = tuple(one.start for one in machines)
    waiting, seen = [(start, "")], {start}
    while waiting:
        states, text = waiting.pop()
        may_end = [
            state is not None and one.ends(state)
            for one, state in zip(machines, states, strict=True)
        ]
        if all(may_end[:passing]) and not any(may_end[passing:]):
            return text
        for letter in letters:
            following = _stepped(machines, states, letter, passing)
            if following is not None and following not in seen:
                seen.add(following)
                waiting.append((following, text + letter))
    return None


def _stepped(
    machines: Sequence[_Machine], states: States, letter: str, passing: int
) -> States | None:
    """Compute the states after a letter; None as soon as a test that must pass has failed."""
    following = []
    for place, (machine, state) in enumerate(zip(machines, states, strict=True)):
        after = None if state is None else machine.step(state, letter)
        if after is None and place < passing:
            return None
        following.append(after)
    return tuple(following)


def _letters(tests: Sequence[Constraint]) -> list[str]:
    """List every letter that a test names or gives a meaning to.

    Of each gap between them there is one letter too.
    """
    named = {ord(letter) for one in tests for value in one.values for letter in str(value)}
    for one in tests:
        if one.test in wildcards.GRAMMARS:
            named.update(map(ord, "$" + wildcards.GRAMMARS[one.test].special))
    beside = {0, *(code + 1 for code in named)}
    return [chr(code) for code in sorted(named | beside) if code <= LAST_LETTER]


def _machine(constraint: Constraint) -> _Machine:
    test, text = constraint.test, str(constraint.value)
    if test in wildcards.GRAMMARS:
        levels = wildcards.levels_of(test, text) or ()
        return _Machine(
            start=wildcards.begin(),
            step=lambda at, letter: wildcards.advance(test, levels, at, letter),
            ends=lambda at: wildcards.ends(test, levels, at),
        )
    if test == "contains":
        return _Machine(
            start=0, step=lambda at, letter: _found(text, at, letter), ends=len(text).__eq__
        )
    if test == "prefix":
        return _Machine(
            start=0, step=lambda at, letter: _begun(text, at, letter), ends=len(text).__eq__
        )
    return _Machine(
        start=0,
        step=lambda at, letter: _compared(text, at, letter),
        ends=lambda at: _holds(test, text, at),
    )


def _found(piece: str, at: int, letter: str) -> int:
    """Count the letters of a piece that the text so far ends with; once whole, all of them."""
    if at == len(piece):
        return at
    seen = piece[:at] + letter
    return max(size for size in range(at + 2) if seen.endswith(piece[:size]))


def _begun(start: str, at: int, letter: str) -> int | None:
    if at == len(start):
        return at
    return at + 1 if start[at] == letter else None


def _compared(text: str, at: int, letter: str) -> int:
    """Count the letters shared so far with a text, or tell on which side of it this one lies."""
    if at < 0:
        return at
    if at == len(text):
        return _MORE
    if letter == text[at]:
        return at + 1
    return _LESS if letter < text[at] else _MORE


def _holds(test: str, text: str, at: int) -> bool:
    same = at == len(text)
    less = at == _LESS or 0 <= at < len(text)
    return {
        "below": less,
        "at_most": less or same,
        "above": not (less or same),
        "at_least": not less,
        "not": not same,
    }[test]
