"""A watched folder kept at hand: its latest state and its past, read when their files change."""

from __future__ import annotations

import contextlib
import json
import os
import re
import threading
from collections import deque
from pathlib import Path
from typing import Any

from tidings.model.plain_files import open_plain
from tidings.watching.state import NOW_FILE, PAST_COLUMNS, PAST_FILE, State, read_state

MOST_SERIES_LINES = 2000  # states that a time series goes back
MOST_PAST_BYTES = 32_000_000  # of their lines, which are long where subscribers are many
_AT = re.compile(rb'\{"at_ns":(\d+),')


class WatchedFolder:
    """The latest state of a folder, and what was wrong when it was read last."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.state: State | None = None
        self.problem = ""
        self._mark: tuple[int, ...] = ()

    def renew(self) -> bool:
        """Read the state again if its file is another one than last time; answers whether."""
        mark = file_mark(self.folder / NOW_FILE)
        if mark == self._mark:
            return False
        self._mark = mark
        try:
            self.state, self.problem = read_state(self.folder), ""
        except (OSError, ValueError) as problem:  # what was known before stays
            self.problem = f"{NOW_FILE} cannot be read: {problem}"
        return True


class PastStates:
    """Earlier states, as many as a time series shows; of their file only what is new is read.

    A line has everybody and may be long, and a series wants one of them: it is found in the text as
    ``State.past_line`` writes it, where a quote that belongs to a name is never a bare one.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / PAST_FILE
        self._lines: deque[bytes] = deque()
        self._bytes = 0
        self._file = 0
        self._read = 0
        self._lock = threading.Lock()

    def series(self, name: str) -> dict[str, list[Any]]:
        """Give shares of one subscriber, or of everybody, by time: ``at_s`` and PAST_COLUMNS."""
        with self._lock:
            self._renew()
            lines = list(self._lines)
        key = re.compile(rb"[{,]%s:(\[[^]]*\])" % re.escape(json.dumps(name).encode()))
        rows = [[_at_s(line), *_values(key.search(line))] for line in lines]
        titles = ("at_s", *PAST_COLUMNS)
        return {title: [row[index] for row in rows] for index, title in enumerate(titles)}

    def _renew(self) -> None:
        try:
            with open_plain(self._path) as file:
                status = os.fstat(file.fileno())
                if status.st_ino != self._file or status.st_size < self._read:
                    self._lines.clear()
                    self._bytes = 0
                    self._file, self._read = status.st_ino, 0
                start = max(self._read, status.st_size - MOST_PAST_BYTES)
                file.seek(start)
                chunk = file.read(status.st_size - start)
        except OSError:
            return
        whole, newline, _ = chunk.rpartition(b"\n")
        self._read = start + len(whole) + len(newline)
        for line in whole.split(b"\n"):
            self._add(line)

    def _add(self, line: bytes) -> None:
        if _at_s(line) is None:  # cut by a crash, or by where reading began
            return
        self._lines.append(line)
        self._bytes += len(line)
        while self._bytes > MOST_PAST_BYTES or len(self._lines) > MOST_SERIES_LINES:
            self._bytes -= len(self._lines.popleft())


def _at_s(line: bytes) -> float | None:
    at_ns = _AT.match(line)
    return None if at_ns is None else int(at_ns[1]) / 1e9


def _values(place: re.Match[bytes] | None) -> list[Any]:
    """Read the values of PAST_COLUMNS where a line has them; unknown ones are None."""
    with contextlib.suppress(ValueError):
        if place is not None and len(values := json.loads(place[1])) == len(PAST_COLUMNS):
            return list(values)
    return [None] * len(PAST_COLUMNS)


def file_mark(path: Path) -> tuple[int, ...]:
    """Give what tells a file from the one that was there before; nothing where there is none."""
    try:
        status = path.stat()
    except OSError:
        return ()
    return status.st_ino, status.st_mtime_ns, status.st_size


def to_line(document: Any) -> str:
    """Write plain data as JSON on one line, in ASCII."""
    return json.dumps(document, separators=(",", ":"), allow_nan=False)
