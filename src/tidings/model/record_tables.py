"""Many records as columns: what a million subscribers have in common is kept once.

A :class:`Coded` column holds the distinct values of one field, in the order in which they first
appear, and for each record which of them is its own. A :class:`RecordTable` is a sequence of
records made of such columns; it compares and iterates like a tuple of them, each record being made
when it is asked for. Whoever asks :func:`column` instead works on values, not on individuals.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar, overload

import numpy as np

from tidings.model.arrays import Ints

Record = TypeVar("Record")


@dataclass(frozen=True, slots=True, kw_only=True)
class Coded:
    """A column: its distinct values, and for each record the position of its value among them."""

    values: tuple[Any, ...]
    codes: Ints

    def where(self, holds: Callable[[Any], bool]) -> Ints:
        """Find the records whose value has a property; each distinct value is tested once."""
        wanted = np.array([bool(holds(value)) for value in self.values], dtype=np.bool_)
        return np.flatnonzero(wanted[self.codes]) if wanted.any() else np.zeros(0, dtype=np.int64)


def coded(values: Iterable[Any]) -> Coded:
    """Make a column from the value of each record, in order.

    >>> column = coded(["b", "a", "b"])
    >>> column.values, column.codes.tolist()
    (('b', 'a'), [0, 1, 0])
    """
    place_of: dict[Any, int] = {}
    codes = [place_of.setdefault(value, len(place_of)) for value in values]
    return Coded(values=tuple(place_of), codes=np.array(codes, dtype=np.int64))


@dataclass(frozen=True, kw_only=True, eq=False)
class RecordTable(Sequence[Record]):
    """Records of one type, each with a name, as columns; fields without one have their default."""

    record: type[Record]
    names: tuple[str, ...]
    columns: Mapping[str, Coded]

    def column(self, field: str) -> Coded:
        """Give one field of all records as a column."""
        if field in self.columns:
            return self.columns[field]
        codes = np.zeros(len(self.names), dtype=np.int64)
        return Coded(values=(self._defaults[field],), codes=codes)

    @cached_property
    def _defaults(self) -> dict[str, Any]:
        fields = dataclasses.fields(self.record)  # type: ignore[arg-type]
        return {field.name: field.default for field in fields}

    def __len__(self) -> int:
        return len(self.names)

    @overload
    def __getitem__(self, index: int) -> Record: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Record]: ...

    def __getitem__(self, index: int | slice) -> Record | Sequence[Record]:
        if isinstance(index, slice):
            return tuple(self[each] for each in range(*index.indices(len(self))))
        own = {field: each.values[each.codes[index]] for field, each in self.columns.items()}
        make: Callable[..., Record] = self.record
        return make(name=self.names[index], **own)

    def __iter__(self) -> Iterator[Record]:
        return (self[index] for index in range(len(self)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RecordTable | tuple):
            return NotImplemented
        pairs = zip(self, other, strict=False)
        return len(self) == len(other) and all(one == another for one, another in pairs)

    def __hash__(self) -> int:
        return hash(tuple(self))


def column(records: Sequence[Any], field: str) -> Coded:
    """Give one field of a sequence of records as a column, however they are kept."""
    if isinstance(records, RecordTable):
        return records.column(field)
    return coded(getattr(record, field) for record in records)


def names(records: Sequence[Any]) -> Sequence[str]:
    """Give the names of records, however they are kept."""
    if isinstance(records, RecordTable):
        return records.names
    return [record.name for record in records]
