"""How compiled functions reach the simulator's tables: one pointer instead of dozens of arrays.

A compiled function that is handed forty arrays spends its time on handing them over. So all tables
of a run hang on one record, the *world*, which holds their addresses beside its own numbers, and a
table's accessor turns (world, position) into a record of that table: a load and an addition.
Without compilation (``NUMBA_DISABLE_JIT=1``) the same accessors look the tables up by name.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Any

import numba
import numpy as np
from numba.core import cgutils, types
from numba.extending import intrinsic
from numba.np.arrayobj import make_array, populate_array

from tidings.kernels.compile import IS_COMPILING, Part

_WORD = 8
_llvm: Any = vars(cgutils)["ir"]


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

    def offset(self, field: str) -> int:
        """Where a field lies in the world, in bytes."""
        fields = self.dtype.fields
        assert fields is not None
        return int(fields[field][1])

    def table(self, name: str) -> Callable[[Any, int], Any]:
        """The accessor (world, position) -> record of a table."""
        if not IS_COMPILING:
            return lambda world, position: world.tables[name][position]
        kind = numba.from_dtype(self.tables[name])
        at, size = self.offset(f"{name}_address"), self.tables[name].itemsize

        def record(typing_context: Any, world: Any, position: Any) -> Any:
            def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
                address = _load(builder, args[0], at)
                step = context.cast(builder, args[1], signature.args[1], types.int64)
                step = builder.mul(step, step.type(size))
                return builder.inttoptr(builder.add(address, step), context.get_value_type(kind))

            return kind(world, position), code

        return _compiled_accessor(record)

    def array(self, name: str, columns: int = 0) -> Callable[[Any], Any]:
        """The accessor (world) -> whole table as an array; of two dimensions, given columns."""
        if not IS_COMPILING:
            return lambda world: world.tables[name]
        kind = types.Array(numba.from_dtype(self.tables[name]), 2 if columns else 1, "C")
        at, size = self.offset(f"{name}_address"), self.tables[name].itemsize
        shape, strides = ((columns,), (columns * size, size)) if columns else ((), (size,))

        def array(typing_context: Any, world: Any) -> Any:
            def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
                view = make_array(kind)(context, builder)  # type: ignore[no-untyped-call]
                word = context.get_value_type(types.intp)
                data = builder.inttoptr(_load(builder, args[0], at), view.data.type)
                populate_array(  # type: ignore[no-untyped-call]
                    view,
                    data=data,
                    shape=[_load(builder, args[0], at + _WORD), *map(word, shape)],
                    strides=list(map(word, strides)),
                    itemsize=word(size),
                    meminfo=None,
                )
                return view._getvalue()

            return kind(world), code

        return _compiled_accessor(array)

    def part(self, name: str) -> Callable[[Any, int, int], int]:
        """The caller (world, number, number) -> number of a part that is compiled on its own."""
        if not IS_COMPILING:
            return lambda world, one, other: world.parts[name](world, one, other)
        at = self.offset(f"{name}_code")

        def call(typing_context: Any, world: Any, one: Any, other: Any) -> Any:
            def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
                word = cgutils.intp_t
                form = _llvm.FunctionType(word, [word] * 3)
                called = builder.inttoptr(_load(builder, args[0], at), form.as_pointer())
                numbers = [
                    context.cast(builder, args[place], signature.args[place], types.int64)
                    for place in (1, 2)
                ]
                return builder.call(called, [builder.ptrtoint(args[0], word), *numbers])

            return types.int64(world, one, other), code

        return _compiled_accessor(call)

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
        kind = numba.from_dtype(np.zeros(1, dtype=self.dtype).view(np.recarray).dtype)

        def world(typing_context: Any, address: Any) -> Any:
            def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
                return builder.inttoptr(args[0], context.get_value_type(kind))

            return kind(address), code

        return _compiled_accessor(world)

    def make(
        self,
        numbers: Mapping[str, float],
        tables: Mapping[str, Any],
        parts: Mapping[str, Part] | None = None,
    ) -> World:
        """A world with these numbers and tables, and the parts that are called in it."""
        return World(self, numbers, tables, parts or {})


def _copy_bytes(typing_context: Any, to: Any, source: Any, size: Any) -> Any:
    """Copy so many bytes from one address to another."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        to, source = (builder.inttoptr(each, cgutils.voidptr_t) for each in args[:2])
        cgutils.raw_memcpy(builder, to, source, args[2], 1)  # type: ignore[no-untyped-call]
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), code


def _named(functions: Mapping[str, Callable[..., Any]]) -> Any:
    """Functions as those of a module, which is what compiled code looks names up in."""
    module = ModuleType("accessors")
    vars(module).update(functions)
    return module


def _compiled_accessor(code: Callable[..., Any]) -> Callable[..., Any]:
    accessor: Any = intrinsic(code)
    return accessor


def _load(builder: Any, world: Any, offset: int) -> Any:
    """The word at an offset of the world; addresses stay as they are during a call."""
    raw = builder.bitcast(world, cgutils.voidptr_t)
    place = cgutils.gep_inbounds(builder, raw, offset)  # type: ignore[no-untyped-call]
    word = builder.load(builder.bitcast(place, cgutils.intp_t.as_pointer()))
    word.set_metadata("invariant.load", builder.module.add_metadata([]))
    return word


def _move(to: int, source: int, size: int) -> None:
    ctypes.memmove(int(to), int(source), int(size))


copy_bytes = _compiled_accessor(_copy_bytes) if IS_COMPILING else _move


class World:
    """A world in Python's hands: its record, and the tables its addresses point into."""

    def __init__(
        self,
        layout: Layout,
        numbers: Mapping[str, float],
        tables: Mapping[str, Any],
        parts: Mapping[str, Part],
    ) -> None:
        self.record = np.zeros(1, dtype=layout.dtype).view(np.recarray)
        for name, value in numbers.items():
            self.record[0][name] = value
        self.parts = dict(parts)
        for name, part in self.parts.items():
            self.record[0][f"{name}_code"] = part.address if IS_COMPILING else 0
        self.tables: dict[str, Any] = {}
        for name in layout.tables:
            self.put(name, np.ascontiguousarray(tables[name], dtype=layout.tables[name]))

    def put(self, name: str, table: Any) -> None:
        """Hang a table in the place of another; the old one must not be used any more."""
        self.tables[name] = table.view(np.recarray) if table.dtype.fields else table
        self.record[0][f"{name}_address"] = table.ctypes.data
        self.record[0][f"{name}_length"] = len(table)

    def run(self, function: Callable[[Any], int]) -> int:
        """Call a compiled function of the world."""
        return function(self.record if IS_COMPILING else [_PlainWorld(self)])


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
