"""Spark's part: all statistics of some traces, collected as tables the size of the model.

Each table is read once, or twice where its rows are needed in two orders.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidings.characterisation.contents import Contents, read_contents, too_many_contents
from tidings.characterisation.crossings import crossings
from tidings.characterisation.deliveries import delivery_statistics
from tidings.characterisation.hops import hop_statistics, with_reconstructed_starts
from tidings.characterisation.links import LINK_STATISTICS, probe_statistics
from tidings.characterisation.publications import (
    checked_publications,
    interval_statistics,
    publication_statistics,
)
from tidings.characterisation.subscriptions import subscription_statistics
from tidings.traces.quarantine import REASON
from tidings.traces.reading import Traces
from tidings.traces.window import Window

Progress = Callable[[str], None]

MOST_CELLS = 5_000_000  # counts of publications by content and batch that are brought here


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
    contents: Contents
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


def collect(traces: Traces, measured: Window, tell: Progress) -> Statistics:
    """All statistics that the tables of some traces allow."""
    tables, window = traces.tables, traces.window
    tell("publications")
    counts = publication_statistics(tables["publications"], window, measured)
    publications = collected(counts.limit(MOST_CELLS + 1))
    if len(publications) > MOST_CELLS:
        raise too_many_contents(f"more than {MOST_CELLS:,} counts of")
    texts = publications.loc[publications["statistic"] == "contents", "content"]
    contents = read_contents(str(text) for text in texts.dropna().unique())
    good = checked_publications(tables["publications"], window).where(F.col(REASON).isNull())
    if contents.bad:
        good = good.where(~F.col("content").isin(list(contents.bad)))
    tell("intervals")
    intervals = collected(interval_statistics(good, window))
    tell("hops")
    hops, notes = _collect_hops(tables["hops"], window)
    tell("links")
    probes = collected(probe_statistics(tables["probes"])) if "probes" in tables else None
    unprobed = crossings(tables, good, hops, nothing_of_links() if probes is None else probes)
    crossed = nothing_of_links() if unprobed is None else collected(unprobed)
    tell("subscriptions")
    steps = tables.get("subscriptions")
    subscriptions = None if steps is None else collected(subscription_statistics(steps))
    tell("deliveries")
    deliveries = collected(delivery_statistics(tables["deliveries"], good, measured))
    return Statistics(
        publications=publications,
        intervals=intervals,
        hops=hops,
        deliveries=deliveries,
        probes=probes,
        crossings=crossed,
        subscriptions=subscriptions,
        contents=contents,
        notes=notes,
    )


def collected(frame: DataFrame) -> pd.DataFrame:
    """A small table, brought here."""
    here: Any = frame.toPandas()
    return here


def nothing_of_links() -> pd.DataFrame:
    """A link statistic without rows."""
    names = [column.strip().split(" ")[0] for column in LINK_STATISTICS.split(",")]
    return pd.DataFrame({name: pd.Series(dtype=object) for name in names})


def _collect_hops(hops: DataFrame, window: Window) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """The statistics of hops; brokers without any starts are read again, reconstructed."""
    found = collected(hop_statistics(hops, window))
    counts = found[found["statistic"] == "service"].groupby("broker")["count"].sum()
    silent = sorted(str(name) for name in counts.index[counts == 0])
    if not silent:
        return found, ()
    rebuilt = with_reconstructed_starts(hops.where(F.col("broker").isin(silent)), window)
    again = collected(hop_statistics(rebuilt, window))
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
