"""Rows that have come in and are not counted yet, batch by batch, in periods of the time.

Every micro-batch becomes a folder ``batch-7/TABLE/period=28333333/…parquet``, put in place in one
step with a record of the files that it came from: a batch that comes again is known by its number
and taken once. A row belongs to the period in which it happened. Rows of periods that are counted
already have come too late: they stay in ``late/`` of their batch for a week, and are not counted.
So do, for ever, rows in ``early/``: dated long before all others when the first period is counted.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path

import pyarrow.parquet
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidings.characterisation.count.store import extremes
from tidings.errors import InvalidTracesError, TidingsError
from tidings.model import json_text
from tidings.model.plain_files import read_text
from tidings.model.trace_tables import TRACE_TABLES
from tidings.model.writing import keep_below, keep_on_disk
from tidings.traces.actions import run_action
from tidings.traces.canonical import canonical
from tidings.traces.places import TablePlace, kind_of_name
from tidings.traces.quarantine import UNREADABLE
from tidings.traces.reading import open_table
from tidings.traces.window import DAY_NS

# When each row happened.
TIMES = {
    "publications": "published_ns", "hops": "arrived_ns", "deliveries": "received_ns",
    "probes": "sent_ns", "states": "at_ns", "sessions": "at_ns", "subscriptions": "at_ns",
    "utilisation": "until_ns", "levels": "at_ns",
}  # fmt: skip
_RECORD, _LATE, _EARLY, _PERIOD = "batch.json", "late", "early", "period"
_TIMELESS = -1  # the period of rows that do not say when
_GONE = -1  # the size of a file that is no longer there
_BATCH = re.compile(r"batch-(\d+)")
# Tables whose rows tell when something was going on; changes of others hold until the next one.
_HAPPENING = ("publications", "hops", "deliveries", "probes", "utilisation", "levels")
_HOLE_NS = DAY_NS  # without any row, after which few rows before are of a clock that is wrong
LATE_KEPT_S = 7 * 86_400.0  # for somebody to look at
_FEW = 0.1  # of all rows; or a single one


@dataclass(frozen=True, slots=True, kw_only=True)
class MicroBatch:
    """What one micro-batch brought; what is counted ``so far`` includes all earlier ones."""

    number: int
    files: tuple[str, ...]
    sizes: tuple[int, ...] = ()  # of the files, in bytes, before they were read
    period_ns: int = 0  # how long its periods are; 0: nobody wrote it down
    rows: int = 0
    late_rows: int = 0  # so far: of periods that were counted already, or of times to come
    refused: Mapping[str, str] = field(default_factory=dict)  # files that cannot be read, and why
    refused_files: int = 0  # so far
    newest_ns: int = -1  # the latest publication so far
    tables: tuple[str, ...] = ()  # seen so far

    @property
    def strange(self) -> list[str]:
        """List files that belong to no table: nothing was read of them."""
        return [file for file in self.files if table_of(file) is None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What decides where a row goes: length of periods, what is counted, what cannot be yet."""

    period_ns: int
    counted_until_ns: int  # periods before are counted
    now_ns: int  # rows of later than this are of a clock that is wrong


class Staging:
    """The folder of rows that wait to be counted."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def latest(self) -> MicroBatch | None:
        """Read the batch that came last; None before the first."""
        numbers = [_batch_number(each) for each in self._batches()]
        return self._read(max(numbers)) if numbers else None

    def take(
        self, spark: SparkSession, number: int, files: Sequence[str], limits: Limits
    ) -> MicroBatch:
        """Take the rows of some files in as a batch; what was taken in before is left as it is."""
        files = sorted(files)
        sizes = tuple(map(_size, files))
        before = self.latest()
        if before is not None and before.number >= number:
            known = self._read(number) if self._place(number).exists() else before
            if known.number == number and list(known.files) != files:
                raise InvalidTracesError(
                    f"{self.folder}: batch {number} was of other files than now; the checkpoint "
                    "beside it is lost or of another source. Watch with a new --state, and a new "
                    "--store if the same rows would come again"
                )
            return before
        draft = self.folder / f".batch-{number}"
        if draft.exists():  # begun by a run that was killed: its batch comes again
            shutil.rmtree(draft)
        draft.mkdir(parents=True)
        refused = _write(spark, files, draft, limits.period_ns)
        batch = _sorted_out(draft, limits, MicroBatch(
            number=number, files=tuple(files), sizes=sizes, refused=refused
        ), before)  # fmt: skip
        (draft / _RECORD).write_text(json.dumps(asdict(batch)), encoding="utf-8")
        keep_below(draft)
        os.rename(draft, self._place(number))
        keep_on_disk(self.folder)
        return batch

    def check_period(self, period_ns: int) -> None:
        """Raise if rows wait in periods of another length: their folders would mean other times."""
        newest = self.latest()
        if newest is not None and newest.period_ns not in (0, period_ns):
            was_s = newest.period_ns / 1e9
            raise InvalidTracesError(
                f"{self.folder}: rows wait here in parts of {was_s:g} s, but parts are "
                f"{period_ns / 1e9:g} s long; give --part {was_s:g}s, or a new --state and --store"
            )

    def changed_files(self) -> dict[str, int]:
        """Find files that have another size than when they were read, and that size in bytes.

        Of batches of which rows wait, and of the newest one.
        """
        newest = self.latest()
        waiting = [
            self._read(_batch_number(each))
            for each in self._batches()
            if any((each / table).is_dir() for table in TIMES)
        ]
        return {
            file: now
            for batch in ([newest] if newest is not None else []) + waiting
            for file, size in zip(batch.files, batch.sizes, strict=False)
            if (now := _size(file)) not in (size, _GONE)
        }

    def set_strays_aside(self, period_ns: int) -> None:
        """Move rows dated long before all others out of the way: nothing begins with them.

        Before there is a first part nothing tells what is too late, so that the others decide: few
        rows, a tenth of all at most, with a hole behind them of a day or more, in which nothing
        happened, that is longer than all that comes after it.
        """
        places = [each for table in _HAPPENING for each in self._periods(table)]
        counts: Counter[int] = Counter()
        for path, number in places:
            counts[number] += _rows(path)
        until = _end_of_strays(counts, -(-_HOLE_NS // period_ns))
        for path, number in places:
            if number < until:
                aside = path.parents[1] / _EARLY / path.parent.name
                aside.mkdir(parents=True, exist_ok=True)
                os.rename(path, aside / path.name)
                keep_on_disk(aside)

    def strays(self) -> int:
        """Count the rows that were set aside as dated long before all others."""
        return sum(_rows(path) for path in self.folder.glob(f"batch-*/{_EARLY}/*/{_PERIOD}=*"))

    def rows(self, spark: SparkSession, table: str, until_ns: int, period_ns: int) -> DataFrame:
        """Read the rows of a table that wait and are of periods before a moment; perhaps none."""
        places = [
            f"file://{path.resolve()}"
            for path, number in self._periods(table)
            if number * period_ns < until_ns
        ]
        schema = f"{TRACE_TABLES[table].ddl.replace(' NOT NULL', '')}, {UNREADABLE} string"
        if not places:
            return spark.createDataFrame([], schema)
        return spark.read.schema(schema).parquet(*places)

    def first_publication_ns(self) -> int | None:
        """Find when the earliest waiting publication was published, in ns; None if none waits."""
        moments = [
            least
            for path, _ in self._periods("publications")
            for least, _ in extremes(path, TIMES["publications"])
        ]
        return min(moments, default=None)

    def forget(self, until_ns: int, period_ns: int) -> None:
        """Remove rows of periods that end by a moment: they are counted. Late ones stay a week."""
        newest = self.latest()
        old_s = time.time() - LATE_KEPT_S
        for batch in self._batches():
            if (batch / _LATE).is_dir() and (batch / _LATE).stat().st_mtime < old_s:
                shutil.rmtree(batch / _LATE)
            for table in TIMES:
                for path in (batch / table).glob(f"{_PERIOD}=*"):
                    if (_number(path) + 1) * period_ns <= until_ns:
                        shutil.rmtree(path)
                if (batch / table).is_dir() and not any((batch / table).iterdir()):
                    (batch / table).rmdir()
            is_newest = newest is not None and batch.name == f"batch-{newest.number}"
            if not is_newest and {each.name for each in batch.iterdir()} == {_RECORD}:
                shutil.rmtree(batch)

    def _batches(self) -> list[Path]:
        there = sorted(self.folder.iterdir()) if self.folder.is_dir() else []
        return [each for each in there if _BATCH.fullmatch(each.name)]

    def _periods(self, table: str) -> list[tuple[Path, int]]:
        found = [path for batch in self._batches() for path in (batch / table).glob(f"{_PERIOD}=*")]
        return [(path, _number(path)) for path in sorted(found)]

    def _place(self, number: int) -> Path:
        return self.folder / f"batch-{number}"

    def _read(self, number: int) -> MicroBatch:
        path = self._place(number) / _RECORD
        try:
            document = json_text.parse(read_text(path))
            lists = {name: tuple(each) for name, each in document.items() if isinstance(each, list)}
            return MicroBatch(**{**document, **lists})
        except (OSError, ValueError, LookupError, TypeError) as problem:
            raise InvalidTracesError(
                f"{path}: cannot be read ({problem}); watch with a new --state"
            ) from problem


def table_of(file: str) -> str | None:
    """Find the table that a file belongs to, by its own name or its folder's; None: no table's.

    >>> table_of("/in/hops/a.jsonl"), table_of("/in/hops.parquet"), table_of("/in/traces.json")
    ('hops', 'hops', None)
    """
    path = Path(file)
    if kind_of_name(path.name) is None:
        return None
    names = (path.name.split(".")[0], path.parent.name.split(".")[0])
    return next((name for name in names if name in TIMES), None)


def _write(
    spark: SparkSession, files: Sequence[str], draft: Path, period_ns: int
) -> dict[str, str]:
    """Write the rows of files by table and period; gives the files that cannot be read, and why."""
    groups: dict[tuple[str, str], list[str]] = {}
    refused: dict[str, str] = {}
    for file in files:
        table, kind = table_of(file), kind_of_name(Path(file).name)
        if table is not None and kind is not None:
            groups.setdefault((table, kind), []).append(file)
    for (table, kind), group in groups.items():
        try:
            _write_group(spark, table, kind, group, draft, period_ns)
        except InvalidTracesError as problem:
            if len(group) == 1:
                refused[group[0]] = str(problem).splitlines()[0]
                continue
            for file in group:  # one of them is bad: the others are as good as ever
                try:
                    _write_group(spark, table, kind, [file], draft, period_ns)
                except InvalidTracesError as own:
                    refused[file] = str(own).splitlines()[0]
    return refused


def _write_group(
    spark: SparkSession, table: str, kind: str, files: Sequence[str], draft: Path, period_ns: int
) -> None:
    rows = _open(spark, table, kind, files)
    at_ns = F.col(TIMES[table])
    timed = at_ns.isNotNull() & (at_ns >= 0) & F.col(UNREADABLE).isNull()
    number = F.when(timed, F.call_function("div", at_ns, F.lit(period_ns)))
    staged = rows.withColumn(_PERIOD, F.coalesce(number, F.lit(_TIMELESS)))
    aside = draft / ".group"  # a group that fails half-way leaves nothing
    try:
        writer = staged.write.mode("overwrite").partitionBy(_PERIOD)
        run_action(lambda: writer.parquet(f"file://{aside.resolve()}"), f"the table {table}")
        for path in aside.glob(f"{_PERIOD}=*"):
            _move_files(path, draft / table / path.name)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _open(spark: SparkSession, table: str, kind: str, files: Sequence[str]) -> DataFrame:
    if kind != "parquet":
        place = TablePlace(kind=kind, path=files[0], files=tuple(files))
        frame = open_table(spark, TRACE_TABLES[table], place)
        assert frame is not None
        return frame
    try:
        urls = [f"file://{file}" for file in files]
        frame = spark.read.option("mergeSchema", "true").parquet(*urls)
    except TidingsError:
        raise
    except Exception as problem:
        raise InvalidTracesError(f"{files[0]}: cannot be read as Parquet") from problem
    return canonical(frame, TRACE_TABLES[table], files[0])


def _sorted_out(
    draft: Path, limits: Limits, batch: MicroBatch, before: MicroBatch | None
) -> MicroBatch:
    """Move what is too late aside, and rows without a time to a period; count what is there."""
    old = before or MicroBatch(number=-1, files=())
    counted = -(-limits.counted_until_ns // limits.period_ns)  # periods before this are counted
    ahead = limits.now_ns // limits.period_ns
    periods = [path for table in TIMES for path in (draft / table).glob(f"{_PERIOD}=*")]
    rows, late = {path: _rows(path) for path in periods}, 0
    open_ones: Counter[int] = Counter()
    for path, count in rows.items():
        if counted <= _number(path) <= ahead:
            open_ones[_number(path)] += count
    otherwise = max(counted, old.newest_ns // limits.period_ns, 0)
    timeless = max(open_ones, key=open_ones.__getitem__, default=otherwise)  # where most rows are
    for path in periods:
        number = _number(path)
        if number == _TIMELESS:
            _move_files(path, path.with_name(f"{_PERIOD}={timeless}"))
        elif not counted <= number <= ahead:
            late += rows[path]
            _move_files(path, draft / _LATE / path.parent.name / path.name)
    published = (draft / "publications").glob(f"{_PERIOD}=*")
    newest = [most for path in published for _, most in extremes(path, TIMES["publications"])]
    seen = [name for name in TIMES if (draft / name).is_dir()]
    return MicroBatch(
        number=batch.number,
        files=batch.files,
        sizes=batch.sizes,
        period_ns=limits.period_ns,
        refused=batch.refused,
        rows=sum(rows.values()),
        late_rows=old.late_rows + late,
        refused_files=old.refused_files + len(batch.refused),
        newest_ns=max([old.newest_ns, *newest]),
        tables=tuple(dict.fromkeys((*old.tables, *seen))),
    )


def _end_of_strays(counts: Mapping[int, int], hole: int) -> int:
    """Find the first period that is not of strays, given how many rows each has; 0: none are.

    >>> _end_of_strays({0: 1, 5000: 40, 5001: 60}, hole=1440)
    5000
    >>> _end_of_strays({0: 50, 5000: 40, 5001: 60}, hole=1440)
    0
    """
    numbers, whole, before, end = sorted(counts), sum(counts.values()), 0, 0
    for number, after in pairwise(numbers):
        before += counts[number]
        few = before <= max(_FEW * whole, 1.0) and 2 * before < whole
        if few and after - number > max(hole, numbers[-1] - after + 1):
            end = after
    return end


def _move_files(source: Path, target: Path) -> None:
    """Move the files of a folder into another, which may have some already."""
    target.mkdir(parents=True, exist_ok=True)
    for each in source.iterdir():
        if each.suffix == ".parquet":
            name = f"{len(list(target.iterdir()))}-{each.name}"
            os.rename(each, target / name)
    shutil.rmtree(source)


def _size(file: str) -> int:
    try:
        return os.stat(file).st_size
    except OSError:
        return _GONE


def _rows(folder: Path) -> int:
    return sum(pyarrow.parquet.read_metadata(file).num_rows for file in folder.glob("*.parquet"))


def _batch_number(path: Path) -> int:
    return int(path.name.partition("-")[2])


def _number(path: Path) -> int:
    return int(path.name.partition("=")[2])
