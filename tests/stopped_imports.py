"""What an import leaves that is killed at its last step."""

from __future__ import annotations

import os
from pathlib import Path

from tidings.traces import marks


def mark_for(folder: Path) -> str:
    """The mark that an import of this user would leave in a folder."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        return marks.make(handle)
    finally:
        os.close(handle)
