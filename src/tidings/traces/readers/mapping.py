"""A mapping file: which columns of one's own files become which columns of the trace tables.

>>> mapping = parse_mapping('''
... mapping: 1
... tables:
...   deliveries:
...     where: {kind: received}
...     event: message_id
...     subscriber: {constant: alice}
...     received_ns: {column: at, unit: ms}
... ''')
>>> [table.name for table in mapping.tables], mapping.tables[0].fields["event"].column
(['deliveries'], 'message_id')
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tidings.errors import InvalidInputError
from tidings.model import yaml_text
from tidings.model.document import Place
from tidings.model.trace_tables import TRACE_TABLES, TraceTable
from tidings.traces.readers.times import UNITS

FORMAT_VERSION = 1
KINDS = ("text", "number", "flag")
MADE_OF_ATTRIBUTES = ("content", "filter")  # a filter of attributes wants what equals them
_FORMS = "a column's name, {column: NAME} or {constant: VALUE}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribute:
    """One attribute of a content: the column it comes from; without a kind, as it stands there."""

    column: str
    kind: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """Where the value of one canonical column comes from.

    A column or a constant; for times, in a ``unit`` (nanoseconds where none is given) and ``times``
    a factor, ``plus`` another time; ``values`` translates; ``separator`` splits a list of names;
    ``attributes`` make up a content or filter.
    """

    column: str | None = None
    constant: str | None = None
    unit: str = "ns"
    times: float = 1.0
    plus: Field | None = None
    values: Mapping[str, str] = field(default_factory=dict)
    separator: str | None = None
    attributes: Mapping[str, Attribute] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableMapping:
    """How rows of a file become rows of one trace table: those whose columns have these texts."""

    name: str
    fields: Mapping[str, Field]
    where: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceMapping:
    """What every row of a file becomes: a row of each of these tables."""

    tables: tuple[TableMapping, ...]
    delimiter: str | None = None  # of text tables; by the file's name where none is given


def read_mapping(path: Path) -> TraceMapping:
    """Read the mapping in a file; raise :class:`InvalidInputError` with all that is wrong in it."""
    return _checked(yaml_text.read(path), str(path))


def parse_mapping(text: str, where: str = "the mapping") -> TraceMapping:
    """Read a mapping from a text in YAML."""
    return _checked(yaml_text.parse(text), where)


def _checked(place: Place, where: str) -> TraceMapping:
    mapping = None if place.problems else _read(place)
    if place.problems or mapping is None:
        raise InvalidInputError(f"{where} is not a valid mapping", place.problems)
    return mapping


def _read(place: Place) -> TraceMapping | None:
    parts = place.mapping(
        ("mapping", "tables", "delimiter"), "a mapping with 'mapping: 1' and 'tables'"
    )
    if "mapping" not in parts or parts["mapping"].value != FORMAT_VERSION:
        place.inside("mapping").report(f"the version {FORMAT_VERSION}")
    tables = []
    if not place.inside("tables").value:
        place.inside("tables").report(f"one or more of {', '.join(TRACE_TABLES)}")
    elif "tables" in parts:
        named = parts["tables"].mapping(tuple(TRACE_TABLES))
        tables = [_read_table(part, TRACE_TABLES[name]) for name, part in named.items()]
    delimiter = parts["delimiter"].text() if "delimiter" in parts else None
    if delimiter is not None and len(delimiter) != 1:
        parts["delimiter"].report("one character")
    return TraceMapping(tables=tuple(tables), delimiter=delimiter)


def _read_table(place: Place, table: TraceTable) -> TableMapping:
    names = [column.name for column in table.columns]
    parts = place.mapping((*names, "where"), f"a mapping from {', '.join(names)}")
    where = {}
    if "where" in parts:
        for column, part in parts.pop("where").mapping().items():
            wanted = list(part.items()) if isinstance(part.value, list) else [part]
            where[column] = tuple(str(_plain(each)) for each in wanted)
    if isinstance(place.value, Mapping):
        for each in table.columns:
            if not each.nullable and each.name not in parts:
                place.report(f"{each.name}: {each.meaning}", saw=f"no {each.name}")
    fields = {name: _read_field(part, name) for name, part in parts.items()}
    return TableMapping(name=table.name, fields=fields, where=where)


def _read_field(place: Place, name: str) -> Field:
    if not isinstance(place.value, Mapping):
        return Field(column=place.text(_FORMS) or "")
    readers = _readers(name)
    parts = place.mapping(tuple(readers), _FORMS)
    origins = [key for key in ("column", "constant", "attributes") if key in parts]
    if len(origins) != 1:
        made = name in MADE_OF_ATTRIBUTES
        place.report("one of column, constant and attributes" if made else _FORMS)
    values = {key: readers[key](part) for key, part in parts.items()}
    return Field(**{key: value for key, value in values.items() if value is not None})


def _readers(name: str) -> dict[str, Callable[[Place], Any]]:
    """Give what may be said of a field, with how to read it, by what the field is."""
    allowed: dict[str, Callable[[Place], Any]] = {
        "column": Place.text,
        "constant": lambda place: str(_plain(place)),
        "values": _read_values,
    }
    if name.endswith("_ns"):
        allowed["unit"] = lambda place: place.choice(UNITS)
        allowed["times"] = lambda place: place.number("a factor above 0", above=0.0)
        allowed["plus"] = lambda place: _read_field(place, "more_ns")
    if name == "sent_to":
        allowed["separator"] = Place.text
    if name in MADE_OF_ATTRIBUTES:
        allowed["attributes"] = _read_attributes
    return allowed


def _read_values(place: Place) -> dict[str, str]:
    return {key: str(_plain(part)) for key, part in place.mapping().items()}


def _read_attributes(place: Place) -> dict[str, Attribute]:
    attributes = {}
    for name, part in place.mapping().items():
        if isinstance(part.value, Mapping):
            inner = part.mapping(("column", "kind"))
            kind = inner["kind"].choice(KINDS) if "kind" in inner else None
            attributes[name] = Attribute(column=part.inside("column").text() or "", kind=kind)
        else:
            attributes[name] = Attribute(column=part.text("a column's name") or "")
    return attributes


def _plain(place: Place) -> str | int | float:
    """Read a text or number as it would be written in a file."""
    value = place.value
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str | int | float):
        place.report("a text or a number")
        return ""
    return value
