"""Machine code of all kernels that was built ahead: found, loaded, and called without numba."""

from __future__ import annotations

import ctypes
import hashlib
import platform
from functools import cache
from pathlib import Path

from tidings.model.own_folders import cache_folder

_PACKAGE = Path(__file__).parents[1]
EVERY_ENGINE = "*"
NAMES = "tidings_parts"  # the symbol under which a library lists its parts, in lines


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


def library_name() -> str:
    """The name of the library of these sources on a processor like this one."""
    return f"kernels-{source_hash(EVERY_ENGINE)}-{platform.machine().lower()}.so"


def kept_library() -> Path:
    """Where a library lies that was built for this user."""
    return cache_folder("kernels", "built") / library_name()


def find_library() -> Path | None:
    """Find the library that came with the package, or that was built for this user."""
    came = _PACKAGE / "kernels" / library_name()
    if came.is_file():
        return came
    kept = kept_library()
    return kept if kept.is_file() else None


@cache
def addresses() -> dict[str, int]:
    """Load the library; the address of every part in it, by name."""
    file = find_library()
    assert file is not None
    library = ctypes.CDLL(str(file))
    listed = ctypes.string_at(ctypes.addressof(ctypes.c_char.in_dll(library, NAMES)))
    return {
        name: ctypes.cast(library[name], ctypes.c_void_p).value or 0
        for name in listed.decode().splitlines()
    }
