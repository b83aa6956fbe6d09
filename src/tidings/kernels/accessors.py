"""How compiled kernels reach the tables of a world: loads and additions that numba writes out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba.core import cgutils, types
from numba.extending import intrinsic
from numba.np.arrayobj import make_array, populate_array

_WORD = 8
_llvm: Any = vars(cgutils)["ir"]


def record_at(kind: np.dtype[Any], at: int) -> Callable[[Any, int], Any]:
    """Compile (world, position) -> record of the table whose address lies there in the world."""
    record_kind, size = numba.from_dtype(kind), kind.itemsize

    def record(typing_context: Any, world: Any, position: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            address = _load(builder, args[0], at)
            step = context.cast(builder, args[1], signature.args[1], types.int64)
            step = builder.mul(step, step.type(size))
            return builder.inttoptr(builder.add(address, step), context.get_value_type(record_kind))

        return record_kind(world, position), code

    return _accessor(record)


def array_at(kind: np.dtype[Any], at: int, columns: int) -> Callable[[Any], Any]:
    """Compile (world) -> the table whose address and length lie there, as an array."""
    array_kind = types.Array(numba.from_dtype(kind), 2 if columns else 1, "C")
    size = kind.itemsize
    shape, strides = ((columns,), (columns * size, size)) if columns else ((), (size,))

    def array(typing_context: Any, world: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            view = make_array(array_kind)(context, builder)  # type: ignore[no-untyped-call]
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

        return array_kind(world), code

    return _accessor(array)


def call_at(at: int) -> Callable[[Any, int, int], int]:
    """Compile (world, number, number) -> number of the part whose address lies there."""

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

    return _accessor(call)


def world_at(kind: np.dtype[Any]) -> Callable[[Any], Any]:
    """Compile (address) -> world of this kind."""
    world_kind = numba.from_dtype(np.zeros(1, dtype=kind).view(np.recarray).dtype)

    def world(typing_context: Any, address: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.inttoptr(args[0], context.get_value_type(world_kind))

        return world_kind(address), code

    return _accessor(world)


def byte_copier() -> Callable[[int, int, int], None]:
    """Compile (to, source, size): copy so many bytes from one address to another."""

    def copy(typing_context: Any, to: Any, source: Any, size: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            to, source = (builder.inttoptr(each, cgutils.voidptr_t) for each in args[:2])
            cgutils.raw_memcpy(builder, to, source, args[2], 1)  # type: ignore[no-untyped-call]
            return context.get_dummy_value()

        return types.void(types.int64, types.int64, types.int64), code

    return _accessor(copy)


def _accessor(code: Callable[..., Any]) -> Callable[..., Any]:
    accessor: Any = intrinsic(code)
    return accessor


def _load(builder: Any, world: Any, offset: int) -> Any:
    """The word at an offset of the world; addresses stay as they are during a call."""
    raw = builder.bitcast(world, cgutils.voidptr_t)
    place = cgutils.gep_inbounds(builder, raw, offset)  # type: ignore[no-untyped-call]
    word = builder.load(builder.bitcast(place, cgutils.intp_t.as_pointer()))
    word.set_metadata("invariant.load", builder.module.add_metadata([]))
    return word
