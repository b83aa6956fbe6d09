"""What a power cut leaves of the notes on which files a stream has handed over, mended.

Spark writes them without waiting for the disk. So the stream waits before rows are taken in: what a
cut leaves half-written is then of a batch of which nothing was taken, and can go. Spark hands its
files over again.
"""

from __future__ import annotations

import re
from pathlib import Path

from tidings.model import json_text

_HEAD = b"v1\n"
_NUMBERED = re.compile(r"(\d+)(\.compact)?")
_NOTHING = b"-"  # what Spark writes of a source that has no offset yet


def mend(checkpoint: Path) -> None:
    """Remove the newest notes where they are not whole, or tell of files whose list is not."""
    metadata = checkpoint / "metadata"
    if metadata.exists() and not _are_whole(metadata.read_bytes()):
        _remove(metadata)
    for log in ("commits", "offsets", "sources/0"):
        while (newest := _newest(checkpoint / log)) and not _is_whole(newest):
            _remove(newest)
        if newest is not None:
            _checksum(newest).unlink(missing_ok=True)  # it may be spoilt where the note is whole
    listed = _number(_newest(checkpoint / "sources/0"))
    while (newest := _newest(checkpoint / "offsets")) and _told_of(newest) > listed:
        _remove(newest)


def _newest(log: Path) -> Path | None:
    notes = (
        [each for each in log.iterdir() if _NUMBERED.fullmatch(each.name)] if log.is_dir() else []
    )
    return max(notes, key=_number, default=None)


def _number(note: Path | None) -> int:
    found = None if note is None else _NUMBERED.fullmatch(note.name)
    return -1 if found is None else int(found[1])


def _is_whole(note: Path) -> bool:
    text = note.read_bytes()
    return text.startswith(_HEAD) and _are_whole(*text.removeprefix(_HEAD).split(b"\n"))


def _are_whole(*lines: bytes) -> bool:
    try:
        return all(line == _NOTHING or isinstance(json_text.parse(line), dict) for line in lines)
    except ValueError:
        return False


def _told_of(offsets: Path) -> int:
    """Read up to which list of files an entry of the offsets goes; -1: to none."""
    last = offsets.read_bytes().split(b"\n")[-1]
    return -1 if last == _NOTHING else int(json_text.parse(last).get("logOffset", -1))


def _remove(note: Path) -> None:
    note.unlink()
    _checksum(note).unlink(missing_ok=True)


def _checksum(note: Path) -> Path:
    return note.with_name(f".{note.name}.crc")
