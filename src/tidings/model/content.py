"""What a publisher publishes: events with their probabilities, and with them lifetimes and sizes.

Either a table of rows, which may hold any joint law of attributes, lifetime and size, or attributes
that are independent of each other. In a document::

    - {p: 0.7, event: {topic: stock, symbol: ACME, price: 12}}
    - {p: 0.3, event: {topic: stock, symbol: INIT, price: 40}, lifetime: 500ms, size: 64B}

or, where there is only one row, ``{event: {topic: stock}}``; or ::

    independent:
      topic: {stock: 0.7, fx: 0.3}
      note: {urgent: 0.1, null: 0.9}       # null: the share of events without a note
      level: [{p: 0.5, value: 1}, {p: 0.5, value: 2}]
    lifetime: 500ms
    size: 64B

Probabilities are kept exactly as given, never scaled. A row without a lifetime or a size has that
of its publisher or system.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tidings.errors import InvalidInputError, UnsupportedError
from tidings.model import records
from tidings.model.document import Name, Place
from tidings.model.events import (
    Event,
    Value,
    canonical_event,
    canonical_value,
    event_schema,
    read_attributes,
    read_event,
    read_value,
    value_key,
)
from tidings.model.laws import Law, law_document, law_schema, read_law

MOST_COMBINATIONS = 100_000
SUM_TOLERANCE = 1e-9  # probabilities written with ten digits may miss 1 by this much, no more

_ROW_FIELDS = ("p", "event", "lifetime", "size")


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentRow:
    """One event that may be published, how likely it is, how long it is of use, and how big.

    >>> row = ContentRow(probability=1.0, event={"topic": "stock", "price": 12.0})
    >>> row.text
    '{"price":12,"topic":"stock"}'
    """

    probability: float
    event: Event = field(compare=False)
    lifetime: Law | None = None
    size_bytes: float | None = None
    text: str = field(init=False, repr=False)  # the event in traces; also what makes rows equal

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", canonical_event(self.event))
        if not 0.0 < self.probability <= 1.0:
            raise InvalidInputError(
                f"the event {self.text} has probability {self.probability!r}; "
                "wants a share above 0 and at most 1"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentTable:
    """Content as a table: the joint law of attributes, lifetime and size."""

    table: tuple[ContentRow, ...]

    def __post_init__(self) -> None:
        _require_sum("a content table", [row.probability for row in self.table])

    @property
    def combinations(self) -> int:
        """How many rows there are."""
        return len(self.table)

    def rows(self) -> tuple[ContentRow, ...]:
        """List every event that may be published, with its probability."""
        return self.table


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributeLaw:
    """The values of one attribute (None: absent) and their probabilities, in the order given."""

    attribute: str
    values: tuple[Value | None, ...]
    probabilities: tuple[float, ...]
    # Python holds True == 1; the keys keep such laws apart.
    keys: tuple[tuple[int, Any], ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        values = tuple(None if one is None else canonical_value(one) for one in self.values)
        keys = tuple(value_key(value) for value in values)
        name = f"the attribute '{self.attribute}'"
        if len(self.values) != len(self.probabilities) or len(set(keys)) < len(keys):
            raise InvalidInputError(f"{name} wants distinct values, each with one probability")
        if not all(0.0 < share <= 1.0 for share in self.probabilities):
            raise InvalidInputError(f"{name} wants probabilities above 0 and at most 1")
        _require_sum(name, self.probabilities)
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "keys", keys)


@dataclass(frozen=True, slots=True, kw_only=True)
class IndependentContent:
    """Content whose attributes are independent of each other; one lifetime and size for all."""

    attributes: tuple[AttributeLaw, ...]
    lifetime: Law | None = None
    size_bytes: float | None = None

    @property
    def combinations(self) -> int:
        """How many different events there are, without making them.

        >>> coin = AttributeLaw(attribute="a", values=(0, 1), probabilities=(0.5, 0.5))
        >>> IndependentContent(attributes=(coin,)).combinations
        2
        """
        return math.prod(len(law.values) for law in self.attributes)

    def rows(self) -> tuple[ContentRow, ...]:
        """List every event that may be published, with its probability.

        It is the product of the probabilities of the event's attributes.
        """
        if self.combinations > MOST_COMBINATIONS:
            raise UnsupportedError(
                f"the {len(self.attributes)} independent attributes have "
                f"{self.combinations:,} combinations, more than the {MOST_COMBINATIONS:,} "
                "that can be listed; use fewer values, or list the events that matter "
                "with their probabilities"
            )
        names = [law.attribute for law in self.attributes]
        choices = [
            tuple(zip(law.values, law.probabilities, strict=True)) for law in self.attributes
        ]
        return tuple(
            ContentRow(
                probability=math.prod(share for _, share in choice),
                event=_event_of(names, [value for value, _ in choice]),
                lifetime=self.lifetime,
                size_bytes=self.size_bytes,
            )
            for choice in itertools.product(*choices)
        )


Content = ContentTable | IndependentContent


# ---- documents ---------------------------------------------------------------------------------


def read_content(place: Place) -> Content | None:
    """Read the content at a location of a document; give None after reporting every problem."""
    if isinstance(place.value, Mapping) and "independent" in place.value:
        return _read_independent(place)
    before = len(place.problems)
    only = isinstance(place.value, Mapping)
    if only:
        parts = [place]
    else:
        parts = list(place.items("a list of {p, event}, or {event: …}, or {independent: …}"))
        if isinstance(place.value, list | tuple) and not parts:
            place.report("at least one event")
    read = [_read_row(part, only=only) for part in parts]
    rows = [row for _, row in read]
    _report_repetitions(parts, rows)
    _report_sum(place, [share for share, _ in read])
    if len(place.problems) > before:
        return None
    return ContentTable(table=tuple(row for row in rows if row is not None))


def content_document(content: Content) -> dict[str, Any] | list[dict[str, Any]]:
    """Write content as the one document that :func:`read_content` reads back; fit for JSON too.

    >>> content_document(ContentTable(table=(ContentRow(probability=1.0, event={"a": 1.0}),)))
    {'event': {'a': 1}}
    """
    if isinstance(content, ContentTable):
        documents = [_row_document(row) for row in content.table]
        single = len(documents) == 1 and documents[0]["p"] == 1.0
        return {k: v for k, v in documents[0].items() if k != "p"} if single else documents
    laws = {law.attribute: _attribute_document(law) for law in content.attributes}
    return {"independent": laws} | _extras_document(content)


def content_schema() -> dict[str, Any]:
    """Make the JSON Schema of a publisher's content; complete in itself."""
    share = {"type": "number", "exclusiveMinimum": 0, "maximum": 1}
    extras = {"lifetime": law_schema(), "size": records.SIZE.schema()}
    closed = {"type": "object", "additionalProperties": False}
    row = closed | {"properties": {"p": share, "event": event_schema(), **extras}}
    value = {"type": ["string", "number", "boolean", "null"]}
    listed = closed | {"properties": {"p": share, "value": value}, "required": ["p", "value"]}
    law = {
        "anyOf": [
            {"type": "object", "additionalProperties": share, "minProperties": 1},
            {"type": "array", "items": listed, "minItems": 1},
        ]
    }
    independent = {
        "type": "object",
        "additionalProperties": law,
        "propertyNames": {"minLength": 1},
        "minProperties": 1,
    }
    return {
        "anyOf": [
            row | {"required": ["event"]},
            {"type": "array", "items": row | {"required": ["p", "event"]}, "minItems": 1},
            closed
            | {"properties": {"independent": independent, **extras}}
            | {"required": ["independent"]},
        ]
    }


def _read_row(place: Place, *, only: bool) -> tuple[float | None, ContentRow | None]:
    """Read the probability of one row, and the row.

    A row that stands alone, not in a list, needs no probability.
    """
    parts = place.mapping(_ROW_FIELDS, "a mapping such as {p: 0.5, event: {topic: stock}}")
    if not isinstance(place.value, Mapping):
        return None, None
    lifetime, size_bytes = _read_extras(parts)
    share: float | None = 1.0 if only else None
    if "p" in parts:
        share = parts["p"].share(positive=True)
    elif not only:
        place.report("the field 'p' (the probability of this event)", saw="none")
    event = None
    if "event" in parts:
        event = read_event(parts["event"])
    else:
        place.report("the field 'event' (attributes and their values)", saw="none")
    if share is None or event is None:
        return share, None
    row = ContentRow(probability=share, event=event, lifetime=lifetime, size_bytes=size_bytes)
    return share, row


def _read_extras(parts: Mapping[str, Place]) -> tuple[Law | None, float | None]:
    """Read lifetime (distribution, in seconds) and size (in bytes), if given and not null."""
    given = {name: part for name, part in parts.items() if part.value is not None}
    lifetime = read_law(given["lifetime"]) if "lifetime" in given else None
    size_bytes = records.SIZE.read(given["size"]) if "size" in given else None
    return lifetime, size_bytes


def _read_independent(place: Place) -> IndependentContent | None:
    before = len(place.problems)
    parts = place.mapping(("independent", "lifetime", "size"))
    lifetime, size_bytes = _read_extras(parts)
    attributes = read_attributes(parts["independent"])
    if parts["independent"].value == {}:
        parts["independent"].report("at least one attribute")
    laws = [_read_attribute(name, part) for name, part in sorted(attributes.items())]
    if len(place.problems) > before:
        return None
    kept = tuple(law for law in laws if law is not None)
    return IndependentContent(attributes=kept, lifetime=lifetime, size_bytes=size_bytes)


def _read_attribute(name: str, place: Place) -> AttributeLaw | None:
    """Read an attribute's distribution from ``{value: p}`` or from a list of ``{p, value}``."""
    before = len(place.problems)
    values: list[Value | None] = []
    shares: list[float | None] = []
    seen = set()
    for value_place, share_place in _value_shares(place):
        shares.append(None if share_place is None else share_place.share(positive=True))
        if value_place is None:
            continue
        value = None if value_place.value is None else read_value(value_place)
        if value is None and value_place.value is not None:
            continue
        if value_key(value) in seen:
            value_place.report("each value once")
        seen.add(value_key(value))
        values.append(value)
    _report_sum(place, shares)
    if len(place.problems) > before:
        return None
    known = tuple(share for share in shares if share is not None)
    return AttributeLaw(attribute=name, values=tuple(values), probabilities=known)


def _value_shares(place: Place) -> Iterable[tuple[Place | None, Place | None]]:
    """Yield the locations of each value and of its probability.

    In JSON only lists can hold any kind of value.
    """
    want = "a mapping {value: probability}, or a list of {p, value}"
    if not isinstance(place.value, Mapping):
        for part in place.items(want):
            fields = part.mapping(("p", "value"), "a mapping such as {p: 0.5, value: 12}")
            for name in ("p", "value"):
                if name not in fields and isinstance(part.value, Mapping):
                    part.report(f"the field '{name}'", saw="none")
            yield fields.get("value"), fields.get("p")
    else:
        for key, share in place.value.items():
            value = key.as_value if isinstance(key, Name) else key
            name = "null" if key is None else str(key)
            yield place.child(name, value), place.child(name, share)
    if isinstance(place.value, Mapping | list | tuple) and not place.value:
        place.report("at least one value")


def _report_repetitions(places: Sequence[Place], rows: Sequence[ContentRow | None]) -> None:
    """Note rows that say again what an earlier row said: they should be one row."""
    first: dict[tuple[str, Law | None, float | None], Place] = {}
    for place, row in zip(places, rows, strict=True):
        if row is None:
            continue
        key = (row.text, row.lifetime, row.size_bytes)
        if key in first:
            place.report(
                "each event once for each lifetime and size",
                saw=f"the event of {first[key]} again",
                fix="add their probabilities in one row",
            )
        first.setdefault(key, place)


def _report_sum(place: Place, shares: Sequence[float | None]) -> None:
    """Note a wrong sum, whatever else is wrong; where a share is unknown, so is the sum."""
    total = math.fsum(share for share in shares if share is not None)
    if shares and None not in shares and abs(total - 1.0) > SUM_TOLERANCE:
        place.report("probabilities that sum to 1", saw=f"a sum of {total!r}")


def _require_sum(what: str, shares: Iterable[float]) -> None:
    total = math.fsum(shares)
    if not abs(total - 1.0) <= SUM_TOLERANCE:
        raise InvalidInputError(f"the probabilities of {what} sum to {total!r}; wants 1")


def _event_of(names: Sequence[str], values: Sequence[Value | None]) -> dict[str, Value]:
    pairs = zip(names, values, strict=True)
    return {name: value for name, value in pairs if value is not None}


def _row_document(row: ContentRow) -> dict[str, Any]:
    event = {name: canonical_value(value) for name, value in sorted(row.event.items())}
    return {"p": row.probability, "event": event} | _extras_document(row)


def _extras_document(holder: ContentRow | IndependentContent) -> dict[str, Any]:
    extras: dict[str, Any] = {}
    if holder.lifetime is not None:
        extras["lifetime"] = law_document(holder.lifetime)
    if holder.size_bytes is not None:
        extras["size"] = holder.size_bytes
    return extras


def _attribute_document(law: AttributeLaw) -> object:
    """Write an attribute's distribution as a mapping if all values are texts, else as a list.

    JSON names are texts only.
    """
    pairs = list(zip(law.values, law.probabilities, strict=True))
    if all(isinstance(value, str) for value in law.values):
        return dict(pairs)
    return [{"p": share, "value": value} for value, share in pairs]
