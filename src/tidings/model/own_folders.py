"""Folders for what Tidings compiles and runs again: only this user can write to them."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def cache_folder(kind: str, name: str) -> Path:
    """Find the folder of this kind and name in the user's cache, or make a temporary one.

    It is there, and only this user can have put anything into it.
    """
    user = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    owner = os.getuid() if hasattr(os, "getuid") else "user"
    fallback = Path(tempfile.gettempdir()) / f"tidings-{owner}"
    for root in (Path(user) / "tidings", fallback):
        folder = root / kind / name
        if is_own(folder):
            return folder
    return Path(tempfile.mkdtemp(prefix=f"tidings-{kind}-"))


def is_own(folder: Path) -> bool:
    """Test whether a folder can be made and takes a file, and only we write to it.

    Nor may others write to the two folders above it. Others' code must not be run.
    """
    try:
        folder.parents[2].mkdir(parents=True, exist_ok=True)
        for each in (*folder.parents[1::-1], folder):  # who writes to one puts another in its place
            each.mkdir(exist_ok=True, mode=0o700)
            status = each.stat()
            if hasattr(os, "getuid") and (status.st_uid != os.getuid() or status.st_mode & 0o022):
                return False
        tempfile.TemporaryFile(dir=folder).close()
    except (OSError, RuntimeError):
        return False
    return True
