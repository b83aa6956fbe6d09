"""Where numba keeps what it compiles: in the user's cache folder, by what it was made of."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba.core import caching

from tidings.kernels.compile import engine_of, kernel_folder
from tidings.kernels.library import source_hash


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


class KernelCache(caching.FunctionCache):
    """Numba's cache of one function, in a folder of ours."""

    _impl_class = _KernelCacheImpl
