"""Spans that come into a folder, followed: what is new becomes rows of trace tables, each once.

Spans of one trace lie in several files, in any order. A span waits until the newest publication is
a margin later than it: by then all that it leads to has come in, and the reader of ``tidings import
otlp`` makes its rows. So far as this has gone is one moment: a row of later than that has not been
imported, one of before has, unless its file came after that. Such rows are imported late, and the
stream decides whether they still count. Files are read again until all in them is that old.

What must be known the next time is a file of the piece that has the rows: both appear in one step.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Protocol

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as parquet
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from tidings.errors import EngineError, InvalidInputError, InvalidTracesError
from tidings.model import json_text
from tidings.model.events import parse_event
from tidings.model.filters import matches
from tidings.model.plain_files import read_text
from tidings.model.system import System
from tidings.model.trace_files import subscription_table, trace_table
from tidings.traces.actions import bring_here
from tidings.traces.importing import SET_ASIDE, keep_in, with_black_box, write_tables
from tidings.traces.places import uncompressed
from tidings.traces.readers import otlp
from tidings.traces.readers.lifetimes import Lifetimes
from tidings.traces.readers.lines import FILE
from tidings.traces.readers.reading import Keep, Reading
from tidings.traces.span_folders import span_files, written_since_ns

KEY, STATE = "spans", "followed.json"  # of pieces, and what each of them has besides rows
_IMPORT = "import"  # where rows are written before they are in place
_SUBSCRIPTIONS = "subscriptions"


class Pieces(Protocol):
    """Where pieces are put in place, one after the other, each in one step."""

    def reached(self, key: str) -> int:
        """Find the number of the next piece."""
        ...

    def newest(self, key: str) -> Path | None:
        """Find the last piece; None where there is none yet."""
        ...

    def putting(self, key: str, begin: int, end: int) -> AbstractContextManager[Path]:
        """Make a piece to fill."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """How far a folder of spans has been followed; times are in nanoseconds."""

    until_ns: int = 0  # rows of before have been imported
    newest_ns: int = 0  # the latest publication so far
    files: Mapping[str, int] = field(default_factory=dict)  # of the folder, and their latest span
    subscriptions: Mapping[str, Sequence[str]] = field(default_factory=dict)  # by subscriber

    @classmethod
    def read(cls, piece: Path | None) -> Followed:
        """Read what the last piece says; of the very beginning where there is none."""
        if piece is None:
            return cls()
        try:
            return cls(**json_text.parse(read_text(piece / STATE)))
        except (OSError, ValueError, TypeError) as problem:
            raise InvalidTracesError(
                f"{piece / STATE}: cannot be read ({problem}); watch with a new --state and --store"
            ) from problem

    def write(self, piece: Path) -> None:
        """Write it into a piece."""
        (piece / STATE).write_text(json.dumps(asdict(self)), encoding="utf-8")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What is imported at once: rows between two moments, and earlier ones of files that are new.

    ``latest`` has the latest span of every file that was read.
    """

    from_ns: int
    until_ns: int
    newest_ns: int
    latest: Mapping[str, int]
    new: Collection[str] | None  # files, as rows name them; None: all of them are

    def is_due(self, at_ns: str) -> Column:
        """Tell whether a row is imported now, by the column that says when it happened."""
        at = F.col(at_ns)
        now = (at >= self.from_ns) & (at < self.until_ns)
        late = at.isNull() | (at < self.from_ns)
        return now | (late & self.is_new())

    def is_new(self) -> Column:
        """Tell whether a row is of a file that was not read before."""
        return F.lit(True) if self.new is None else F.col(FILE).isin(*self.new)


class SpanFolder:
    """A folder of spans, as a source whose rows are fetched into an inbox."""

    def __init__(
        self,
        spark: SparkSession,
        folder: Path,
        system: System,
        *,
        margin_s: float,
        lifetimes: Lifetimes | None = None,
        now_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._spark, self._folder, self._system = spark, folder, system
        self._margin_ns = round(margin_s * 1e9)
        self._lifetimes = lifetimes or Lifetimes()
        self._now_ns = now_ns
        self._broker = only_broker(system)

    def fetch(self, inbox: Pieces) -> str:
        """Import all that is due; gives what is to be told of it, if anything."""
        piece = inbox.newest(KEY)
        known = Followed.read(piece)
        written_ns = written_since_ns(self._folder)  # first: it may get its name meanwhile
        there = span_files(self._folder)
        new = there.keys() - known.files.keys()
        if not new and self._due_ns(known.newest_ns, written_ns) <= known.until_ns:
            return ""
        open_ns = known.until_ns - self._margin_ns
        open_files = {name for name, latest_ns in known.files.items() if latest_ns >= open_ns}
        number = inbox.reached(KEY)
        try:
            with inbox.putting(KEY, number, number + 1) as draft:
                (draft / _SUBSCRIPTIONS).mkdir()
                if piece is None:
                    seed = subscription_table(self._system.subscribers, 0)
                    parquet.write_table(seed, draft / _SUBSCRIPTIONS / "given.parquet")
                read = new | (open_files & there.keys())
                now, told = self._import(draft, known, {n: there[n] for n in read}, written_ns)
                files = {n: latest for n, latest in now.files.items() if n in there}
                replace(now, files=files).write(draft)
        except InvalidTracesError as problem:
            raise EngineError(f"the spans of {self._folder} cannot be read: {problem}") from problem
        gone = sorted(open_files - there.keys())
        if gone:
            told.append(f"removed before all of their spans were taken in: {', '.join(gone)}")
        return "; ".join(told)

    def _due_ns(self, newest_ns: int, written_ns: int | None) -> int:
        """Find the moment before which all spans have come in.

        Spans in a file that is being written are of a margin before it was begun, at the earliest.
        """
        return min(newest_ns, newest_ns if written_ns is None else written_ns) - self._margin_ns

    def _import(
        self, draft: Path, known: Followed, read: Mapping[str, Path], written_ns: int | None
    ) -> tuple[Followed, list[str]]:
        """Fill a piece with the rows that are due; gives how far that is, and what to tell."""
        if not read:  # all that was waited for has been removed
            return replace(known, until_ns=self._due_ns(known.newest_ns, written_ns)), []
        files = sorted(str(path.resolve()) for path in read.values())
        fresh = draft / _IMPORT
        keep, kept = keep_in(self._spark, fresh, files), _Kept()
        reading = otlp.read_otlp(self._spark, files, kept.keeping(keep), self._lifetimes)
        step, ahead = self._step(kept.frames["spans"], known, written_ns)
        added = self._new_subscriptions(reading, known)
        due = with_black_box(_due(reading, step), self._broker)
        account = write_tables(self._spark, due, files, fresh)
        for table in sorted((fresh / "tables").iterdir()):
            os.rename(table, draft / table.name)
        shutil.rmtree(fresh)
        if added:
            since_ns = max(known.until_ns - self._margin_ns, 0)  # nothing later has been counted
            table = _steps(added, self._broker, since_ns)
            parquet.write_table(table, draft / _SUBSCRIPTIONS / "seen.parquet")
        now = Followed(
            until_ns=step.until_ns,
            newest_ns=step.newest_ns,
            files={**known.files, **dict.fromkeys(read, 0), **step.latest},  # some have no span
            subscriptions=_together(known.subscriptions, added),
        )
        return now, [*_set_aside(account), *ahead]

    def _step(
        self, spans: DataFrame, known: Followed, written_ns: int | None
    ) -> tuple[Step, list[str]]:
        """Find what is due, by the times of all spans; tell of those that cannot be of any time."""
        now_ns = self._now_ns()
        start, end = (F.col(name).try_cast("bigint") for name in ("start_ns", "end_ns"))
        ahead = start > now_ns + self._margin_ns
        latest = F.greatest(*(F.when(at <= now_ns + self._margin_ns, at) for at in (start, end)))
        published = (F.col("role") == "producer") & (start <= now_ns)
        rows = bring_here(
            spans.groupBy(FILE).agg(
                F.coalesce(F.max(latest), F.lit(0)).alias("latest"),
                F.coalesce(F.max(F.when(published, start)), F.lit(0)).alias("newest"),
                F.count_if(F.col("role").isNotNull() & ahead).alias("ahead"),
            ),
            f"the spans of {self._folder}",
        )
        rows["name"] = [uncompressed(Path(file).name) for file in rows[FILE]]
        is_new = ~rows["name"].isin(list(known.files))
        newest_ns = max([known.newest_ns, *map(int, rows["newest"])])
        step = Step(
            from_ns=known.until_ns,
            until_ns=max(known.until_ns, self._due_ns(newest_ns, written_ns)),
            newest_ns=newest_ns,
            latest=dict(zip(rows["name"], map(int, rows["latest"]), strict=True)),
            new=None if is_new.all() else rows.loc[is_new, FILE].tolist(),
        )
        number = int(rows.loc[is_new, "ahead"].sum())
        said = "spans are dated more than a margin ahead of this machine's clock and not taken in"
        return step, [f"{number} {said}"] if number else []

    def _new_subscriptions(self, reading: Reading, known: Followed) -> dict[str, list[str]]:
        """Find who wants what nobody knew so far, of all that is published.

        They are as many as the system has, and are told once.
        """
        published = reading.tables["publications"].select(F.col("content").alias("filter"))
        wanted = reading.tables[_SUBSCRIPTIONS].where(F.col("subscriber").isNotNull())
        rows = wanted.select("subscriber", "filter").distinct()
        seen = bring_here(
            rows.join(published.distinct(), "filter", "left_semi").orderBy("subscriber", "filter"),
            f"the subscriptions of {self._folder}",
        )
        given = {each.name: each.wants for each in self._system.subscribers}
        added: dict[str, list[str]] = {}
        for name, text in zip(seen["subscriber"], seen["filter"], strict=True):
            is_given = name in given and matches(given[name], parse_event(text))
            if not is_given and text not in known.subscriptions.get(name, ()):
                added.setdefault(name, []).append(text)
        return added


class _Kept:
    """What a reader had kept, by name."""

    def __init__(self) -> None:
        self.frames: dict[str, DataFrame] = {}

    def keeping(self, keep: Keep) -> Keep:
        """Note what is kept."""

        def noted(frame: DataFrame, name: str) -> DataFrame:
            self.frames[name] = keep(frame, name)
            return self.frames[name]

        return noted


def only_broker(system: System) -> str:
    """Give the name of the one broker of a system: spans tell of none, and one stands for all."""
    if len(system.brokers) != 1:
        raise InvalidInputError(
            f"--system has {len(system.brokers)} brokers, but spans tell of none, so that one "
            "stands for all; wants a system with one, such as 'tidings characterise' makes of "
            "what 'tidings import otlp' wrote"
        )
    return system.brokers[0].name


def _due(reading: Reading, step: Step) -> Reading:
    times = {"publications": "published_ns", "deliveries": "received_ns"}
    rows = {name: reading.tables[name].where(step.is_due(at_ns)) for name, at_ns in times.items()}
    return replace(reading, tables=rows, records=reading.records.where(step.is_new()))


def _set_aside(account: pd.DataFrame) -> Iterator[str]:
    """Yield what to tell of spans, and rows of them, that could not be used."""
    for row in account[account["fate"] == SET_ASIDE].itertuples():
        yield f"{row.rows} {row.table} were set aside: {row.reason}"


def _together(
    known: Mapping[str, Sequence[str]], added: Mapping[str, Sequence[str]]
) -> dict[str, list[str]]:
    names = sorted({*known, *added})
    return {name: [*known.get(name, ()), *added.get(name, ())] for name in names}


def _steps(added: Mapping[str, Sequence[str]], broker: str, at_ns: int) -> pa.Table:
    """Make the rows with which subscriptions begin."""
    pairs = [(name, text) for name, texts in added.items() for text in texts]
    columns = {
        "subscription": [f"{name} {text}" for name, text in pairs],
        "subscriber": [name for name, _ in pairs],
        "broker": [broker] * len(pairs),
        "action": ["subscribe"] * len(pairs),
        "at_ns": [at_ns] * len(pairs),
        "filter": [text for _, text in pairs],
    }
    return trace_table(_SUBSCRIPTIONS, columns)
