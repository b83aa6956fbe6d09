"""How kernels become machine code: built ahead as a library, or compiled when first called.

Kernels are written in the part of Python that numba compiles. Python calls them through *parts*:
functions of the address of a world and two whole numbers that give a whole number. Where machine
code was built ahead (:mod:`library`), parts are found in it and nothing is compiled: numba need not
even be installed. Else numba compiles what is called, and keeps it on disk beside a hash of all
sources that an engine is made of: its own kernels and those that engines share. Numba itself looks
only at a function's own file, and would go on running old code of others. Other users of numba in
the same process are not touched.

``TIDINGS_KERNELS=compiled`` in the environment leaves the library alone, and ``plain`` (or
``NUMBA_DISABLE_JIT=1``) runs kernels as the Python that they are, for debugging.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

from tidings.kernels.library import addresses, find_library, source_hash
from tidings.model.own_folders import cache_folder

Function = TypeVar("Function", bound=Callable[..., Any])

BUILT, COMPILED, PLAIN = "built", "compiled", "plain"


def _choose() -> str:
    """Choose how kernels are run in this process."""
    chosen = os.environ.get("TIDINGS_KERNELS", "")
    if chosen == PLAIN or os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        return PLAIN
    return BUILT if chosen != COMPILED and find_library() is not None else COMPILED


HOW = _choose()
IS_COMPILING = HOW == COMPILED

_PACKAGE = Path(__file__).parents[1]
_ANY_ENGINE = "**"
_FORM = ctypes.CFUNCTYPE(ctypes.c_int64, *(ctypes.c_int64,) * 3)
_OPTIONS = {"nopython": True, "nogil": True, "error_model": "numpy", "_nrt": False}


def primitive(function: Function) -> Function:
    """The function compiled when first called, in nopython mode: for what other kernels call.

    It makes no arrays. It then need not count references to the arrays it is handed, which costs
    more than drawing a random number does. Division by zero follows IEEE rules as in NumPy.
    """
    return _compiled(function)


def inlined(function: Function) -> Function:
    """Like :func:`primitive`, and small: its code is copied into whatever calls it."""
    return _compiled(function, forceinline=True)


def merged(function: Function) -> Function:
    """Like :func:`primitive`, for a function called at one place: compiled as part of its caller.

    What is compiled alone is optimised again with everything it calls, at every level of calls;
    long chains of small functions would take minutes.
    """
    return _compiled(function, inline="always")


class Part:
    """A function of kernels that is called by its address, and made machine code on its own.

    It is a function of (address of the world, whole number, whole number) that gives a whole
    number. Kernels that call it (``memory.Layout.part``) are compiled without it: once, instead of
    once more with every caller, and not at all where it is never called.
    """

    def __init__(self, function: Callable[[Any, int, int], int]) -> None:
        self.function = function
        self._lock = Lock()
        self._compiled: Any = None
        PARTS[self.name] = self

    def __call__(self, world: Any, one: int, other: int) -> int:
        """Run it as plain Python, of the world itself."""
        return self.function(world, one, other)

    @property
    def name(self) -> str:
        """What it is called in a library."""
        return f"{self.function.__module__}.{self.function.__name__}".replace(".", "_")

    @property
    def address(self) -> int:
        """Where its machine code lies, in this process."""
        if HOW == BUILT:
            return addresses()[self.name]
        with self._lock:
            if self._compiled is None:
                self._compiled = self.compile(is_kept=True)
            return int(self._compiled.address)

    def compile(self, *, is_kept: bool) -> Any:
        """Compile it now, or load what was kept; as numba has it."""
        from numba.core import ccallback, types

        make: Any = ccallback.CFunc
        signature = (types.int64,) * 3, types.int64
        compiled = make(self.function, signature, locals={}, options=_OPTIONS)
        if is_kept:
            compiled._cache = _kernel_cache(self.function)
        compiled.compile()
        return compiled

    def run(self, world: int) -> int:
        """Run it on the world at this address, without Python's lock."""
        return int(_FORM(self.address)(world, 0, 0))


PARTS: dict[str, Part] = {}  # all that were imported, by their names


def apart(function: Callable[[Any, int, int], int]) -> Part:
    """The function as one that Python, or other kernels, call by its address."""
    return Part(function)


def _compiled(function: Function, **options: bool | str) -> Function:
    if not IS_COMPILING:
        return function
    import numba

    make: Any = numba.njit  # whose types know neither all its options nor all its results
    fast: Any = make(nogil=True, error_model="numpy", _nrt=False, **options)(function)
    fast._cache = _kernel_cache(function)
    return fast


def engine_of(file: Path) -> str:
    """The folder of the package that a kernel's file lies in; of a file elsewhere, any folder.

    Engines do not see each other, so that the kernels of one call none of another.
    """
    inside = file.is_relative_to(_PACKAGE)
    return file.relative_to(_PACKAGE).parts[0] if inside else _ANY_ENGINE


@cache
def kernel_folder(engine: str) -> Path:
    """Where an engine's machine code is kept that was compiled when it was called."""
    return cache_folder("kernels", source_hash(engine))


def _kernel_cache(function: Callable[..., Any]) -> Any:
    """Where numba keeps a kernel's machine code, and from which sources it was made."""
    from tidings.kernels.keeping import KernelCache

    make: Any = KernelCache
    return make(function)
