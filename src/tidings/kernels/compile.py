"""The one way Tidings compiles: to machine code, without the interpreter lock, kept on disk.

Numba keeps what it compiled beside a stamp of the function's own file. A kernel that calls kernels
of other files would then go on running their old code after they change. So the cache lies in the
user's cache folder under a hash of all sources that an engine is made of: its own kernels and those
that engines share. Any change there begins a fresh cache, and other engines keep theirs. Other
users of numba in the same process are not touched.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

import numba
from numba.core import caching, ccallback, types

from tidings.model.own_folders import cache_folder

Function = TypeVar("Function", bound=Callable[..., Any])

_NJIT: Any = numba.njit  # whose types know neither all its options nor all its results
_CONFIG: Any = numba.config
IS_COMPILING = not _CONFIG.DISABLE_JIT  # else kernels run as plain Python, for debugging

_PACKAGE = Path(__file__).parents[1]
_ANY_ENGINE = "**"


def compiled(function: Function) -> Function:
    """The function compiled when first called, in nopython mode, releasing the lock, cached.

    Division by zero follows IEEE rules as in NumPy. With ``NUMBA_DISABLE_JIT=1`` in the environment
    the function stays plain Python.
    """
    return _compiled(function)


def primitive(function: Function) -> Function:
    """Like :func:`compiled`, for a function that other kernels call and that makes no arrays.

    It then need not count references to the arrays it is handed, which costs more than drawing a
    random number does.
    """
    return _compiled(function, _nrt=False)


def inlined(function: Function) -> Function:
    """Like :func:`primitive`, and small: its code is copied into whatever calls it."""
    return _compiled(function, _nrt=False, forceinline=True)


def merged(function: Function) -> Function:
    """Like :func:`primitive`, for a function called at one place: compiled as part of its caller.

    What is compiled alone is optimised again with everything it calls, at every level of calls;
    long chains of small functions would take minutes.
    """
    return _compiled(function, _nrt=False, inline="always")


class Part:
    """A part of a kernel that is compiled on its own, when its address is first asked for.

    It is a function of (address of the world, whole number, whole number) that gives a whole
    number. Whoever calls it by its address (``memory.Layout.part``) is compiled without it: once,
    instead of once more with every caller, and not at all where it is never called.
    """

    def __init__(self, function: Callable[[Any, int, int], int]) -> None:
        self.function = function
        self._lock = Lock()
        self._compiled: Any = None

    def __call__(self, world: Any, one: int, other: int) -> int:
        """Run it as plain Python, of the world itself."""
        return self.function(world, one, other)

    @property
    def address(self) -> int:
        """Where its machine code lies, in this process."""
        with self._lock:
            if self._compiled is None:
                signature = (types.int64,) * 3, types.int64
                options = {"nopython": True, "nogil": True, "error_model": "numpy", "_nrt": False}
                make: Any = ccallback.CFunc
                compiled = make(self.function, signature, locals={}, options=options)
                make_cache: Any = _KernelCache
                compiled._cache = make_cache(self.function)
                compiled.compile()
                self._compiled = compiled
            return int(self._compiled.address)


def apart(function: Callable[[Any, int, int], int]) -> Part:
    """The function as a part of a kernel that is compiled on its own."""
    return Part(function)


def _compiled(function: Function, **options: bool | str) -> Function:
    fast: Any = _NJIT(nogil=True, error_model="numpy", **options)(function)
    if IS_COMPILING:
        make_cache: Any = _KernelCache
        fast._cache = make_cache(function)
    return fast


def engine_of(file: Path) -> str:
    """The folder of the package that a kernel's file lies in; of a file elsewhere, any folder.

    Engines do not see each other, so that the kernels of one call none of another.
    """
    inside = file.is_relative_to(_PACKAGE)
    return file.relative_to(_PACKAGE).parts[0] if inside else _ANY_ENGINE


@cache
def source_hash(engine: str) -> str:
    """A hash of every module whose text an engine's machine code depends on, as hex digits."""
    # The edges of the delay grid are frozen into the kernels when these are compiled.
    patterns = ("kernels/**/*.py", f"{engine}/kernel*.py", "model/delay_grid.py")
    files = {file for pattern in patterns for file in _PACKAGE.glob(pattern)}
    digest = hashlib.blake2b(digest_size=12)
    for file in sorted(files):
        text = file.read_bytes()
        digest.update(f"{file.relative_to(_PACKAGE).as_posix()}\0{len(text)}\0".encode())
        digest.update(text)
    return digest.hexdigest()


@cache
def kernel_folder(engine: str) -> Path:
    """Where an engine's machine code is kept."""
    return cache_folder("kernels", source_hash(engine))


class _KernelLocator(caching._CacheLocator):
    """Tells numba where a kernel's machine code lies and from which sources it was made."""

    def __init__(self, function: Callable[..., Any], file: str) -> None:
        self._py_file = file  # numba looks for it when it warns
        self._line = function.__code__.co_firstlineno
        self._module = function.__module__
        self._engine = engine_of(Path(file))

    def get_cache_path(self) -> str:
        return str(kernel_folder(self._engine))

    def get_source_stamp(self) -> str:
        return source_hash(self._engine)

    def get_disambiguator(self) -> str:
        return f"{self._module}-{self._line}"

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> _KernelLocator:
        return cls(py_func, py_file)


class _KernelCacheImpl(caching.CompileResultCacheImpl):
    _locator_classes = [_KernelLocator]  # noqa: RUF012 - declared so by numba


class _KernelCache(caching.FunctionCache):
    _impl_class = _KernelCacheImpl
