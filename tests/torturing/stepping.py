"""Runs ``tidings``, and kills it before a step on files whose number is given.

A moment drawn evenly falls between two steps on files next to never: they take microseconds. So
Python is asked to tell of each (``sys.addaudithook``); ``TORTURE_STEP`` says before which one all
of this process group is killed. A byte in ``TORTURE_COUNT`` for each counts how many there are.

``TORTURE_MEMORY`` says how many bytes of addresses it may take beyond what libraries need that are
loaded first: OpenBLAS tries for ever where it finds no room when it begins.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
from importlib import import_module
from typing import Any

MEMORY = "TORTURE_MEMORY"
LIBRARIES = ("numpy.linalg", "scipy.linalg", "pandas", "pyarrow.parquet", "numba")
PLACE, STEP, COUNT = "TORTURE_PLACE", "TORTURE_STEP", "TORTURE_COUNT"
_CHANGES = {"os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.truncate", "shutil.rmtree"}
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT


def heed() -> None:
    """Count steps from now on."""
    place, kill_at = os.environ[PLACE], int(os.environ.get(STEP, "0"))
    counting = os.open(os.environ[COUNT], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    counted = 0

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal counted
        if _is_step(event, arguments, place):
            counted += 1
            os.write(counting, b".")
            if counted == kill_at:
                os.killpg(0, signal.SIGKILL)

    sys.addaudithook(hook)


def _is_step(event: str, arguments: tuple[Any, ...], place: str) -> bool:
    if event == "open":
        path, _, flags = arguments
        return bool(flags & _WRITES) and _is_inside(path, place)
    if event not in _CHANGES:
        return False
    relative = any(type(each) is int and each > 2 for each in arguments[1:])  # to an opened folder
    return relative or _is_inside(arguments[0], place)


def _is_inside(path: object, place: str) -> bool:
    if not isinstance(path, str | bytes | os.PathLike):
        return False
    return os.path.abspath(os.fsdecode(path)).startswith(f"{place}/")


def limit_memory() -> None:
    """Take no more addresses than so many beyond those of libraries, if that is asked."""
    if MEMORY not in os.environ:
        return
    for each in LIBRARIES:
        import_module(each)
    with open("/proc/self/statm", encoding="ascii") as file:
        taken = int(file.read().split()[0]) * resource.getpagesize()
    most = taken + int(os.environ[MEMORY])
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


if __name__ == "__main__":
    limit_memory()
    heed()
    from tidings.cli.main import main

    main()
