"""How compiled functions reach the simulator's tables: one pointer instead of dozens of arrays.

A compiled function that is handed forty arrays spends its time on handing them over. So all tables
of a run hang on one record, the *world*, which holds their addresses beside its own numbers, and a
table's accessor turns (world, position) into a record of that table: a load and an addition.
Without compilation (``TIDINGS_KERNELS=plain``) the same accessors look the tables up by name.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Any

import numpy as np

from tidings.kernels.compile import HOW, IS_COMPILING, PLAIN, Part

_WORD = 8  # bytes of a number, an address or a length


def record(**fields: type) -> np.dtype[Any]:
    """The type of a record with these fields, laid out as compiled code reads them fastest."""
    return np.dtype(list(fields.items()), align=True)


def constants(first: int, count: int) -> tuple[Any, ...]:
    """Whole numbers of NumPy: for Python's, numba would compile every function for each value."""
    return tuple(map(np.int64, range(first, first + count)))


class Layout:
    """The dtype of the world: its own numbers, then an address and a length for each table."""

    def __init__(
        self,
        numbers: Mapping[str, type],
        tables: Mapping[str, np.dtype[Any]],
        parts: Iterable[str] = (),
    ) -> None:
        self.tables, self.parts = dict(tables), tuple(parts)
        fields: list[tuple[str, Any]] = list(numbers.items())
        fields += [(f"{name}_code", np.int64) for name in self.parts]
        for name in tables:
            fields += [(f"{name}_address", np.int64), (f"{name}_length", np.int64)]
        self.dtype = np.dtype(fields, align=True)
        # As tables whose fields are attributes have it: to find that out anew takes a while.
        self.named = {n: np.dtype((np.record, k)) if k.fields else k for n, k in tables.items()}
        # Where the address of each table lies, and behind it its length, in words.
        self.words = {name: self.offset(f"{name}_address") // _WORD for name in tables}

    def offset(self, field: str) -> int:
        """Where a field lies in the world, in bytes."""
        fields = self.dtype.fields
        assert fields is not None
        return int(fields[field][1])

    def table(self, name: str) -> Callable[[Any, int], Any]:
        """The accessor (world, position) -> record of a table."""
        if not IS_COMPILING:
            return lambda world, position: world.tables[name][position]
        return _accessors().record_at(self.tables[name], self.offset(f"{name}_address"))

    def array(self, name: str, columns: int = 0) -> Callable[[Any], Any]:
        """The accessor (world) -> whole table as an array; of two dimensions, given columns."""
        if not IS_COMPILING:
            return lambda world: world.tables[name]
        return _accessors().array_at(self.tables[name], self.offset(f"{name}_address"), columns)

    def part(self, name: str) -> Callable[[Any, int, int], int]:
        """The caller (world, number, number) -> number of a part that is compiled on its own."""
        if not IS_COMPILING:
            return lambda world, one, other: world.parts[name](world, one, other)
        return _accessors().call_at(self.offset(f"{name}_code"))

    def records(self) -> Any:
        """The accessors of all tables of records, by their names."""
        kinds = self.tables.items()
        return _named({name: self.table(name) for name, kind in kinds if kind.fields})

    def arrays(self, **columns: int) -> Any:
        """The accessors of all tables as arrays, by their names; of those named two-dimensional."""
        return _named({name: self.array(name, columns.get(name, 0)) for name in self.tables})

    def calls(self) -> Any:
        """The callers of all parts, by their names."""
        return _named({name: self.part(name) for name in self.parts})

    def world(self) -> Callable[[Any], Any]:
        """The accessor (address) -> world, for parts that are compiled on their own."""
        if not IS_COMPILING:
            return lambda world: world
        return _accessors().world_at(self.dtype)

    def make(
        self,
        numbers: Mapping[str, float],
        tables: Mapping[str, Any],
        parts: Mapping[str, Part] | None = None,
    ) -> World:
        """A world with these numbers and tables, and the parts that are called in it."""
        return World(self, numbers, tables, parts or {})


def _named(functions: Mapping[str, Callable[..., Any]]) -> Any:
    """Functions as those of a module, which is what compiled code looks names up in."""
    module = ModuleType("accessors")
    vars(module).update(functions)
    return module


def _accessors() -> Any:
    """What numba compiles, which is imported only where it does."""
    from tidings.kernels import accessors

    return accessors


def _move(to: int, source: int, size: int) -> None:
    ctypes.memmove(int(to), int(source), int(size))


copy_bytes = _accessors().byte_copier() if IS_COMPILING else _move


class World:
    """A world in Python's hands: its record, and the tables its addresses point into."""

    def __init__(
        self,
        layout: Layout,
        numbers: Mapping[str, float],
        tables: Mapping[str, Any],
        parts: Mapping[str, Part],
    ) -> None:
        record = np.zeros(1, dtype=layout.dtype)
        self.record = record.view(np.recarray)
        self._layout, self._words = layout, record.view(np.int64)
        for name, value in numbers.items():
            record[name] = value
        self.parts = dict(parts)
        for name, part in self.parts.items():
            record[f"{name}_code"] = 0 if HOW == PLAIN else part.address
        self.tables: dict[str, Any] = {}
        for name in layout.tables:
            self.put(name, np.ascontiguousarray(tables[name], dtype=layout.tables[name]))

    def put(self, name: str, table: Any) -> None:
        """Hang a table in the place of another; the old one must not be used any more."""
        named = self._layout.named[name]
        self.tables[name] = table.view(named).view(np.recarray) if named.fields else table
        at = self._layout.words[name]
        self._words[at : at + 2] = table.ctypes.data, len(table)

    def run(self, part: Part) -> int:
        """Call a part of the kernels on the world."""
        if HOW == PLAIN:
            return part(_PlainWorld(self), 0, 0)
        return part.run(self.record.ctypes.data)


class _PlainWorld:
    """What uncompiled functions see of a world."""

    def __init__(self, world: World) -> None:
        object.__setattr__(self, "tables", world.tables)
        object.__setattr__(self, "parts", world.parts)
        object.__setattr__(self, "numbers", world.record[0])

    def __getattr__(self, name: str) -> Any:
        return self.numbers[name].item()

    def __setattr__(self, name: str, value: Any) -> None:
        self.numbers[name] = value
