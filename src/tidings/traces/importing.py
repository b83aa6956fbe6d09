"""From what a reader found to a folder of trace tables, with an account of every record.

All that is written goes to a folder of its own first and is put in place in one step at the end, so
that an import that is killed leaves what was there before, or all that is new. Whatever a table did
not take is kept until that table is imported again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as parquet
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidings.errors import EngineError, InvalidTracesError, Problem
from tidings.model import json_text
from tidings.model.plain_files import read_text
from tidings.model.progress import Progress
from tidings.model.trace_tables import FORMAT_VERSION, MANIFEST, TRACE_TABLES
from tidings.traces.actions import bring_here, run_action
from tidings.traces.placing import FINISHING, QUARANTINE, FileSteps, finish, incoming, put_in_place
from tidings.traces.quarantine import REASON, with_reasons
from tidings.traces.readers import lines
from tidings.traces.readers.reading import Keep, Reading
from tidings.traces.reading import parse_manifest
from tidings.traces.window import TraceWindow

ACCOUNT_COLUMNS = ("table", "fate", "reason", "rows")
USED, SET_ASIDE, DUPLICATE, PASSED_OVER = "used", "set aside", "duplicate", "passed over"
SAME = "the same in every column as another row"


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What came of an import: every record and row accounted for, and the observed window."""

    account: pd.DataFrame  # ACCOUNT_COLUMNS
    window: TraceWindow
    notes: tuple[str, ...]

    @property
    def set_aside(self) -> int:
        """How many records and rows could not be used."""
        return int(self.account.loc[self.account["fate"] == SET_ASIDE, "rows"].sum())


def check_destination(to: Path, tables: Collection[str], *, replace_old: bool) -> None:
    """Raise :class:`InvalidTracesError` where an import would overwrite what it should not."""
    if os.path.lexists(to) and not to.is_dir():
        saw = "a file" if to.exists() else "a link to nothing"
        raise InvalidTracesError(f"{to}: got {saw}; wants a folder for the trace tables")
    if not to.exists():
        return
    finish(to)
    if replace_old:
        return
    there = sorted(path.name for path in to.iterdir() if path.name.split(".")[0] in tables)
    if there:
        raise InvalidTracesError(
            f"{to} already has {', '.join(there)}; give another folder, or --replace"
        )


def import_traces(
    spark: SparkSession,
    read: Callable[[Keep], Reading],
    files: Sequence[str],
    to: str | os.PathLike[str],
    progress: Progress = lambda stage: None,
) -> Imported:
    """Write what a reader finds as canonical tables, and account for all of it.

    Rows that cannot be true and records that give none go to ``quarantine``, each with its reason,
    file and line; rows that are the same in every column are written once. Checked is that the rows
    read are those written, set aside and left out as duplicates.
    """
    to = Path(to)
    with incoming(to) as fresh:
        progress("reading")
        reading = read(keep_in(spark, fresh, files))
        account = write_tables(spark, reading, files, fresh, progress)
        _check_any(account, files)
        window, notes = _window(spark, reading, fresh / "tables", to)
        put_in_place(fresh, to, lambda: _arranged(fresh, to, account, window, reading.sampled))
    return Imported(account=account, window=window, notes=(*reading.notes, *notes))


def keep_in(spark: SparkSession, fresh: Path, files: Sequence[str]) -> Keep:
    """Make what keeps whatever a reader needs several times, in a folder that is being built."""
    return partial(_staged, spark, fresh / "staged", files[0])


def write_tables(
    spark: SparkSession,
    reading: Reading,
    files: Sequence[str],
    fresh: Path,
    progress: Progress = lambda stage: None,
) -> pd.DataFrame:
    """Write what a reader found to ``tables`` and ``quarantine`` of a folder; give the account."""
    progress(reading.noun)
    parts = [_take_records(reading, files, fresh)]
    for name in reading.tables:
        progress(name)
        parts.append(_take_table(spark, reading, name, files, fresh))
    return pd.concat(parts, ignore_index=True)


def with_black_box(reading: Reading, broker: str) -> Reading:
    """Add one broker for all, of which only is recorded that events pass it.

    It takes no time; the time between publication and arrival is then attributed to the
    subscribers' own links.
    """
    tables = dict(reading.tables)
    for name in {"publications", "deliveries", "subscriptions"} & set(tables):
        tables[name] = tables[name].withColumn("broker", F.lit(broker))
    if "publications" in tables and "hops" not in tables:
        good = with_reasons(tables["publications"], TRACE_TABLES["publications"])
        moment = F.col("published_ns")
        tables["hops"] = good.where(F.col(REASON).isNull()).select(
            "event",
            "broker",
            F.col("publisher").alias("came_from"),
            moment.alias("arrived_ns"),
            moment.alias("started_ns"),
            moment.alias("left_ns"),
            F.array().cast("array<string>").alias("sent_to"),
            *lines.ORIGIN,
        )
    note = (
        f"there are no broker records: '{broker}' stands for all brokers, with no service "
        "time; all delays and losses are attributed to the subscribers' links"
    )
    return replace(reading, tables=tables, notes=(*reading.notes, note))


# ---- one table after the other -------------------------------------------------------------------


def _take_table(
    spark: SparkSession, reading: Reading, name: str, files: Sequence[str], fresh: Path
) -> pd.DataFrame:
    table = TRACE_TABLES[name]
    columns = [column.name for column in table.columns]
    tagged = with_reasons(reading.tables[name], table)
    text = F.when(F.col(REASON).isNotNull(), F.col(lines.TEXT)).alias(lines.TEXT)
    slim = tagged.select(*columns, REASON, lines.FILE, lines.BLOCK, lines.PLACE, text)
    staged = _staged(spark, fresh / "staged", files[0], slim, name)
    counts = _by_reason(staged, name)
    good = staged.where(F.col(REASON).isNull()).select(*columns)
    place = str(fresh / "tables" / name)
    run_action(lambda: good.dropDuplicates().write.parquet(place), f"the {name} of {files[0]}")
    written = _rows_in(Path(place))
    if _bad(counts):
        _set_aside(staged, reading, files, fresh / QUARANTINE / name)
    read, used = sum(counts.values()), counts.get(None, 0)
    rows = [(name, USED, "", written)]
    rows += [(name, SET_ASIDE, why, number) for why, number in sorted(_bad(counts).items())]
    if used > written:
        rows.append((name, DUPLICATE, SAME, used - written))
    _check_account(name, read, rows, used, written)
    return pd.DataFrame(rows, columns=list(ACCOUNT_COLUMNS))


def _take_records(reading: Reading, files: Sequence[str], fresh: Path) -> pd.DataFrame:
    counts = _by_reason(reading.records, f"{files[0]}: its {reading.noun}")
    kept = reading.records.where(~F.col(REASON).isin(*reading.passed_over))
    bad = {why: n for why, n in counts.items() if why not in reading.passed_over}
    if _bad(bad):
        _set_aside(kept, reading, files, fresh / QUARANTINE / reading.noun)
    rows = [(reading.noun, USED, "", counts.get(None, 0))]
    for why, number in sorted(_bad(counts).items()):
        rows.append((reading.noun, PASSED_OVER if why not in bad else SET_ASIDE, why, number))
    return pd.DataFrame(rows, columns=list(ACCOUNT_COLUMNS))


def _staged(
    spark: SparkSession, folder: Path, source: str, rows: DataFrame, name: str
) -> DataFrame:
    """Write the rows once, so that what follows does not parse the source again."""
    place = str(folder / name)
    run_action(lambda: rows.write.parquet(place), source)
    return spark.read.schema(rows.schema).parquet(place)


def _by_reason(staged: DataFrame, what: str) -> dict[str | None, int]:
    counts = bring_here(staged.groupBy(REASON).agg(F.count(F.lit(1)).alias("rows")), what)
    return {
        None if pd.isna(why) else str(why): int(number)
        for why, number in zip(counts[REASON], counts["rows"], strict=True)
    }


def _bad(counts: dict[str | None, int]) -> dict[str, int]:
    return {why: number for why, number in counts.items() if why is not None}


def _rows_in(folder: Path) -> int:
    """Count the rows of a table, as its files state them."""
    return sum(parquet.read_metadata(file).num_rows for file in folder.glob("*.parquet"))


def _set_aside(staged: DataFrame, reading: Reading, files: Sequence[str], place: Path) -> None:
    """Write the rows that have a reason, with file and line."""
    bad = staged.where(F.col(REASON).isNotNull())
    named = files if reading.in_lines is None else reading.in_lines
    kept = lines.found_again(bad, named if reading.lines and named else None, reading.separator)
    run_action(lambda: kept.write.parquet(str(place)), f"what {files[0]} has to set aside")


def _check_account(
    name: str, read: int, rows: Sequence[tuple[str, str, str, int]], used: int, written: int
) -> None:
    if written > used or sum(row[3] for row in rows) != read:
        raise EngineError(
            f"row counts of {name} do not add up: {read} rows were read, {used} of them "
            f"good, {written} written. Nothing was written"
        )


def _check_any(account: pd.DataFrame, files: Sequence[str]) -> None:
    """Raise :class:`InvalidTracesError`, with what became of all there is, where none is of use."""
    if account.loc[(account["fate"] == USED) & account["table"].isin(TRACE_TABLES), "rows"].any():
        return
    problems = [
        Problem(at=str(row.table), saw=f"{row.rows} with: {row.reason}", want="rows of use")
        for row in account[account["fate"] != USED].itertuples()
    ]
    raise InvalidTracesError(f"{files[0]}: not one row could be used", problems)


# ---- the window, and everything into its place ---------------------------------------------------


def _window(
    spark: SparkSession, reading: Reading, written: Path, to: Path
) -> tuple[TraceWindow, tuple[str, ...]]:
    """Find the observed window: as the source says, or from the first to the last publication.

    Where no publications are imported, a window that is there already stays; where they are but
    none can be used, all that was imported tells.
    """
    stated = None if reading.window is None else _between(reading.window)
    known = _old_window(to) if (to / MANIFEST).is_file() else None
    if known is not None and "publications" not in reading.tables:
        note = f"the recorded time is kept as it is in {MANIFEST}; edit that file if it is wrong"
        return known, (note,) if stated not in (None, known) else ()
    if stated is not None:
        return stated, ()
    published = [name for name in reading.tables if name == "publications"]
    for names, what in ((published, "publication"), (list(reading.tables), "moment")):
        spanned = _between(_moments(spark, written, names)) if names else None
        if spanned is not None:
            note = f"the recorded time is taken from the first to the last {what}; "
            return spanned, (f"{note}edit {MANIFEST} if recording began earlier or ended later",)
    raise InvalidTracesError(
        f"{to}: no imported row has a time, so the recorded window is unknown; check the time "
        "columns of the source or mapping"
    )


def _moments(spark: SparkSession, written: Path, names: Sequence[str]) -> DataFrame:
    """Find the first moment in some tables, and the one after the last, in nanoseconds."""
    moments = []
    for name in names:
        frame = spark.read.schema(TRACE_TABLES[name].ddl).parquet(str(written / name))
        times = [column for column in frame.columns if column.endswith("_ns")]
        times = [column for column in times if column not in ("lifetime_ns", "interval_ns")]
        moments.append(frame.select(F.explode(F.array(*times)).alias("at_ns")))
    together = reduce(DataFrame.unionByName, moments)
    return together.agg(F.min("at_ns"), F.max("at_ns") + 1)


def _between(ends: DataFrame) -> TraceWindow | None:
    """Read the window between two moments in one row; None where there is none."""
    first, last = run_action(ends.collect, "the observed window")[0]
    if first is None or last is None or first >= last:
        return None
    return TraceWindow(from_ns=first, until_ns=last)


def _old_window(to: Path) -> TraceWindow:
    return parse_manifest(read_text(to / MANIFEST, follow=True), str(to / MANIFEST))


def _arranged(
    fresh: Path, to: Path, account: pd.DataFrame, window: TraceWindow, sampled: float = 1.0
) -> FileSteps:
    """Plan how all that was written gets to where it belongs; write the new manifest beside it.

    What was set aside of the tables that are written anew goes, that of others stays.
    """
    tables = [name for name in TRACE_TABLES if (fresh / "tables" / name).exists()]
    manifest = _manifest(_old_manifest(to), account, tables, window)
    if "publications" in tables:
        manifest["sampled"] = sampled
    (fresh / MANIFEST).write_text(json.dumps(manifest) + "\n", encoding="utf-8")
    move = {f"{FINISHING}/tables/{name}": name for name in tables}
    for each in (fresh / QUARANTINE).glob("*"):
        name = each.name if each.name in tables else _of_source(each.name, tables)
        move[f"{FINISHING}/{QUARANTINE}/{each.name}"] = f"{QUARANTINE}/{name}"
    old = [path.name for path in to.iterdir() if path.name.split(".")[0] in tables]
    for name in sorted(path.name for path in (to / QUARANTINE).glob("*")):
        left = _left(name, tables)
        if left is None:
            old.append(f"{QUARANTINE}/{name}")
        elif left != name:
            move[f"{QUARANTINE}/{name}"] = f"{QUARANTINE}/{left}"
    move[f"{FINISHING}/{MANIFEST}"] = MANIFEST
    return FileSteps(drop=[name for name in old if name not in move.values()], move=move)


def _of_source(noun: str, tables: Sequence[str]) -> str:
    """Name the lines, rows or spans that none of these tables could take."""
    return "-".join([noun, *tables])


def _left(name: str, replaced: Collection[str]) -> str | None:
    """Rename them after some tables were replaced; None where no remaining table refers to them.

    >>> _left("lines-publications-probes", ["probes"])
    'lines-publications'
    >>> _left("lines-probes", ["probes"]), _left("probes", ["probes"]), _left("probes", ["hops"])
    (None, None, 'probes')
    """
    noun, *tables = name.split("-")
    kept = [table for table in tables if table not in replaced]
    if noun in replaced or (tables and not kept):
        return None
    return _of_source(noun, kept)


def _old_manifest(to: Path) -> dict[str, Any]:
    path = to / MANIFEST
    try:
        manifest = json_text.parse(read_text(path, follow=True)) if path.is_file() else {}
    except ValueError:
        return {}
    return manifest if isinstance(manifest, dict) else {}


def _manifest(
    old: Mapping[str, Any], account: pd.DataFrame, tables: Sequence[str], window: TraceWindow
) -> dict[str, Any]:
    """Make the manifest: the window, and what became of all rows of every imported table."""
    stays = (old.get("from_ns"), old.get("until_ns")) == (window.from_ns, window.until_ns)
    imported = old.get("imported")
    accounts = {
        left: rows
        for name, rows in (imported if isinstance(imported, dict) else {}).items()
        if (left := _left(name, tables)) is not None
    }
    for name, part in account.groupby("table", sort=False):
        called = str(name) if name in tables else _of_source(str(name), tables)
        accounts[called] = part.drop(columns="table").to_dict("records")
    return {
        "source": "imported",
        **(old if stays else {}),
        "version": FORMAT_VERSION,
        "from_ns": window.from_ns,
        "until_ns": window.until_ns,
        "imported": accounts,
    }
