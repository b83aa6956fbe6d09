"""What lies on the seam between two parts of a time: events published in one, received in the next.

Let S(X) be the statistics of the rows X. Rows of two adjoining parts A and B meet only near the
seam: those of the end a of A and of the beginning b of B. So

    S(A ∪ B) = S(A) + S(B) + [S(a ∪ b) − S(a) − S(b)],

whatever the statistic, if only its cells are sums; the bracket needs no more than the ends, which
are small and kept. S(a) + S(b) is counted at once, as S(a ∪ b'), where b' is b under other ids, so
that nothing in it meets a. Where nothing follows A, events published in the last seconds of it may
still be on their way: [S'(a) − S(a)] leaves them out, with S' that of a shorter window.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

import pandas as pd
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidings.characterisation.count.gathering import Decided, count_hops, gather, without_copies
from tidings.characterisation.count.publications import folded_contents
from tidings.characterisation.statistics import STATISTICS, Partial, difference, merge_rows
from tidings.model.progress import Progress
from tidings.traces.reading import Traces
from tidings.traces.window import PartedWindow, TraceWindow

# When a row begins and ends; both of them null where it tells no time.
_TIMES = {
    "publications": ("published_ns", "published_ns"),
    "hops": ("arrived_ns", "left_ns"),
    "deliveries": ("received_ns", "received_ns"),
}
_OTHER = "\N{SYMBOL FOR END OF TRANSMISSION} "  # before the ids of events that are to meet nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """The first or the last rows of a part, its window, and what was counted of all of the part.

    ``steps`` are those of subscriptions up to the end of the part, ``subscriptions`` count them.
    """

    tables: dict[str, DataFrame]
    window: TraceWindow
    counted: Partial
    steps: DataFrame | None = None
    subscriptions: pd.DataFrame | None = None


def beginning_of(traces: Traces, counted: Partial, margin_s: float) -> dict[str, DataFrame]:
    """Select the rows of the first ``margin_s`` seconds of some traces, or before."""
    until_ns = traces.window.from_ns + round(margin_s * 1e9)
    return _cut(traces, counted, lambda begin, end: F.least(begin, end) < F.lit(until_ns))


def end_of(traces: Traces, counted: Partial, margin_s: float) -> dict[str, DataFrame]:
    """Select the rows of the last ``margin_s`` seconds of some traces, or after."""
    from_ns = traces.window.until_ns - round(margin_s * 1e9)
    return _cut(traces, counted, lambda begin, end: F.greatest(begin, end) >= F.lit(from_ns))


def seam(before: End, after: End, tell: Progress) -> Partial:
    """Count what two adjoining parts have together beyond what each has.

    Batches are those of both.
    """
    names = [name for name in before.tables if name in after.tables]
    renamed = F.when(F.col("event") != "", F.concat(F.lit(_OTHER), "event"))
    other = {
        name: frame.withColumn("event", F.coalesce(renamed, "event")) if name in _TIMES else frame
        for name, frame in after.tables.items()
    }
    together, apart = (
        {name: before.tables[name].unionByName(second[name]) for name in names}
        for second in (after.tables, other)
    )
    windows = (before.window, after.window)
    window = PartedWindow(from_ns=windows[0].from_ns, until_ns=windows[1].until_ns, parts=windows)
    decided = Decided(
        hops=pd.concat([before.counted.tables["hops"], after.counted.tables["hops"]]),
        silent=_silent(before.counted, after.counted),
        steps=after.steps,
        subscriptions=after.subscriptions,
        every_link=True,
    )
    whole = gather(_traces(together, window), window, tell, decided=decided)
    alone = replace(decided, intervals="intervals" in whole.tables, silent=())
    parts = gather(_traces(apart, window), window, tell, decided=alone)
    if decided.silent:  # who came before whom at a broker does not ask for ids
        copied = "duplicates" in whole.tables["hops"]
        hops = [
            _hops_alone(each, window, decided.silent, copied=copied) for each in (before, after)
        ]
        parts = replace(parts, tables={**parts.tables, "hops": merge_rows("hops", hops)})
    return _beyond(whole, parts)


def _hops_alone(
    end: End, window: TraceWindow, silent: Collection[str], *, copied: bool
) -> pd.DataFrame:
    traces = _traces({"hops": end.tables["hops"]}, window)
    counted, _ = count_hops(traces, silent)
    return without_copies(counted, traces, silent) if copied else counted


def settled(last: End, settle_s: float, tell: Progress) -> Partial:
    """Count what is taken away from a part that nothing follows: events of its last few seconds."""
    until_ns = last.window.shortened(settle_s).until_ns
    shorter = PartedWindow(from_ns=last.window.from_ns, until_ns=until_ns, parts=(last.window,))
    decided = Decided(
        hops=last.counted.tables["hops"],
        silent=(),
        steps=last.steps,
        subscriptions=last.subscriptions,
        every_link=True,
    )
    traces = _traces(last.tables, last.window)
    counts = [gather(traces, each, tell, decided=decided) for each in (shorter, last.window)]
    return _beyond(*counts)


def _traces(tables: dict[str, DataFrame], window: TraceWindow) -> Traces:
    return Traces(tables=tables, window=window, source="the ends of parts")


def _beyond(whole: Partial, apart: Partial) -> Partial:
    both = [
        name
        for name, each in STATISTICS.items()
        if each.met_at_seams and name in whole.tables and name in apart.tables
    ]
    return Partial(
        tables={name: difference(name, whole.tables[name], apart.tables[name]) for name in both}
    )


def _silent(before: Partial, after: Partial) -> frozenset[str]:
    """Find brokers that never record starts: neither before nor after, as far as they are there."""
    there = [{str(name) for name in each.tables["hops"]["broker"]} for each in (before, after)]
    return (before.silent & after.silent) | (before.silent - there[1]) | (after.silent - there[0])


def _cut(
    traces: Traces, counted: Partial, chosen: Callable[[Column, Column], Column]
) -> dict[str, DataFrame]:
    """Select the chosen rows of all tables whose rows meet those of others, contents as counted."""
    ends = {}
    for name, (begin, end) in _TIMES.items():
        rows = traces.tables[name].where(chosen(F.col(begin), F.col(end)))
        # What is set aside as of another time stays so; deliveries may be of any.
        ends[name] = rows if name == "deliveries" else rows.where(traces.window.holds(F.col(begin)))
    if counted.folded is not None:
        ends["publications"] = folded_contents(ends["publications"], counted.folded)
    if "sessions" in traces.tables:  # of these only matters who is there
        ends["sessions"] = traces.tables["sessions"].dropDuplicates(["peer"])
    if "states" in traces.tables:
        ends["states"] = traces.tables["states"]
    return ends
