"""Marks by which an import knows again, after it was stopped, what it left in a folder itself.

Whatever lies in a folder may have come with it. So a mark is a random token, of which a note is
kept where only this user writes: the state folder (``XDG_STATE_HOME``, or ``~/.local/state``). The
note says of which folder the mark is, by device and inode, so that a copy of the folder has none.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import stat
from pathlib import Path

from tidings.model.plain_files import read_text

_TOKEN = re.compile("[0-9a-f]{32}")


def make(handle: int) -> str:
    """Make a mark for an opened folder; where no note can be kept, nobody knows it again."""
    token = secrets.token_hex(16)
    with contextlib.suppress(OSError, RuntimeError):
        notes = _notes()
        notes.parents[1].mkdir(parents=True, exist_ok=True)
        for folder in (notes.parent, notes):
            folder.mkdir(exist_ok=True, mode=0o700)
        note = os.open(notes / token, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with open(note, "w", encoding="ascii") as file:
            file.write(_identity(handle))
    return token


def is_known(token: object, handle: int) -> bool:
    """Test whether a mark was made here for this very folder."""
    if not isinstance(token, str) or not _TOKEN.fullmatch(token):
        return False
    try:
        notes = _notes()
        return _is_ours_alone(notes) and read_text(notes / token) == _identity(handle)
    except (OSError, RuntimeError, ValueError):
        return False


def forget(token: str) -> None:
    """Remove the note of a mark whose work is done."""
    with contextlib.suppress(OSError, RuntimeError):
        (_notes() / token).unlink()


def _notes() -> Path:
    given = os.environ.get("XDG_STATE_HOME", "")
    state = Path(given) if os.path.isabs(given) else Path.home() / ".local" / "state"
    return state / "tidings" / "imports"


def _is_ours_alone(folder: Path) -> bool:
    """Test whether nobody else could have put a note there."""
    status = [each.stat() for each in (folder, folder.parent)]
    others = stat.S_IWGRP | stat.S_IWOTH
    return all(each.st_uid == os.getuid() and not each.st_mode & others for each in status)


def _identity(handle: int) -> str:
    status = os.fstat(handle)
    return f"{status.st_dev} {status.st_ino}"
