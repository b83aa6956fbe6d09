"""What was measured of a watched system, as far back as somebody asks.

The file has a line for every stretch of time, with the counts of every subscriber. Of 10,000 of
them six hours are millions of counts: in memory they are two arrays.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tidings.model import json_text
from tidings.model.plain_files import open_plain
from tidings.model.writing import write_file
from tidings.watching.counts import EventCounts, Stretch, joined
from tidings.watching.shares import StretchTally, tally

MEASURED_FILE = "measured.jsonl"
MOST_STRETCHES = 720  # twelve hours of minutes; where they are shorter, older ones are joined


@dataclass(slots=True, kw_only=True)
class Ledger:
    """The file of stretches that were measured, and how many events some names had in each.

    A line is added for each stretch; the file is written anew when half of its lines are too old.
    """

    path: Path
    keep_s: float
    names: tuple[str, ...]
    _newest: Stretch | None = field(init=False, default=None)
    _counted: StretchTally | None = field(init=False, default=None)
    _lines: int = field(init=False, default=0)

    def read(self) -> StretchTally:
        """Count the events of all stretches, in the order of time; of none if nothing is legible.

        Then all is measured anew from here on.
        """
        if self._counted is not None:
            return self._counted
        self._newest = None
        try:
            self._drop_half_a_line()
            self._counted = tally(self._remembered(_stretches(self.path)), self.names)
        except (OSError, ValueError, LookupError, TypeError):
            self._newest, self._counted = None, tally([], self.names)
        self._lines = len(self._counted.until_ns)
        return self._counted

    @property
    def newest(self) -> Stretch | None:
        """The last stretch, with the counts of everybody; None where there is none."""
        self.read()
        return self._newest

    def add(self, stretch: Stretch) -> None:
        """Write one more stretch, and leave those out that are too old."""
        counted = self.read()
        if self._lines:
            with self.path.open("ab") as lines:
                lines.write(_line(stretch))
                lines.flush()
                os.fsync(lines.fileno())
        else:
            write_file(self.path, _line(stretch))
        self._lines += 1
        self._newest = stretch
        oldest_ns = stretch.until_ns - round(self.keep_s * 1e9)
        self._counted = counted.then(stretch).since(oldest_ns)
        kept = len(self._counted.until_ns)
        if kept > MOST_STRETCHES or self._lines > 2 * kept:
            self._renew(oldest_ns, pairs=kept // 4 if kept > MOST_STRETCHES else 0)

    def _renew(self, oldest_ns: int, *, pairs: int) -> None:
        """Write the file without what is too old, and with the oldest stretches joined in pairs."""
        young = (each for each in _stretches(self.path) if each.until_ns > oldest_ns)
        write_file(self.path, map(_line, _in_pairs(young, pairs)))
        assert self._counted is not None
        self._lines = len(self._counted.until_ns)
        if pairs:
            self._counted = None
            self.read()

    def _remembered(self, stretches: Iterable[Stretch]) -> Iterator[Stretch]:
        for self._newest in stretches:
            yield self._newest

    def _drop_half_a_line(self) -> None:
        """Cut off the line in the middle of which somebody was killed."""
        with self.path.open("r+b") as lines:
            whole = sum(len(each) for each in lines if each.endswith(b"\n"))
            if whole < lines.seek(0, os.SEEK_END):
                lines.truncate(whole)
                os.fsync(lines.fileno())


def _in_pairs(stretches: Iterable[Stretch], pairs: int) -> Iterator[Stretch]:
    """Join so many pairs of neighbours; yields all others as they are."""
    rest = iter(stretches)
    for _, one in zip(range(pairs), rest, strict=False):
        other = next(rest)
        yield from [joined(one, other)] if one.until_ns == other.from_ns else [one, other]
    yield from rest


def _stretches(path: Path) -> Iterator[Stretch]:
    with open_plain(path) as lines:
        yield from (_stretch(json_text.parse(line)) for line in lines)


def _line(stretch: Stretch) -> bytes:
    """Write a stretch with a list of each kind of count, which is quicker to read than records."""
    columns = zip(*stretch.counts.values(), strict=True) if stretch.counts else ((), (), ())
    document = {
        "from_ns": stretch.from_ns,
        "until_ns": stretch.until_ns,
        "names": list(stretch.counts),
        **dict(zip(EventCounts._fields, columns, strict=True)),
    }
    return json.dumps(document, separators=(",", ":")).encode() + b"\n"


def _stretch(document: Mapping[str, Any]) -> Stretch:
    columns = (document[name] for name in EventCounts._fields)
    counts = map(EventCounts._make, zip(*columns, strict=True))
    return Stretch(
        from_ns=document["from_ns"],
        until_ns=document["until_ns"],
        counts=dict(zip(document["names"], counts, strict=True)),
    )
