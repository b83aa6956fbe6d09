"""A folder that pieces of a source are put into, each in one step, with how far it reaches.

A piece is a folder ``KEY-BEGIN-END``: rows and the offset after them appear together, by one
renaming. Whoever is killed goes on from where the last piece ends: nothing is lost and nothing is
there twice. Offsets are whatever the source counts by, messages or bytes. A source that begins anew
counts from 0 again: the pieces' own offsets go on, and an empty piece ``KEYanew-BEGIN-END`` says
from where on they are of the new one.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tidings.model.trace_tables import MANIFEST
from tidings.model.writing import keep_below, keep_on_disk, write_file

_ANEW = "anew"
_PIECE = re.compile(r"([a-z]+)-(\d{20})-(\d{20})")


class Inbox:
    """The pieces of a source that have been read and are there to be taken in."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def reached(self, key: str) -> int:
        """Find where the next piece of this key begins; 0 where none has been read."""
        return self._end(key) - self._end(key + _ANEW)

    def begin_anew(self, key: str) -> None:
        """Count the offsets of a key from 0 again, as its source does."""
        self._put(key + _ANEW, self._end(key + _ANEW), self._end(key), {})

    def put(self, key: str, begin: int, end: int, files: Mapping[str, bytes]) -> None:
        """Put a piece in place, in one step; it may have no files, and only say how far it is."""
        before = self._end(key + _ANEW)
        self._put(key, before + begin, before + end, files)

    def _put(self, key: str, begin: int, end: int, files: Mapping[str, bytes]) -> None:
        with self.putting(key, begin, end) as draft:
            for file, data in files.items():
                (draft / file).write_bytes(data)

    @contextmanager
    def putting(self, key: str, begin: int, end: int) -> Iterator[Path]:
        """Make a piece to fill, put in place in one step when the block ends well."""
        name = f"{key}-{begin:020d}-{end:020d}"
        draft = self.folder / f".{name}"
        for each in self.folder.glob(f".{key}-*-*"):  # begun by a run that was killed
            shutil.rmtree(each)
        draft.mkdir()
        try:
            yield draft
            keep_below(draft)
            os.rename(draft, self.folder / name)
        except Exception:
            shutil.rmtree(draft, ignore_errors=True)
            raise
        keep_on_disk(self.folder)

    def newest(self, key: str) -> Path | None:
        """Find the last piece of this key; None where none has been read."""
        names = [piece[0] for piece in self._pieces() if piece[1] == key]
        return self.folder / max(names) if names else None

    def describe(self, manifest: bytes) -> None:
        """Keep the manifest of what is in the pieces, in the place of an older one."""
        write_file(self.folder / MANIFEST, manifest)

    def pieces(self) -> list[str]:
        """List the names of all pieces that are there."""
        return [piece[0] for piece in self._pieces()]

    def clear(self, taken: Iterable[str]) -> None:
        """Remove pieces that have been taken in; the last of each key stays, as it says how far."""
        for name in taken:
            piece = _PIECE.fullmatch(name)
            if piece is not None and int(piece[3]) < self._end(piece[1]):
                shutil.rmtree(self.folder / name, ignore_errors=True)

    def _end(self, key: str) -> int:
        return max((int(piece[3]) for piece in self._pieces() if piece[1] == key), default=0)

    def _pieces(self) -> list[re.Match[str]]:
        names = sorted(each.name for each in self.folder.iterdir())
        return [piece for name in names if (piece := _PIECE.fullmatch(name))]
