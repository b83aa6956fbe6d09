"""Characterise traces: count with Spark, then fit."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pandas as pd

from tidings.characterisation.count.cells import copies_among, each_row_once, good_rows
from tidings.characterisation.count.gathering import gather
from tidings.characterisation.count.publications import each_once, interval_statistics
from tidings.characterisation.count.reported import TABLES, count_reported
from tidings.characterisation.count.routing import (
    client_statistics,
    link_statistics,
    routing_statistics,
    source_statistics,
    usage_statistics,
)
from tidings.characterisation.count.set_aside import SetAside, look_at, rows_set_aside
from tidings.characterisation.fit.assembling import check_base
from tidings.characterisation.fit.collected import Statistics, statistics_of
from tidings.characterisation.fit.combining import fit_reported, with_reported
from tidings.characterisation.fit.counting import Observed
from tidings.characterisation.fit.fitted import Characterisation
from tidings.characterisation.fit.fitting import fit
from tidings.characterisation.fit.quality import SET_ASIDE
from tidings.characterisation.fit.workloads import (
    MeasuredWorkload,
    Measuring,
    WorkloadStatistics,
    workload_from_statistics,
)
from tidings.characterisation.statistics import NEEDED, in_stretch
from tidings.model.progress import Progress, with_step_numbers
from tidings.model.system import System
from tidings.model.trace_tables import HOPS, PUBLICATIONS
from tidings.traces.actions import bring_here
from tidings.traces.parsing_once import parsed_once
from tidings.traces.places import require_tables
from tidings.traces.reading import Traces
from tidings.traces.window import TraceWindow

_MOST_STAGES = 8  # passes over the traces, and the fit


def characterise(
    traces: Traces,
    *,
    base: System | None = None,
    settle_s: float = 0.0,
    progress: Progress | None = None,
) -> Characterisation:
    """Fit a system to traces, with standard errors, and measure the outcome.

    Needs publications, hops and deliveries; filters come from subscriptions, or else from ``base``,
    which also gives whatever else the traces do not tell. An event that was published and not
    received by the end of the traces is lost. Where recording simply stopped at the end of the
    window, ``settle_s`` leaves out the events published in that many last seconds, which may still
    have been on their way. Counters and histograms that brokers report (levels, histograms) say
    what traces do not, and are enough by themselves. ``progress`` is called with the name of each
    stage.

    The system is always valid. Raises :class:`InvalidTracesError` where the traces and ``base``
    together do not make one, and :class:`UnsupportedError` for a ``base`` whose brokers have more
    than one station or server.
    """
    if base is not None:
        check_base(base)
    check_tables(traces.source, traces.tables, base)
    measured = traces.window.shortened(settle_s)
    is_reported = bool(set(TABLES) & set(traces.tables))
    tell = with_step_numbers(progress or (lambda stage: None), _MOST_STAGES + is_reported)
    reported = None
    if is_reported:
        tell("counters and histograms")
        reported = count_reported(traces, base)
    observed = observed_in(traces, () if reported is None else reported.names)
    if reported is not None and not set(NEEDED) & set(traces.tables):
        return fit_reported(reported, observed, base)
    with parsed_once(traces) as kept:
        seen = collect(kept, measured, tell, base)
    tell("fitting")
    fitted = fit(observed, seen, measured, base)
    return fitted if reported is None else with_reported(fitted, reported, base)


def check_tables(source: str, tables: Collection[str], base: System | None) -> None:
    """Raise :class:`InvalidTracesError` where tables are missing that nothing can stand for."""
    if set(TABLES) & set(tables) and not set(NEEDED) & set(tables):
        return  # what brokers report is enough
    if base is not None:
        require_tables(source, NEEDED, tables)
    else:
        instead = "without subscriptions, give a base system (--base) with subscribers and filters"
        require_tables(source, (*NEEDED, "subscriptions"), tables, instead=instead)


def with_examples(
    fitted: Characterisation, traces: Traces, *, settle_s: float = 0.0, to: Path | None = None
) -> Characterisation:
    """Add a few rows of every reason for setting some aside; write all of them into ``to``.

    Reads the tables once more that have such rows.
    """
    measured = traces.window.shortened(settle_s)
    rows = rows_set_aside(traces, fitted.quality, measured, fitted.bad_texts)
    seen = look_at(rows, to)
    notes = (*fitted.notes, *counted_only(fitted.quality, seen))
    return replace(fitted, examples=seen.examples, notes=notes)


def collect(
    traces: Traces, measured: TraceWindow, tell: Progress, base: System | None = None
) -> Statistics:
    """Count all statistics that the tables of some traces allow.

    Filters, from subscriptions or else from ``base``, say which attributes of contents matter where
    the contents are too many.
    """
    return statistics_of(in_stretch(gather(traces, measured, tell, base)))


def counted_only(quality: pd.DataFrame, aside: SetAside) -> Iterator[str]:
    """Yield a note that some rows were counted and could not be found again, where it is so."""
    counted = int(quality.loc[quality["fate"] == SET_ASIDE, "rows"].sum())
    if counted > aside.rows:
        yield (
            f"{counted - aside.rows} of {counted} rows set aside are counted, but not "
            "written: valid rows outside the question, or rows that were not read from "
            "files"
        )


def measure_workload(traces: Traces, how: Measuring | None = None) -> MeasuredWorkload:
    """Measure the workload that operational analysis and queueing Petri nets start from."""
    chosen = how or Measuring()
    require_tables(traces.source, chosen.tables, traces.tables)
    with parsed_once(traces) as kept:
        return workload_from_statistics(collect_workload(kept, chosen), chosen)


def collect_workload(traces: Traces, how: Measuring) -> WorkloadStatistics:
    """Count the statistics that a workload is made from."""
    hops, publications = traces.tables["hops"], traces.tables["publications"]
    window, kind = traces.window, how.event_type
    named = f"the tables hops and publications of {traces.source}"
    copies = int(bring_here(copies_among(hops, HOPS), named)["copies"].iloc[0])
    if copies:
        hops = each_row_once(hops)
    clients = usage = None
    if "deliveries" in traces.tables:
        received = client_statistics(hops, traces.tables["deliveries"], window)
        clients = bring_here(received, f"the tables hops and deliveries of {traces.source}")
    if how.services == "utilisation":
        samples = usage_statistics(traces.tables["utilisation"], hops, publications, window, kind)
        usage = bring_here(samples, f"the table utilisation of {traces.source}")
    published = each_once(good_rows(publications, PUBLICATIONS))
    return WorkloadStatistics(
        cells=bring_here(routing_statistics(hops, publications, window, kind), named),
        sources=bring_here(source_statistics(publications, window, kind), named),
        links=bring_here(link_statistics(hops, publications, window), named),
        intervals=bring_here(interval_statistics(published, window), named),
        window_s=window.seconds,
        clients=clients,
        usage=usage,
        copies=copies,
    )


def observed_in(traces: Traces, reported: Iterable[str] = ()) -> Observed:
    """Tell what must be known of traces besides their statistics, and who has counters."""
    return Observed(
        tables=tuple(traces.tables),
        window=traces.window,
        source=traces.source,
        notes=traces.notes,
        sampled=traces.sampled,
        reported=frozenset(reported),
    )
