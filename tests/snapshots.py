"""All that a change of a folder could change, so that tests can say that nothing did."""

from __future__ import annotations

import os
from pathlib import Path


def everything_below(folder: Path) -> dict[str, tuple[object, ...]]:
    """Of every entry at any depth: what and who it is, and what it holds."""
    found = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        if path.is_symlink():
            held: object = os.readlink(path)
        else:
            held = path.read_bytes() if path.is_file() else status.st_mtime_ns
        name = str(path.relative_to(folder))
        found[name] = (status.st_mode, status.st_ino, held)
    return found
