"""Lines appended to a folder, in files that appear whole.

Lines go to a hidden file, and are on the disk before whoever handed them over is told so. The file
gets its name, which readers see, when it is old or large enough, or when all ends. A process that
is killed leaves the hidden file, with a half line at its end at most: whoever appends to the folder
next cuts that off and gives the file its name.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import threading
import time
from pathlib import Path
from typing import BinaryIO

from tidings.model.writing import keep_on_disk
from tidings.traces.span_folders import SPANS

MOST_BYTES = 64 << 20  # of a file
_BLOCK = 1 << 16


class _Part:
    """A hidden file that is being written, held by this process alone."""

    def __init__(self, folder: Path) -> None:
        self.began = time.monotonic()
        now_ns = time.time_ns()
        moment = time.strftime("%Y%m%dT%H%M%S", time.gmtime(now_ns // 10**9))
        name = f"{SPANS}{moment}.{now_ns % 10**9:09d}-{secrets.token_hex(3)}.jsonl"
        self.place, self.draft = folder / name, folder / f".{name}.part"
        self._stream: BinaryIO = self.draft.open("xb", buffering=0)
        fcntl.flock(self._stream, fcntl.LOCK_EX)
        keep_on_disk(folder)
        self.size = 0
        self._kept = 0  # bytes that are on the disk
        self._keeping = threading.Lock()

    def write(self, lines: bytes) -> int:
        """Write lines behind those there, all or none; answers how many bytes there are then."""
        try:
            left = memoryview(lines)
            while left:
                left = left[self._stream.write(left) :]
        except OSError:
            self._stream.truncate(self.size)
            self._stream.seek(self.size)
            raise
        self.size += len(lines)
        return self.size

    def keep(self, size: int) -> None:
        """Wait until so many bytes are on the disk; who waits meanwhile is served as well."""
        with self._keeping:
            if self._kept < size:
                reached = self.size
                os.fsync(self._stream.fileno())
                self._kept = reached

    def finish(self) -> None:
        """Give the file its name, or remove it where it is empty."""
        self.keep(self.size)
        with self._keeping:
            _place(self.draft, self.place, self.size)
            self._stream.close()


class Appending:
    """A folder that lines are appended to, by several threads at once."""

    def __init__(self, folder: Path, *, most_s: float, most_bytes: int = MOST_BYTES) -> None:
        self._folder = folder
        self._most_s, self._most_bytes = most_s, most_bytes
        self._part: _Part | None = None
        self._writing = threading.Lock()
        self.files = 0  # that got their names
        self.recovered = _recover(folder)

    def append(self, lines: bytes) -> None:
        """Append whole lines; they are on the disk when this returns."""
        with self._writing:
            if self._part is None:
                self._part = _Part(self._folder)
            part = self._part
            size = part.write(lines)
        part.keep(size)
        if size >= self._most_bytes:
            self._turn(part)

    def look(self) -> None:
        """Give the file its name if it is old enough."""
        part = self._part
        if part is not None and time.monotonic() - part.began >= self._most_s:
            self._turn(part)

    def close(self) -> None:
        """Give the file its name, whatever its age."""
        if self._part is not None:
            self._turn(self._part)

    def _turn(self, part: _Part) -> None:
        with self._writing:
            if self._part is part:  # else somebody else has done it
                self.files += part.size > 0
                part.finish()
                self._part = None


def _recover(folder: Path) -> int:
    """Give files that a process left behind their names, less a half line; answers how many."""
    recovered = 0
    for draft in sorted(folder.glob(f".{SPANS}*.jsonl.part")):
        with draft.open("r+b") as stream:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:  # another process is writing it
                continue
            size = _whole_lines(stream)
            stream.truncate(size)
            os.fsync(stream.fileno())
            _place(draft, draft.with_name(draft.name.removeprefix(".").removesuffix(".part")), size)
            recovered += size > 0
    return recovered


def _whole_lines(stream: BinaryIO) -> int:
    """Find up to which byte a file has whole lines."""
    end = stream.seek(0, os.SEEK_END)
    while end > 0:
        begin = max(0, end - _BLOCK)
        stream.seek(begin)
        last = stream.read(end - begin).rfind(b"\n")
        if last >= 0:
            return begin + last + 1
        end = begin
    return 0


def _place(draft: Path, place: Path, size: int) -> None:
    if size:
        os.replace(draft, place)
    else:
        draft.unlink()
    keep_on_disk(place.parent)
