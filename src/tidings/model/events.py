"""What an event says: attributes with values, and the one text that stands for an event in traces.

A value is a text, a number or a flag: three kinds that are never equal to each other and never
ordered against each other. Numbers compare by value whether whole or not (1 equals 1.0), texts by
code point. An attribute that is absent is null; None as a value means the same.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, Literal, TypeGuard

from tidings.errors import InvalidInputError
from tidings.model import json_text
from tidings.model.document import Place, describe

Value = str | int | float | bool
Event = Mapping[str, Value]
ValueKind = Literal["absent", "flag", "number", "text"]

VALUE_KINDS: tuple[ValueKind, ...] = ("absent", "flag", "number", "text")
VALUE_SCHEMA: dict[str, Any] = {"type": ["string", "number", "boolean"]}

_WANT_VALUE = "a text, a finite number, or true or false"
_RANK = {kind: rank for rank, kind in enumerate(VALUE_KINDS)}
# From here on whole numbers are written as floats are: below, every float that is whole is exact.
_EXACT_BELOW = 2**53


def value_kind(value: Value | None) -> ValueKind:
    """Find the kind of a value; a flag is not a number.

    >>> value_kind(1), value_kind(1.5), value_kind(True), value_kind("1"), value_kind(None)
    ('number', 'number', 'flag', 'text', 'absent')
    """
    if isinstance(value, str):
        return "text"
    if isinstance(value, bool):
        return "flag"
    if isinstance(value, int | float) and value == value:  # NaN differs from itself
        return "number"
    if value is None:
        return "absent"
    raise InvalidInputError(f"an event has the value {describe(value)}; wants {_WANT_VALUE}")


def value_key(value: Value | None) -> tuple[int, Any]:
    """Make a key that sorts values of all kinds and tells 1 from true, equal in Python."""
    return _RANK[value_kind(value)], value


def canonical_value(value: Value) -> Value:
    """Convert a value to its one form: equal numbers become the same object type and text.

    >>> canonical_value(12.0), canonical_value(-0.0), canonical_value(0.1), canonical_value(True)
    (12, 0, 0.1, True)
    """
    if value_kind(value) != "number" or isinstance(value, str):
        return value
    if abs(value) < _EXACT_BELOW:
        return int(value) if value == int(value) else float(value)
    try:
        as_float = float(value)
    except OverflowError:
        return int(value)
    return as_float if as_float == value else int(value)


_ENCODER = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
)


def canonical_event(event: Mapping[str, Value | None]) -> str:
    """Write an event as one line of JSON; texts are equal just where events are.

    Names are sorted, nothing is spaced, absent attributes are left out, non-ASCII text stays as it
    is, and a number has one spelling.

    >>> canonical_event({"topic": "stock", "price": 12.0, "venue": "Zürich", "note": None})
    '{"price":12,"topic":"stock","venue":"Zürich"}'
    """
    known = {name: canonical_value(value) for name, value in event.items() if value is not None}
    try:
        return _ENCODER.encode(known)
    except ValueError as problem:
        raise InvalidInputError(f"an event holds a number that is not finite: {known}") from problem


def parse_event(text: str) -> dict[str, Value]:
    """Parse the event that a line of JSON stands for; the inverse of :func:`canonical_event`.

    >>> parse_event('{"price":12,"topic":"stock"}')
    {'price': 12, 'topic': 'stock'}
    """
    try:
        place = Place(json_text.parse(text))
    except ValueError as problem:
        raise InvalidInputError(
            f'not an event: {describe(text)}; wants one line of JSON such as {{"topic":"stock"}}'
        ) from problem
    event = read_event(place)
    if event is None:
        raise InvalidInputError(f"not an event: {describe(text)}", place.problems)
    return event


def read_value(place: Place) -> Value | None:
    """Read one value of a document in its canonical form; give None after reporting a problem."""
    value = place.value
    if isinstance(value, str):
        if _is_encodable(value):
            return value
        place.report("valid Unicode text", fix="it contains half of a surrogate pair")
        return None
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float) and _fits_float(value):
        return canonical_value(value)
    quote = "" if isinstance(value, Mapping | list | tuple | int | float) else "quote a text"
    place.report(_WANT_VALUE, fix=quote)
    return None


def read_event(place: Place) -> dict[str, Value] | None:
    """Read an event of a document; sort its names and leave out attributes that are null.

    >>> read_event(Place({"topic": "stock", "price": 12.0, "note": None}))
    {'price': 12, 'topic': 'stock'}
    """
    before = len(place.problems)
    event: dict[str, Value] = {}
    for name, part in read_attributes(place).items():
        if part.value is None:
            continue
        value = read_value(part)
        if value is not None:
            event[name] = value
    return dict(sorted(event.items())) if len(place.problems) == before else None


def read_attributes(place: Place) -> dict[str, Place]:
    """Read the parts of a mapping by attribute; names must be texts, and not empty."""
    if not isinstance(place.value, Mapping):
        place.report("a mapping (attribute: value)")
        return {}
    parts = {}
    for name, value in place.value.items():
        if isinstance(name, str) and name and _is_encodable(name):
            parts[str(name)] = place.child(str(name), value)
        else:
            place.child(str(name), value).report(
                "the name of an attribute, a text", saw=f"the name {describe(name)}", fix="quote it"
            )
    return parts


def event_schema() -> dict[str, Any]:
    """Make the JSON Schema of an event."""
    value = {"type": ["string", "number", "boolean", "null"]}
    return {"type": "object", "additionalProperties": value, "propertyNames": {"minLength": 1}}


def _fits_float(value: float) -> TypeGuard[float]:
    try:
        return math.isfinite(float(value))
    except OverflowError:
        return False


def _is_encodable(text: str) -> bool:
    return not any("\ud800" <= letter <= "\udfff" for letter in text)
