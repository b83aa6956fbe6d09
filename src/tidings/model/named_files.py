"""Files that a document names: each remembers below which folders it may be opened.

Whoever wrote a system file, or one of scenarios, may not have files of yours read. The permission
belongs to the name itself, so that it goes wherever the name goes: into a system that was changed,
or to a worker on another machine.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from tidings.errors import InvalidInputError
from tidings.model.document import Place

FILES_BELOW = "TIDINGS_FILES_BELOW"  # folders whose files every document may name

_KEPT_BELOW: ContextVar[tuple[str, ...] | None] = ContextVar("_KEPT_BELOW", default=None)


class NamedFile(str):
    """A path from a document, with the resolved folders below one of which it must lie."""

    __slots__ = ("below",)
    below: tuple[str, ...]

    def __new__(cls, path: str, below: Sequence[str]) -> NamedFile:
        """Make a named file from a path and the folders below which it may be opened."""
        named = super().__new__(cls, path)
        named.below = tuple(below)
        return named

    def __reduce__(self) -> tuple[type[NamedFile], tuple[str, tuple[str, ...]]]:
        return NamedFile, (str(self), self.below)


def folders_of(folder: Path) -> tuple[str, ...]:
    """List the folders below which documents of one folder may name files: it, and those allowed.

    Those of ``FILES_BELOW`` in the environment are allowed to all documents.
    """
    given = filter(None, os.environ.get(FILES_BELOW, "").split(os.pathsep))
    return tuple(_resolved(each) for each in (folder, *map(Path, given)))


@contextmanager
def kept_below(folders: Sequence[str] | None) -> Iterator[None]:
    """Keep files that are named meanwhile below these folders; None: wherever they are."""
    token = _KEPT_BELOW.set(None if folders is None else tuple(folders))
    try:
        yield
    finally:
        _KEPT_BELOW.reset(token)


def read_named(place: Place) -> str | None:
    """Read the path of a file; notes a problem where it is there and not where it may be."""
    path, folders = place.text(), _KEPT_BELOW.get()
    if path is None or folders is None or isinstance(path, NamedFile):
        return path
    named = NamedFile(path, folders)
    if "\0" in path or os.path.lexists(path):  # else looked at when it is there and wanted
        try:
            real_place(named)
        except OSError as error:
            place.report(
                f"a file below {folders[0]}, the folder of the file that refers to it",
                saw=f"{path}: {error.strerror}",
                fix=f"or allow its folder with --files-below or {FILES_BELOW}",
            )
    return named


def real_place(path: str) -> Path:
    """Resolve all links of a name, to an absolute path, which is never taken for an address.

    Raises :class:`OSError` where the name cannot be, its links go round, or they lead elsewhere
    than the file may lie.
    """
    try:
        place = Path(path).resolve()
    except (RuntimeError, ValueError) as error:
        raise OSError(errno.EINVAL, str(error)) from error
    if isinstance(path, NamedFile) and not any(map(place.is_relative_to, path.below)):
        raise OSError(errno.EPERM, f"{place}, which is not below {path.below[0]}")
    return place


def _resolved(folder: Path) -> str:
    try:
        return str(folder.resolve())
    except (RuntimeError, OSError, ValueError) as error:
        raise InvalidInputError(
            f"{folder}: not a folder ({error}); wants an existing folder"
        ) from error
