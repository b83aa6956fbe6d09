"""Formats that can be imported, by name: ours, and those of packages that bring a reader.

A package registers a :class:`~tidings.traces.readers.reading.Reader` as an entry point of the group
``tidings.readers``; ours are registered in the same way.
"""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points

from tidings.errors import InvalidInputError, missing_extra
from tidings.traces.readers.reading import Reader

GROUP = "tidings.readers"


def reader_names() -> list[str]:
    """List the formats that are installed."""
    return sorted({each.name for each in entry_points(group=GROUP)})


def find_reader(name: str) -> Reader:
    """Load the reader of a format; raises :class:`InvalidInputError` for none, and for two."""
    readers = {each.value: each for each in entry_points(group=GROUP, name=name)}
    if not readers:
        known = ", ".join(reader_names())
        raise InvalidInputError(f"there is no format '{name}'; wants one of {known}")
    if len(readers) > 1:
        brought = " and ".join(sorted(map(_package, readers.values())))
        raise InvalidInputError(
            f"the format '{name}' is brought by {brought}; wants one of them uninstalled"
        )
    (entry,) = readers.values()
    try:
        reader = entry.load()
    except ImportError as problem:
        if missing_extra(problem) is not None:
            raise
        raise InvalidInputError(
            f"the format '{name}' of {_package(entry)} cannot be loaded: {problem}"
        ) from problem
    except Exception as problem:  # whatever somebody else's module does
        raise InvalidInputError(
            f"the format '{name}' of {_package(entry)} cannot be loaded: "
            f"{type(problem).__name__}: {problem}"
        ) from problem
    if not isinstance(reader, Reader):
        raise InvalidInputError(
            f"the format '{name}' of {_package(entry)} is {type(reader).__name__}; wants a Reader"
        )
    return reader


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else entry.value
