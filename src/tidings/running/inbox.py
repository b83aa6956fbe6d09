"""A folder that pieces of a source are put into, each in one step, with how far it reaches.

A piece is a folder ``KEY-BEGIN-END``: rows and the offset after them appear together, by one
renaming. Whoever is killed goes on from where the last piece ends: nothing is lost and nothing is
there twice. Offsets are whatever the source counts by, messages or bytes.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from tidings.model.writing import keep_below, keep_on_disk

_PIECE = re.compile(r"([a-z]+)-(\d{20})-(\d{20})")


class Inbox:
    """The pieces of a source that have been read and are there to be taken in."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        for each in folder.iterdir():
            if each.name.startswith("."):  # begun by a run that was killed
                shutil.rmtree(each)

    def reached(self, key: str) -> int:
        """Where the next piece of this key begins; 0 where none has been read."""
        ends = [int(found[3]) for found in self._found() if found[1] == key]
        return max(ends, default=0)

    def put(self, key: str, begin: int, end: int, files: Mapping[str, bytes]) -> None:
        """Put a piece in place, in one step; it may have no files, and only say how far it is."""
        name = f"{key}-{begin:020d}-{end:020d}"
        draft = self.folder / f".{name}"
        draft.mkdir()
        for file, data in files.items():
            (draft / file).write_bytes(data)
        keep_below(draft)
        os.rename(draft, self.folder / name)
        keep_on_disk(self.folder)

    def pieces(self) -> list[str]:
        """The names of all pieces that are there."""
        return [found[0] for found in self._found()]

    def clear(self, taken: Iterable[str]) -> None:
        """Remove pieces that have been taken in; the last of each key stays, as it says how far."""
        for name in taken:
            found = _PIECE.fullmatch(name)
            if found is not None and int(found[3]) < self.reached(found[1]):
                shutil.rmtree(self.folder / name, ignore_errors=True)

    def _found(self) -> list[re.Match[str]]:
        names = sorted(each.name for each in self.folder.iterdir())
        return [found for name in names if (found := _PIECE.fullmatch(name))]
