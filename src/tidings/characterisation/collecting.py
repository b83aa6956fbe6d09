"""Spark's part: all statistics of some traces, collected as tables the size of the model.

How often a table is read: deliveries, states, sessions and subscriptions once, probes three times
(delays, losses in a row, clocks), hops twice (what happens at brokers, and how far events came),
publications four times (counts, how far they came, intervals, and to meet the deliveries). On top
of that, and only where it is needed:

- publications once, where several lifetimes of a content share a bin;
- publications once, and put in order of events before every use, where some stand there twice;
- hops once, where brokers record no starts;
- hops twice and publications once, for links into brokers that were not probed;
- hops and deliveries once, for links to clients that were not probed, and deliveries once more to
  find them where others were probed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidings.characterisation.cells import small_frame
from tidings.characterisation.clocks import clock_statistics
from tidings.characterisation.connectivity import peer_periods
from tidings.characterisation.contents import (
    MOST_CONTENTS,
    MOST_LIFETIMES,
    Contents,
    read_contents,
    shared_bins,
    too_many_contents,
    with_exact_lifetimes,
)
from tidings.characterisation.crossings import crossings
from tidings.characterisation.deliveries import delivery_statistics
from tidings.characterisation.folding import asked_attributes, folded_contents, folding_note
from tidings.characterisation.hops import hop_statistics, used_hops, with_reconstructed_starts
from tidings.characterisation.links import LINK_STATISTICS, probe_statistics
from tidings.characterisation.loss_runs import loss_run_statistics
from tidings.characterisation.publications import (
    checked_publications,
    each_once,
    exact_lifetimes,
    interval_statistics,
    publication_statistics,
)
from tidings.characterisation.sightings import PUBLISHED, sighting_statistics
from tidings.characterisation.states import state_periods
from tidings.characterisation.subscribers import find_subscribers
from tidings.characterisation.subscriptions import subscription_statistics
from tidings.model.system import System
from tidings.traces.actions import bring_here
from tidings.traces.quarantine import REASON
from tidings.traces.reading import Traces
from tidings.traces.window import TraceWindow

Progress = Callable[[str], None]

MOST_CELLS = 5_000_000  # counts of publications by content and batch that are brought here
MOST_BROADCAST = 10_000  # texts that are sent to every machine


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """What Spark counted: one table per statistic, and the distinct contents as events."""

    publications: pd.DataFrame
    intervals: pd.DataFrame
    hops: pd.DataFrame
    deliveries: pd.DataFrame
    probes: pd.DataFrame | None
    crossings: pd.DataFrame
    subscriptions: pd.DataFrame | None
    sightings: pd.DataFrame
    contents: Contents
    bad_contents: int  # publications whose content is no event
    loss_runs: pd.DataFrame | None = None
    clocks: pd.DataFrame | None = None
    states: pd.DataFrame | None = None
    sessions: pd.DataFrame | None = None  # periods of peers
    notes: tuple[str, ...] = ()

    def publications_by(self, statistic: str) -> pd.DataFrame:
        """The good rows of one statistic of publications."""
        return _part(self.publications, statistic, "publisher")

    def hops_by(self, statistic: str) -> pd.DataFrame:
        """The good rows of one statistic of hops."""
        return _part(self.hops, statistic, "broker")

    def deliveries_by(self, statistic: str) -> pd.DataFrame:
        """The good rows of one statistic of deliveries."""
        return _part(self.deliveries, statistic, "subscriber")


def collect(
    traces: Traces, measured: TraceWindow, tell: Progress, base: System | None = None
) -> Statistics:
    """All statistics that the tables of some traces allow.

    Filters, from subscriptions or else from ``base``, say which attributes of contents matter where
    the contents are too many.
    """
    tables, window = traces.tables, traces.window
    tell("subscriptions")
    subscriptions = None
    if "subscriptions" in tables:
        steps = subscription_statistics(tables["subscriptions"])
        subscriptions = bring_here(steps, _named(traces, "subscriptions"))
    wanted = find_subscribers(subscriptions, base, window).subscribers
    asked = asked_attributes(each.wants for each in wanted)
    tell("hops")
    hops, notes = _collect_hops(tables["hops"], window, _named(traces, "hops"))
    tell("publications")
    published = _collect_publications(traces, measured, hops, asked)
    good = published.good
    tell("intervals")
    intervals = bring_here(interval_statistics(good, window), _named(traces, "publications"))
    tell("links")
    probes, crossed = _collect_links(traces, good, hops)
    runs, clocks, states, sessions = _collect_more(traces)
    tell("deliveries")
    received = delivery_statistics(tables["deliveries"], good, measured)
    deliveries = bring_here(received, _named(traces, "deliveries", "publications"))
    return Statistics(
        publications=published.statistics,
        intervals=intervals,
        hops=hops,
        deliveries=deliveries,
        probes=probes,
        crossings=crossed,
        subscriptions=subscriptions,
        sightings=published.sightings,
        contents=published.contents,
        bad_contents=published.bad_contents,
        loss_runs=runs,
        clocks=clocks,
        states=states,
        sessions=sessions,
        notes=(*notes, *published.notes),
    )


def _collect_more(traces: Traces) -> tuple[pd.DataFrame | None, ...]:
    """What probes tell of losses in a row and of clocks; times up and down, connected and away."""
    tables, window = traces.tables, traces.window
    asked = (
        ("probes", lambda table: loss_run_statistics(table, window)),
        ("probes", clock_statistics),
        ("states", lambda table: state_periods(table, window)),
        ("sessions", lambda table: peer_periods(table, window)),
    )
    return tuple(
        bring_here(count(tables[name]), _named(traces, name)) if name in tables else None
        for name, count in asked
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Publications:
    """What was collected of publications, and the good ones, every event once."""

    good: DataFrame
    statistics: pd.DataFrame
    sightings: pd.DataFrame
    contents: Contents
    bad_contents: int
    notes: tuple[str, ...] = ()


def _collect_publications(
    traces: Traces, measured: TraceWindow, hops: pd.DataFrame, asked: Sequence[str]
) -> _Publications:
    """Counts, contents and sightings; where copies are found, all is counted again without them.

    Where contents are too many, they are counted again by the attributes that are ``asked`` for.
    """
    table, window = traces.tables["publications"], traces.window
    notes: tuple[str, ...] = ()
    found = _count_publications(traces, table, measured)
    if _too_many(found):
        notes = (folding_note(f"more than {MOST_CONTENTS:,}", asked),)
        table = folded_contents(table, asked)
        found = _count_publications(traces, table, measured)
    if len(found) > MOST_CELLS:
        raise too_many_contents(f"more than {MOST_CELLS:,} counts of")
    rows = found[(found["statistic"] == "contents") & found["content"].notna()]
    contents = read_contents(str(text) for text in rows["content"].unique())
    good = checked_publications(table, window).where(F.col(REASON).isNull())
    if contents.bad:
        bad = small_frame(good.sparkSession, pd.DataFrame({"content": list(contents.bad)}))
        few = len(contents.bad) <= MOST_BROADCAST
        good = good.join(F.broadcast(bad) if few else bad, "content", "left_anti")
    brokers = hops.loc[hops["broker"].notna(), "broker"].unique()
    seen = sighting_statistics(traces.tables["hops"], good, measured, [str(b) for b in brokers])
    sightings = bring_here(seen, _named(traces, "publications", "hops"))
    copied = sightings[sightings["statistic"] == PUBLISHED]
    if copied["rows"].sum() > copied["events"].sum():
        good = each_once(good)
        again = _count_publications(traces, good, measured)
        quality = found["statistic"] == "quality"
        found = pd.concat([found[quality], again[again["statistic"] != "quality"]])
    # That two of as many contents as there may be share a key has a chance of one in 10⁹.
    texts = dict(zip(rows["content_key"], rows["content"], strict=True))
    return _Publications(
        good=good,
        statistics=_with_exact_lifetimes(found, good, _named(traces, "publications")),
        sightings=sightings.assign(content=sightings["content_key"].map(texts)),
        contents=contents,
        bad_contents=int(rows.loc[rows["content"].isin(contents.bad), "rows"].sum()),
        notes=notes,
    )


def _too_many(found: pd.DataFrame) -> bool:
    """Whether there are more contents than a system can hold, or counts than are brought here."""
    return len(found) > MOST_CELLS or found["content"].nunique() > MOST_CONTENTS


def _count_publications(traces: Traces, rows: DataFrame, measured: TraceWindow) -> pd.DataFrame:
    counts = publication_statistics(rows, traces.window, measured)
    return bring_here(counts.limit(MOST_CELLS + 1), _named(traces, "publications"))


def nothing_of_links() -> pd.DataFrame:
    """A link statistic without rows."""
    names = [column.strip().split(" ")[0] for column in LINK_STATISTICS.split(",")]
    return pd.DataFrame({name: pd.Series(dtype=object) for name in names})


def _named(traces: Traces, *tables: str) -> str:
    """Tables as an error names them."""
    kind = "table" if len(tables) == 1 else "tables"
    return f"{traces.source}: the {kind} {' and '.join(tables)}"


def _with_exact_lifetimes(publications: pd.DataFrame, good: DataFrame, named: str) -> pd.DataFrame:
    """The statistics of publications; lifetimes that share a bin are read again, one by one."""
    rows = publications[publications["statistic"] == "contents"]
    pairs = shared_bins(rows[rows["publisher"].notna()])
    if pairs.empty:
        return publications
    wanted = small_frame(good.sparkSession, pairs)
    return with_exact_lifetimes(
        publications, bring_here(exact_lifetimes(good, wanted, MOST_LIFETIMES), named)
    )


def _collect_links(
    traces: Traces, good: DataFrame, hops: pd.DataFrame
) -> tuple[pd.DataFrame | None, pd.DataFrame]:
    """What probes tell of links, and what was seen of those without any."""
    tables = traces.tables
    probes = None
    if "probes" in tables:
        probes = bring_here(probe_statistics(tables["probes"]), _named(traces, "probes"))
    known = nothing_of_links() if probes is None else probes
    unprobed = crossings(tables, good, traces.window, hops, known)
    if unprobed is None:
        return probes, nothing_of_links()
    named = _named(traces, "publications", "hops", "deliveries")
    return probes, bring_here(unprobed, named)


def _collect_hops(
    hops: DataFrame, window: TraceWindow, named: str
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """The statistics of hops; brokers without any starts are read again, reconstructed."""
    found = bring_here(hop_statistics(hops, window), named)
    counts = found[found["statistic"] == "service"].groupby("broker")["count"].sum()
    silent = sorted(str(name) for name in counts.index[counts == 0])
    if not silent:
        return found, ()
    theirs = used_hops(hops, window).where(F.col("broker").isin(silent))
    rebuilt = with_reconstructed_starts(theirs, window)
    again = bring_here(hop_statistics(rebuilt, window), named)
    replaced = found["broker"].isin(silent) & (found["statistic"] != "quality")
    both = pd.concat([found[~replaced], again[again["statistic"] != "quality"]], ignore_index=True)
    note = (
        f"no starts of service at {', '.join(silent[:5])}{' …' if len(silent) > 5 else ''}: "
        "reconstructed as for one server, first come first served"
    )
    return both, (note,)


def _part(frame: pd.DataFrame, statistic: str, key: str) -> pd.DataFrame:
    """The rows of one statistic, without the cell that holds all bad rows."""
    return frame[(frame["statistic"] == statistic) & frame[key].notna()]
