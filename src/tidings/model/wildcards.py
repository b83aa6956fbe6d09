r"""Patterns of subjects and topics with wildcards, by the rules of NATS and MQTT.

==========  ===========  ========================================================================
test        levels       wildcards, each a level of its own
==========  ===========  ========================================================================
``nats``    parted by    ``*`` one level; ``>`` at the end one or more. No level is empty, none
            ``.``        holds white space
``mqtt``    parted by    ``+`` one level, also an empty one; ``#`` at the end none or more, so that
            ``/``        ``a/#`` wants ``a``. In the first level neither stands for a topic that
                         begins with ``$``
==========  ===========  ========================================================================

``$share/GROUP/FILTER`` of MQTT wants what FILTER wants. A text that nobody can publish to passes no
pattern: with an empty level or a wildcard for a level (NATS), with ``+``, ``#`` or ``\0`` anywhere
(MQTT), or empty.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, get_args

WildTest = Literal["nats", "mqtt"]
WILD_TESTS: tuple[WildTest, ...] = get_args(WildTest)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grammar:
    """How a broker writes levels and wildcards, and what no topic may hold."""

    broker: str
    separator: str
    one: str  # the level that stands for any one
    rest: str  # the last level that stands for all the others
    barred: str  # letters that are in no topic
    level: str  # any level of a topic, as a regular expression
    rule: str  # as errors tell it

    @property
    def special(self) -> str:
        """Every letter that has a meaning."""
        return self.separator + self.one + self.rest + self.barred


_WHITE = "\t\n\f\r "
GRAMMARS: dict[str, Grammar] = {
    "nats": Grammar(
        broker="NATS",
        separator=".",
        one="*",
        rest=">",
        barred=_WHITE,
        level=rf"(?![*>](?:\.|\Z))[^.{_WHITE}]+",
        rule="tokens separated by '.', none of them empty or with white space; '*' stands for one "
        "token and '>', the last, for one or more",
    ),
    "mqtt": Grammar(
        broker="MQTT",
        separator="/",
        one="+",
        rest="#",
        barred="+#\0",
        level=r"[^/+#\0]*",
        rule="levels separated by '/'; '+' stands for one level and '#', the last, for any number",
    ),
}
_SHARED = "$share"
_RULE_OF_SHARED = "$share/GROUP/FILTER, with a group without '+' and '#', and a filter"


@dataclass(frozen=True, slots=True, kw_only=True)
class BadPattern:
    """What a broker refuses in a pattern."""

    want: str
    fix: str = ""


def bad_pattern(test: str, pattern: str) -> BadPattern | None:
    """Say why a pattern is none of its broker's; None: it is one.

    >>> bad_pattern("nats", "orders.>.eu").fix
    "'>' is not the last token"
    >>> bad_pattern("mqtt", "sensors/+/temp") is None
    True
    """
    grammar = GRAMMARS[test]
    levels = levels_of(test, pattern)
    if levels is None:
        return BadPattern(want=_RULE_OF_SHARED)
    fix = _fault(grammar, levels)
    return None if fix is None else BadPattern(want=f"{grammar.broker}: {grammar.rule}", fix=fix)


def _fault(grammar: Grammar, levels: tuple[str, ...]) -> str | None:
    name = "token" if grammar.broker == "NATS" else "level"
    wild = (grammar.one, grammar.rest)
    if levels == ("",):
        return "it is empty"
    if grammar.rest in levels[:-1]:
        return f"'{grammar.rest}' is not the last {name}"
    for number, level in enumerate(levels, 1):
        if level in wild:
            continue
        if mark := next((each for each in wild if each in level), None):
            return f"'{mark}' stands for a {name} only where it is a whole {name}, not in '{level}'"
        if grammar.broker == "NATS" and not level:
            return f"token {number} is empty"
        if any(letter in level for letter in grammar.barred):
            return f"no {grammar.broker} topic holds {level!r}"
    return None


@lru_cache(maxsize=4096)
def levels_of(test: str, pattern: str) -> tuple[str, ...] | None:
    """Split a pattern into its levels, without ``$share/GROUP``; None where that is not whole.

    >>> levels_of("mqtt", "$share/readers/sensors/#")
    ('sensors', '#')
    """
    levels = tuple(pattern.split(GRAMMARS[test].separator))
    if test == "nats" or levels[0] != _SHARED:
        return levels
    group, rest = levels[1:2], levels[2:]
    whole = len(rest) > 0 and rest != ("",) and not set(group[0]) & {*"+#"} and group[0] != ""
    return rest if whole else None


@lru_cache(maxsize=4096)
def expression(test: str, pattern: str) -> re.Pattern[str]:
    """Make the regular expression that the whole of a topic must match.

    >>> bool(expression("nats", "orders.*").fullmatch("orders.eu"))
    True
    """
    grammar, levels = GRAMMARS[test], levels_of(test, pattern) or ()
    separator = re.escape(grammar.separator)
    parts = [grammar.level if level == grammar.one else re.escape(level) for level in levels]
    if levels[-1] == grammar.rest:
        further = f"(?:{separator}{grammar.level})*"
        if test == "nats" or len(levels) == 1:
            parts[-1] = grammar.level + further
        else:
            parts[-2:] = [parts[-2] + further]
    begins_wild = levels[0] in (grammar.one, grammar.rest)
    start = r"(?!\$)" if test == "mqtt" and begins_wild else ""
    return re.compile(r"(?!\Z)" + start + separator.join(parts))


def stem(test: str, pattern: str) -> str:
    """Give the letters with which every topic of a pattern begins.

    >>> stem("nats", "orders.eu.>"), stem("mqtt", "a/#"), stem("mqtt", "a/b/+")
    ('orders.eu.', 'a', 'a/b/')
    """
    grammar, levels = GRAMMARS[test], levels_of(test, pattern) or ()
    fixed = 0
    while fixed < len(levels) and levels[fixed] not in (grammar.one, grammar.rest):
        fixed += 1
    text = grammar.separator.join(levels[:fixed])
    optional = test == "mqtt" and levels[fixed : fixed + 1] == (grammar.rest,)
    return text if fixed in (0, len(levels)) or optional else text + grammar.separator


def pattern_covers(test: str, wide: str, narrow: str) -> bool:
    """Test whether every topic that ``narrow`` wants is wanted by ``wide``; exact.

    They are compared level by level.

    >>> pattern_covers("mqtt", "a/#", "a"), pattern_covers("nats", "a.>", "a")
    (True, False)
    """
    grammar = GRAMMARS[test]
    over, under = levels_of(test, wide) or (), levels_of(test, narrow) or ()
    if test == "mqtt":
        if under[0].startswith("$") and over[0] in (grammar.one, grammar.rest):
            return False
        if under in {("#",), ("", "#")}:  # no topic is empty: there is one more level
            under = (*under[:-1], "+", "#")
    for place, level in enumerate(over):
        if level == grammar.rest:
            return test == "mqtt" or len(under) > place
        if place == len(under) or under[place] == grammar.rest:
            return False
        if level not in (grammar.one, under[place]):
            return False
    return len(over) == len(under)


def pattern_schema(test: str) -> dict[str, str]:
    """Give the JSON Schema of a pattern."""
    end = r"(?![\s\S])"  # '$' would let a line feed follow in some languages
    if test == "nats":
        token = rf"[^.*>{_WHITE}]+"
        pattern = rf"^(?:(?:\*|{token})\.)*(?:\*|>|{token}){end}"
    else:
        level = r"(?:\+|[^/+#\u0000]*)"
        shared = rf"(?:(?!\$share(?:/|{end}))|\$share/[^/+#\u0000]+/)(?!{end})"
        pattern = rf"^{shared}(?:{level}/)*(?:#|{level}){end}"
    return {"type": "string", "pattern": pattern}


# ---- letter by letter --------------------------------------------------------------------------

Progress = tuple[int, int]  # the level of the pattern, and how far a topic is in it


def begin() -> Progress:
    """Give the position where every topic begins."""
    return 0, 0


def advance(test: str, levels: tuple[str, ...], at: Progress, letter: str) -> Progress | None:
    """Go on by one letter of a topic; None: no topic of the pattern goes on so.

    How far: in a fixed level its letters so far; under a wildcard of NATS 0 at the beginning, 1
    after a letter that alone would be a wildcard, else 2; under one of MQTT 0 only where the whole
    topic begins.
    """
    grammar = GRAMMARS[test]
    number, done = at
    level = levels[number]
    if letter in grammar.barred:
        return None
    if letter == grammar.separator:
        if not _is_whole(test, level, done):
            return None
        if level == grammar.rest:
            return number, 0 if test == "nats" else 1
        return (number + 1, 0) if number + 1 < len(levels) else None
    if level not in (grammar.one, grammar.rest):
        return (number, done + 1) if level[done : done + 1] == letter else None
    if test == "mqtt":
        return None if at == (0, 0) and letter == "$" else (number, 1)
    return number, 1 if done == 0 and letter in (grammar.one, grammar.rest) else 2


def ends(test: str, levels: tuple[str, ...], at: Progress) -> bool:
    """Test whether a topic that is at this position may end here."""
    number, done = at
    if at == (0, 0) or not _is_whole(test, levels[number], done):
        return False
    left = levels[number + 1 :]
    return left == () or (test == "mqtt" and left == (GRAMMARS[test].rest,))


def _is_whole(test: str, level: str, done: int) -> bool:
    grammar = GRAMMARS[test]
    if level in (grammar.one, grammar.rest):
        return test == "mqtt" or done == 2
    return done == len(level)
