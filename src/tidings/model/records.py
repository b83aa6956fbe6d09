"""Records that read, write and describe themselves from one declaration.

A field of a record says once what kind of value it holds, what it means and what it is when left
out. From that come the reader (which finds every problem), the canonical writer, the JSON Schema
and the reference table in the documentation, so that none of them can drift from another.
"""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from tidings.model import units
from tidings.model.arrays import Ints
from tidings.model.document import MOST_WHOLE, Place
from tidings.model.record_tables import RecordTable

REQUIRED = dataclasses.MISSING


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """How one kind of value is read (None after a noted problem), written, and put in a schema."""

    label: str
    read: Callable[[Place], Any]
    schema: Callable[[], dict[str, Any]]
    write: Callable[[Any], Any] = lambda value: value


def spec(
    kind: Kind,
    meaning: str,
    *,
    default: Any = REQUIRED,
    key: str = "",
    aka: tuple[str, ...] = (),
) -> Any:
    """Make a dataclass field that belongs to the document: its kind, its meaning, its default.

    ``aka`` is what brokers call the same: the problem then names the field.
    """
    metadata = {"kind": kind, "doc": meaning, "key": key, "aka": aka}
    return dataclasses.field(default=default, metadata=metadata)


@functools.cache
def document_fields(record: type) -> dict[str, dataclasses.Field[Any]]:
    """Give the fields of a record that stand in its document, by the name they have there."""
    return {
        field.metadata["key"] or field.name: field
        for field in dataclasses.fields(record)
        if "kind" in field.metadata
    }


def read_fields(record: type, place: Place) -> dict[str, Any]:
    """Read what a mapping gives for a record's fields; None for one that is wrong (reported)."""
    fields = document_fields(record)
    also = {other: key for key, field in fields.items() for other in field.metadata["aka"]}
    parts = place.mapping(list(fields), also=also)
    values: dict[str, Any] = {}
    for key, field in fields.items():
        part = parts.get(key)
        if part is None or (part.value is None and field.default is None):
            if field.default is REQUIRED and isinstance(place.value, Mapping):
                place.report(f"the field '{key}' ({field.metadata['doc']})", saw="none")
            continue
        values[field.name] = field.metadata["kind"].read(part)
    return values


def given(place: Place) -> set[str]:
    """List the fields that a mapping says something about, right or wrong; null says nothing.

    What must hold between fields is asked of these, so that one wrong field does not hide it.
    """
    parts = place.value if isinstance(place.value, Mapping) else {}
    return {str(name) for name, value in parts.items() if value is not None}


def read_record(record: type, place: Place, **given: Any) -> Any:
    """Read a record from a mapping; None when something was wrong (noted at its place)."""
    before = len(place.problems)
    values = read_fields(record, place)
    return record(**given, **values) if len(place.problems) == before else None


def record_document(record: Any) -> dict[str, Any]:
    """Write a record as its canonical document: what is not default, in declared order."""
    kind: type = type(record)
    return {
        key: field.metadata["kind"].write(getattr(record, field.name))
        for key, field in document_fields(kind).items()
        if field.default is REQUIRED or getattr(record, field.name) != field.default
    }


def record_schema(record: type) -> dict[str, Any]:
    """Make the JSON Schema of a record."""
    fields = document_fields(record)
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            key: {"description": field.metadata["doc"], **field.metadata["kind"].schema()}
            for key, field in fields.items()
        },
        "required": [key for key, field in fields.items() if field.default is REQUIRED],
    }


# ---- the plain kinds ---------------------------------------------------------------------------


def _quantity(label: str, known: Mapping[str, float], *, positive: bool, example: str) -> Kind:
    limit = "above 0" if positive else "0 or more"
    want = f"{label}, {limit}, such as {example}"

    def read(place: Place) -> float | None:
        low: dict[str, float] = {"above": 0.0} if positive else {"least": 0.0}
        return place.number(want, of=known, **low)

    bound = {"exclusiveMinimum": 0} if positive else {"minimum": 0}
    numbers = {"type": "number", **bound}
    words = {"type": "string", "examples": [example]}
    return Kind(label=label, read=read, schema=lambda: {"anyOf": [numbers, words]})


TIME = _quantity("a time", units.SECONDS, positive=False, example="250ms")
POSITIVE_TIME = _quantity("a time", units.SECONDS, positive=True, example="250ms")
SIZE = _quantity("a size", units.BYTES, positive=True, example="64B")
BANDWIDTH = _quantity("a bandwidth", units.BYTES_PER_S, positive=True, example="10Mbit/s")
RATE = _quantity("a rate", units.PER_S, positive=False, example="2/s")

TEXT = Kind(label="text", read=Place.text, schema=lambda: {"type": "string", "minLength": 1})
FLAG = Kind(label="true or false", read=Place.flag, schema=lambda: {"type": "boolean"})
SHARE = Kind(
    label="a share from 0 to 1",
    read=Place.share,
    schema=lambda: {"type": "number", "minimum": 0, "maximum": 1},
)


def whole(
    minimum: int, most: int = MOST_WHOLE, *, meant: Mapping[str, str] = MappingProxyType({})
) -> Kind:
    """Make the kind of whole numbers, at least ``minimum`` and at most ``most``.

    ``meant`` explains words that stand for some of them.
    """
    return Kind(
        label=f"a whole number, {minimum} or more",
        read=lambda place: place.whole(minimum, most, meant),
        schema=lambda: {"type": "integer", "minimum": minimum, "maximum": most},
    )


def number_from(least: float) -> Kind:
    """Make the kind of numbers that are at least ``least``."""
    return Kind(
        label=f"a number, {least:g} or more",
        read=lambda place: place.number(f"a number, {least:g} or more", least=least),
        schema=lambda: {"type": "number", "minimum": least},
    )


def limit(minimum: int) -> Kind:
    """Make the kind of whole numbers that limit something where they are given."""
    return dataclasses.replace(whole(minimum), read=lambda place: place.limit(minimum))


def choice(*options: str, meant: Mapping[str, str] = MappingProxyType({})) -> Kind:
    """Make the kind of values that are one of a few words; ``meant`` explains others' words."""
    return Kind(
        label=" | ".join(options),
        read=lambda place: place.choice(options, meant),
        schema=lambda: {"enum": list(options)},
    )


def part(record: type) -> Kind:
    """Make the kind of values that are another record."""
    return Kind(
        label=record.__name__,
        read=lambda place: read_record(record, place),
        write=record_document,
        schema=lambda: {"$ref": f"#/$defs/{record.__name__}"},
    )


def listing(item: Kind, *, least: int = 0) -> Kind:
    """Make the kind of lists of values of one kind, as tuples, with at least ``least`` values."""

    def read(place: Place) -> tuple[Any, ...]:
        if isinstance(place.value, list) and len(place.value) < least:
            place.report(f"a list of at least {least}")
        return tuple(item.read(each) for each in place.items(f"a list ({item.label})"))

    return Kind(
        label=f"a list ({item.label})",
        read=read,
        write=lambda values: [item.write(value) for value in values],
        schema=lambda: {"type": "array", "items": item.schema(), "minItems": least},
    )


def by_name(item: Kind) -> Kind:
    """Make the kind of values by name, as a tuple of pairs, so that records stay hashable."""

    def read(place: Place) -> tuple[tuple[str, Any], ...]:
        return tuple((name, item.read(each)) for name, each in place.mapping().items())

    return Kind(
        label=f"name: {item.label}",
        read=read,
        write=lambda pairs: {name: item.write(value) for name, value in pairs},
        schema=lambda: {"type": "object", "additionalProperties": item.schema()},
    )


def _named_documents(records: Sequence[Any]) -> dict[str, Any]:
    """Write the documents of records by name; of a table, every distinct value is written once."""
    if not isinstance(records, RecordTable):
        return {each.name: record_document(each) for each in records}
    columns = [(key, values, codes.tolist()) for key, values, codes in _written(records)]
    return {
        name: {
            key: values[codes[index]]
            for key, values, codes in columns
            if values[codes[index]] is not REQUIRED
        }
        for index, name in enumerate(records.names)
    }


def _written(table: RecordTable[Any]) -> Iterator[tuple[str, list[Any], Ints]]:
    """Give the columns that a table's documents need: key, distinct values, and their codes.

    A value that need not be written is REQUIRED.
    """
    record: Any = table.record
    for key, field in document_fields(record).items():
        column = table.column(field.name)
        write = field.metadata["kind"].write
        needed = [field.default is REQUIRED or each != field.default for each in column.values]
        if any(needed):
            pairs = zip(column.values, needed, strict=True)
            yield key, [write(each) if need else REQUIRED for each, need in pairs], column.codes


def table_json(table: RecordTable[Any]) -> str:
    """Write a table's documents by name as JSON without spaces, every distinct value once."""
    columns = []
    for key, values, codes in _written(table):
        texts = [
            "" if value is REQUIRED else f",{json.dumps({key: value}, separators=(',', ':'))[1:-1]}"
            for value in values
        ]
        columns.append([texts[code] for code in codes.tolist()])
    # One call for all names, which is quick: what would end a name early is written otherwise.
    names = json.dumps(table.names, separators=("\0", ":"))[1:-1].split("\0")
    rows = map("".join, zip(*columns, strict=True)) if columns else [""] * len(table)
    return (
        "{"
        + ",".join([f"{name}:{{{row[1:]}}}" for name, row in zip(names, rows, strict=True)])
        + "}"
    )


def named(record: type, shorthand: Callable[[Place], Place] = lambda place: place) -> Kind:
    """Make the kind of records by name, each knowing its own ``name``.

    ``shorthand`` rewrites what a record may be written as.
    """

    def read(place: Place) -> Sequence[Any]:
        if isinstance(place.value, RecordTable):  # read column by column already
            return place.value
        parts: Sequence[tuple[str, Place]] = list(place.mapping().items())
        return tuple(read_record(record, shorthand(each), name=name) for name, each in parts)

    return Kind(
        label=f"name: {record.__name__}",
        read=read,
        write=_named_documents,
        schema=lambda: {
            "type": "object",
            "additionalProperties": {"$ref": f"#/$defs/{record.__name__}"},
        },
    )
