"""Spark's part of counters and histograms: what brokers report, as tables the size of the model."""

from __future__ import annotations

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidings.characterisation.count.cells import row_counts
from tidings.characterisation.count.histograms import histogram_statistics
from tidings.characterisation.count.levels import (
    between_polls,
    curve_pieces,
    curve_statistics,
    deadline_statistics,
    end_statistics,
    level_statistics,
    poll_statistics,
)
from tidings.characterisation.fit.censored import buckets_by_name
from tidings.characterisation.fit.quality import COPY, QUALITY_COLUMNS, SET_ASIDE
from tidings.characterisation.fit.queues import CountedQueue, LevelCounts, read_queues
from tidings.characterisation.fit.reported import Reported, asked_times_s
from tidings.model.system import System
from tidings.model.trace_tables import HISTOGRAMS, LEVELS, TraceTable
from tidings.traces.actions import bring_here
from tidings.traces.quarantine import REASON, with_reasons
from tidings.traces.reading import Traces

TABLES = (LEVELS.name, HISTOGRAMS.name)


def count_reported(traces: Traces, base: System | None) -> Reported | None:
    """Count what the tables levels and histograms tell; None where there are none."""
    there = [name for name in TABLES if name in traces.tables]
    if not there:
        return None
    quality = [_fates(traces, table) for table in (LEVELS, HISTOGRAMS) if table.name in there]
    buckets = {}
    if HISTOGRAMS.name in there:
        grown = histogram_statistics(traces.tables[HISTOGRAMS.name])
        buckets = buckets_by_name(_collect(grown, traces, HISTOGRAMS))
    return Reported(
        queues=_queues(traces, base) if LEVELS.name in there else {},
        buckets=buckets,
        quality=pd.concat(quality, ignore_index=True),
        window_s=traces.window.seconds,
    )


def count_ends(traces: Traces) -> pd.DataFrame:
    """Count how queues' counters stood at both ends of batches, for parts that are put together.

    Polls outside the window are of other parts.
    """
    rows = traces.tables[LEVELS.name].where(traces.window.holds(F.col("at_ns")))
    return _collect(end_statistics(between_polls(rows), traces.window), traces, LEVELS)


def _queues(traces: Traces, base: System | None) -> dict[str, CountedQueue]:
    polls = between_polls(traces.tables[LEVELS.name])
    pieces = curve_pieces(polls, traces.window)
    names = [] if base is None else [each.name for each in base.subscribers]
    # Nothing is asked within no time: a time that all are within keeps the table's columns.
    asked_s = asked_times_s(base, names) or (float("inf"),)
    return read_queues(
        LevelCounts(
            levels=_collect(level_statistics(polls, traces.window), traces, LEVELS),
            polls=_collect(poll_statistics(polls), traces, LEVELS),
            curves=_collect(curve_statistics(pieces), traces, LEVELS),
            deadlines=_collect(deadline_statistics(pieces, asked_s), traces, LEVELS),
            ends=_collect(end_statistics(polls, traces.window), traces, LEVELS),
        )
    )


def _fates(traces: Traces, table: TraceTable) -> pd.DataFrame:
    """Count what became of the rows of a table: used, set aside and why, or copies."""
    counted = _collect(
        row_counts(with_reasons(traces.tables[table.name], table), table), traces, table
    )
    good = counted[REASON].isna()
    copies = int(counted.loc[good, "duplicates"].sum())
    rows = [(table.name, "used", "", int(counted.loc[good, "rows"].sum()) - copies)]
    bad = counted[~good].sort_values(REASON)
    rows += [
        (table.name, SET_ASIDE, str(why), int(number))
        for why, number in zip(bad[REASON], bad["rows"], strict=True)
    ]
    if copies:
        rows.append((table.name, "duplicate", COPY, copies))
    return pd.DataFrame(rows, columns=list(QUALITY_COLUMNS))


def _collect(statistic: DataFrame, traces: Traces, table: TraceTable) -> pd.DataFrame:
    return bring_here(statistic, f"{traces.source}: the table {table.name}")
