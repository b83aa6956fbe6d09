"""Reading a document so that every problem is found, each with its place.

A :class:`Place` is a value together with where it stands (``brokers.east.service``, line 12).
Asking it for a number, a time or a list either gives one or notes a problem and gives None, and
reading goes on. Whoever began the reading looks at ``problems`` at the end. Where a text or table
holds something that is no value at all, :class:`Unreadable` stands for it and says what is wrong.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from tidings.errors import Problem
from tidings.model import units

Key = str | int
_LEAST_PERCENT = 2.0  # a share of 1.2 may be any slip
MOST_WHOLE = 10**12  # more of anything cannot be meant, and sums must stay exact in a float

_NO_NAMES: Mapping[str, str] = MappingProxyType({})
_NO_LIMIT = ("-1", "unlimited", "none", "inf", "infinite", "infinity", ".inf", "no limit", "off")

_QUANTITY = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>[a-zA-Z]+|%)")
_UNITS_MEANT = {  # as others write units, without the s at the end
    "usec": "us",
    "microsecond": "us",
    "msec": "ms",
    "milli": "ms",
    "millisecond": "ms",
    "sec": "s",
    "second": "s",
    "m": "min or {number}ms",  # minutes or thousandths?
    "min": "min",
    "minute": "min",
    "hr": "h",
    "hour": "h",
    "day": "d",
}


class Name(str):
    """A name in a document that remembers what it would be as a value: ``12`` also as a number.

    Names of things are texts, whatever they look like; but where a mapping goes from values to
    probabilities, its names are values.
    """

    __slots__ = ("as_value",)
    as_value: Any

    def __new__(cls, text: str, as_value: Any) -> Name:
        """Make a name that also holds the value it would be."""
        name = super().__new__(cls, text)
        name.as_value = as_value
        return name


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """Stands where no value could be made out; whoever asks for one reports why."""

    problem: Problem


Path = tuple[Key, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """A value of a document and where it stands; ``problems`` is shared by the whole reading.

    ``lines`` and ``files`` know where some values stand; what is inside them stands there too.
    """

    value: Any
    path: Path = ()
    problems: list[Problem] = field(default_factory=list)
    lines: Mapping[Path, int] = field(default_factory=dict)
    files: Mapping[Path, str] = field(default_factory=dict)

    def __str__(self) -> str:
        text = ""
        for key in self.path:
            text += f"[{key + 1}]" if isinstance(key, int) else f".{key}" if text else str(key)
        return text or "the document"

    @property
    def line(self) -> int | None:
        """The line it stands in, or that of the nearest thing around it that has one."""
        return self._file_and_line()[1]

    def _file_and_line(self) -> tuple[str, int | None]:
        line = None
        for length in range(len(self.path), -1, -1):
            around = self.path[:length]
            line = self.lines.get(around) if line is None else line
            if around in self.files:  # lines further out are those of another file
                return self.files[around], line
        return "", line

    def report(self, want: str, *, saw: str | None = None, fix: str = "") -> None:
        """Note a problem here; of what is :class:`Unreadable`, only that it is."""
        if isinstance(self.value, Unreadable):
            self.problems.append(self.value.problem)
            return
        seen = describe(self.value) if saw is None else saw
        file, line = self._file_and_line()
        self.problems.append(
            Problem(at=str(self), saw=seen, want=want, fix=fix, line=line, file=file)
        )

    def child(self, key: Key, value: Any) -> Place:
        """Give the location of a part of this value."""
        return Place(value, (*self.path, key), self.problems, self.lines, self.files)

    def inside(self, *path: Key) -> Place:
        """Find the location of a nested part and the value there; None where there is none."""
        value = self.value
        for key in path:
            try:
                value = value[key]
            except (KeyError, IndexError, TypeError):
                value = None
        return Place(value, (*self.path, *path), self.problems, self.lines, self.files)

    def instead(self, value: Any) -> Place:
        """Give the same location with another value, such as what a shorthand stands for."""
        return Place(value, self.path, self.problems, self.lines, self.files)

    # ---- what a value can be asked for ---------------------------------------------------------

    def mapping(
        self,
        known: Sequence[str] | None = None,
        want: str = "",
        also: Mapping[str, str] = _NO_NAMES,
    ) -> dict[str, Place]:
        """Give the parts by name; report anything but a mapping, and unknown names.

        ``also`` says what others' names for some of the known are.
        """
        if not isinstance(self.value, Mapping):
            self.report(want or "a mapping (name: value)")
            return {}
        parts = {str(key): self.child(str(key), value) for key, value in self.value.items()}
        if known is not None:
            for name in [name for name in parts if name not in known]:
                part = parts.pop(name)
                part.report(
                    f"one of the fields {', '.join(known)}",
                    saw=f"the unknown field '{name}'",
                    fix=_meant_field(name, part.value, known, also),
                )
        return parts

    def items(self, want: str = "a list") -> Iterator[Place]:
        """Yield the parts in order; report anything but a list."""
        if not isinstance(self.value, list | tuple):
            self.report(want)
            return
        for index, value in enumerate(self.value):
            yield self.child(index, value)

    def text(self, want: str = "a text") -> str | None:
        """Read a text that is not empty.

        Numbers are not silently turned into one, for 1.0 and 1 would be two texts.
        """
        if isinstance(self.value, str) and self.value:
            return self.value
        quotable = isinstance(self.value, int | float)
        self.report(want, fix=f"put it in quotes: '{describe(self.value)}'" if quotable else "")
        return None

    def flag(self) -> bool | None:
        """Read true or false."""
        if isinstance(self.value, bool):
            return self.value
        self.report("true or false")
        return None

    def choice(self, options: Sequence[str], meant: Mapping[str, str] = _NO_NAMES) -> str | None:
        """Read one of a few words; ``meant`` says what to write for others, in small letters."""
        if isinstance(self.value, str) and self.value in options:
            return self.value
        fix = meant.get(_plain_word(str(self.value))) or meant_name(self.value, options)
        self.report(f"one of {', '.join(options)}", fix=fix)
        return None

    def whole(
        self, minimum: int = 0, most: int = MOST_WHOLE, meant: Mapping[str, str] = _NO_NAMES
    ) -> int | None:
        """Read a whole number, at from ``minimum`` to ``most``; ``meant`` as in :meth:`choice`."""
        value = self.value
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        if is_whole and minimum <= value <= most:
            return int(value)
        too_large = is_whole and value > most
        limit = f"at most {most:,}" if too_large else f"{minimum} or more"
        fix = meant.get(_plain_word(value), "") if isinstance(value, str) else ""
        self.report(f"a whole number, {limit}", fix=fix)
        return None

    def limit(self, minimum: int) -> int | None:
        """Read a whole number that is a limit; say what to write instead of a word for none."""
        value = self.value
        none = str(value).strip().lower() in _NO_LIMIT or (value == 0 and minimum > 0)
        if none and not isinstance(value, bool):
            fix = "for no limit, leave it out" if minimum else "for no limit, write 0"
            self.report(f"a whole number, {minimum} or more", fix=fix)
            return None
        return self.whole(minimum)

    def number(
        self,
        want: str = "a number",
        *,
        above: float | None = None,
        least: float | None = None,
        most: float | None = None,
        of: Mapping[str, float] | None = None,
    ) -> float | None:
        """Read a finite number within limits.

        With ``of`` it may be a quantity in those units (:mod:`units`).
        """
        value = self.value
        if isinstance(value, str) and of is not None:
            value = units.parse(value, dict(of))
        number = _finite(value)
        fits = (
            number is not None
            and (above is None or number > above)
            and (least is None or number >= least)
            and (most is None or number <= most)
        )
        if not fits:
            self.report(want, fix=meant_number(self.value, of or {}, most))
        return number if fits else None

    def seconds(self, *, positive: bool = False) -> float | None:
        """Read a time, in seconds: a number, or a text such as ``250ms``."""
        limit = "above 0" if positive else "0 or more"
        want = f"a time, {limit}, such as 250ms or 0.25"
        if positive:
            return self.number(want, above=0.0, of=units.SECONDS)
        return self.number(want, least=0.0, of=units.SECONDS)

    def share(self, *, positive: bool = False) -> float | None:
        """Read a probability."""
        if positive:
            return self.number("a share above 0 and at most 1", above=0.0, most=1.0)
        return self.number("a share from 0 to 1", least=0.0, most=1.0)


def meant_name(name: Any, known: Sequence[str]) -> str:
    """Guess which of the known names was meant, as a question; empty where none is close.

    >>> meant_name("wset", ["hub", "east", "west"]), meant_name("moon", ["hub", "east", "west"])
    ("did you mean 'west'?", '')
    """
    close = difflib.get_close_matches(str(name), known, n=1)
    return f"did you mean '{close[0]}'?" if close else ""


def _meant_field(
    name: str, value: Any, known: Sequence[str], also: Mapping[str, str] = _NO_NAMES
) -> str:
    """Guess which field was meant, as a question.

    >>> _meant_field("rate", "100/s", ["at", "every", "content"])
    'did you mean every: {rate: 100/s}?'
    >>> _meant_field("loss", "0.1%", ["between", "reliability"])
    'did you mean reliability: 0.999? It is the share that gets through'
    >>> _meant_field("topic", "news", ["at", "every", "content"])
    "did you mean 'content'? A topic is part of what is published: content: {event: {topic: …}}"
    """
    plain = isinstance(value, int | float | str)
    if name == "rate" and "every" in known:
        return f"did you mean every: {{rate: {value if plain else '5/s'}}}?"
    if name == "mean" and "exponential" in known:
        return f"a mean needs a family, such as exponential: {value if plain else '250ms'}"
    if name == "loss" and "reliability" in known:
        lost = units.parse(str(value), {"%": 0.01})
        meant = "" if lost is None or not 0.0 <= lost <= 1.0 else f": {1.0 - lost:.12g}"
        return f"did you mean reliability{meant}? It is the share that gets through"
    if name == "topic" and "content" in known:
        where = "content: {event: {topic: …}}"
        return f"did you mean 'content'? A topic is part of what is published: {where}"
    word = _plain_word(name).replace(" ", "_")
    return f"did you mean '{also[word]}'?" if word in also else meant_name(name, known)


def _plain_word(text: str) -> str:
    """Write a name in small letters, with spaces between its words.

    >>> _plain_word("MaxAckPending"), _plain_word("x-max-length"), _plain_word("Key_Shared")
    ('max ack pending', 'x max length', 'key shared')
    """
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text)
    return re.sub(r"[-_.\s]+", " ", apart).strip().lower()


def meant_number(value: Any, of: Mapping[str, float], most: float | None) -> str:
    """Guess which number was meant, as a question.

    >>> meant_number("10m", units.SECONDS, None), meant_number("1.5 hours", units.SECONDS, None)
    ('did you mean 10min or 10ms?', 'did you mean 1.5h?')
    >>> meant_number("99.5%", {}, 1.0), meant_number(99.5, {}, 1.0), meant_number(1.2, {}, 1.0)
    ('did you mean 0.995?', 'did you mean 0.995?', '')
    """
    percent = _finite(value) if most == 1.0 else None
    if percent is not None and percent < _LEAST_PERCENT:
        return ""
    text = _QUANTITY.fullmatch(value.strip()) if isinstance(value, str) else None
    if text is not None and text["unit"] == "%":
        percent = float(text["number"])
    if percent is not None:
        return f"did you mean {percent / 100:.12g}?" if percent <= 100.0 else ""
    unit = _UNITS_MEANT.get(text["unit"].lower().rstrip("s")) if text and "min" in of else None
    if text is None or unit is None:
        return ""
    return f"did you mean {text['number']}{unit.format(number=text['number'])}?"


def _finite(value: Any) -> float | None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number + 0.0 if math.isfinite(number) else None  # −0 becomes 0


def describe(value: Any) -> str:
    """Describe a value for an error message: short, and telling texts from numbers.

    >>> describe("12"), describe(12), describe(None), describe({"a": 1})
    ("'12'", '12', 'nothing', 'a mapping with a')
    """
    if value is None:
        return "nothing"
    if isinstance(value, Mapping):
        return f"a mapping with {shorten(', '.join(str(key) for key in value))}" if value else "{}"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    if isinstance(value, bool):
        return "true" if value else "false"
    return shorten(repr(value))


def shorten(text: str, limit: int = 60) -> str:
    """Shorten a text for an error message to at most ``limit`` characters."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
