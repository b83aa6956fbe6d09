"""Rows that were set aside, each with its file and line: all of them on disk, a few to look at.

Statistics count rows by reason. Who mends the data wants to see them, so that the tables with such
rows are read once more, with where every row stands.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidings.characterisation.count.cells import small_frame, with_reason
from tidings.characterisation.count.deliveries import checked_deliveries
from tidings.characterisation.count.hops import checked_hops
from tidings.characterisation.count.periods import checked_sessions, checked_states
from tidings.characterisation.count.publications import by_event, checked_publications, each_once
from tidings.characterisation.fit.quality import SET_ASIDE, BadTexts
from tidings.characterisation.statistics import BAD_CONTENT, BAD_FILTER, CONFLICT
from tidings.model.trace_tables import TRACE_TABLES
from tidings.model.writing import new_folder
from tidings.traces.actions import bring_here, run_action
from tidings.traces.places import TEXT_KINDS
from tidings.traces.quarantine import REASON, with_reasons
from tidings.traces.readers.lines import FILE, ORIGIN, TEXT, found_again
from tidings.traces.reading import Traces, open_table
from tidings.traces.window import TraceWindow

ROWS_SET_ASIDE = "reason string, file string, line bigint, text string"
EXAMPLE_COLUMNS = ("table", REASON, FILE, "line", TEXT)
MOST_EXAMPLES = 3  # of one reason
_LONGEST_TEXT = 200  # characters of an example


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAside:
    """A few rows of each reason (``EXAMPLE_COLUMNS``), and how many rows have been found again."""

    examples: pd.DataFrame
    rows: int


def rows_set_aside(
    traces: Traces, quality: pd.DataFrame, measured: TraceWindow, bad: BadTexts
) -> dict[str, DataFrame]:
    """Find all rows of tables that have a reason, ``ROWS_SET_ASIDE``; of files, not of mere frames.

    What is right and merely not used, as it was published while nobody asked for it, is counted
    and not among them.
    """
    reasons = quality[quality["fate"] == SET_ASIDE]
    aside = {}
    for name in sorted(set(reasons["table"]) & set(traces.places)):
        place, session = traces.places[name], traces.tables[name].sparkSession
        rows = open_table(session, TRACE_TABLES[name], place, ORIGIN)
        assert rows is not None  # it has been read before
        why = set(reasons.loc[reasons["table"] == name, "reason"])
        tagged = _checked(name, rows, traces, measured, bad)
        if CONFLICT in why:
            tagged = _with_conflicts(tagged)
        files = place.files if place.kind in TEXT_KINDS else None
        aside[name] = found_again(tagged.where(F.col(REASON).isNotNull()), files)
    return aside


def look_at(aside: Mapping[str, DataFrame], folder: Path | None = None) -> SetAside:
    """Give a few rows of each reason; write all, by table, into a new ``folder``, if given."""
    if folder is None:
        return _summary(aside)
    with new_folder(folder) as place:
        for name, rows in aside.items():
            url = f"file://{(place / name).resolve()}"
            run_action(partial(rows.write.parquet, url), f"the {name} set aside")
        written = {
            name: rows.sparkSession.read.schema(ROWS_SET_ASIDE).parquet(str(place / name))
            for name, rows in aside.items()
        }
        return _summary(written)


def _summary(aside: Mapping[str, DataFrame]) -> SetAside:
    parts = [_examples(name, rows) for name, rows in aside.items()]
    every = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=["rows"])
    return SetAside(
        examples=every.reindex(columns=list(EXAMPLE_COLUMNS)), rows=int(every["rows"].sum())
    )


def _examples(name: str, rows: DataFrame) -> pd.DataFrame:
    """Find the first row of each reason in each of a few groups, so that nothing is sorted."""
    heap = F.pmod(F.xxhash64(FILE, "line"), F.lit(MOST_EXAMPLES))
    first = F.min(F.struct("line", FILE, F.substring(TEXT, 1, _LONGEST_TEXT).alias(TEXT)))
    heaps = rows.groupBy(REASON, heap.alias("heap")).agg(
        first.alias("first"), F.count(F.lit(1)).alias("rows")
    )
    few = bring_here(heaps.select(REASON, "first.*", "rows"), f"the {name} set aside")
    return few.assign(table=name).sort_values([REASON, FILE, "line"], ignore_index=True)


def _checked(
    name: str, rows: DataFrame, traces: Traces, measured: TraceWindow, bad: BadTexts
) -> DataFrame:
    """Give the rows of a table their reasons, as the statistics of that table have them."""
    match name:
        case "publications":
            return _checked_publications(rows, traces.window, bad)
        case "hops":
            return checked_hops(rows, traces.window)
        case "deliveries":
            published = traces.tables["publications"]
            good = _checked_publications(published, traces.window, bad).where(
                F.col(REASON).isNull()
            )
            tagged = with_reasons(rows, TRACE_TABLES[name])
            return checked_deliveries(tagged, each_once(good), measured)
        case "states":
            return checked_states(rows, traces.window)
        case "sessions":
            return checked_sessions(rows, traces.window)
        case "subscriptions":
            tagged = with_reasons(rows, TRACE_TABLES[name])
            return _with_bad_texts(tagged, "filter", bad.filters, BAD_FILTER)
        case _:
            return with_reasons(rows, TRACE_TABLES[name])


def _checked_publications(rows: DataFrame, window: TraceWindow, bad: BadTexts) -> DataFrame:
    tagged = checked_publications(rows, window)
    return _with_bad_texts(tagged, "content", bad.contents, BAD_CONTENT)


def _with_bad_texts(rows: DataFrame, column: str, texts: tuple[str, ...], reason: str) -> DataFrame:
    if not texts:
        return rows
    known = small_frame(rows.sparkSession, pd.DataFrame({column: texts}))
    return _with_reason_of(rows, known, reason)


def _with_conflicts(rows: DataFrame) -> DataFrame:
    """Give a reason to publications whose id stands for different ones."""
    events = by_event(rows.where(F.col(REASON).isNull())).where("differ").select("event")
    return _with_reason_of(rows, events, CONFLICT)


def _with_reason_of(rows: DataFrame, wrong: DataFrame, reason: str) -> DataFrame:
    """Give a reason to the rows whose values are among the ``wrong`` ones of a column."""
    marked = rows.join(wrong.withColumn("is_wrong", F.lit(True)), wrong.columns, "left")
    return with_reason(marked, F.col("is_wrong"), reason).drop("is_wrong")
