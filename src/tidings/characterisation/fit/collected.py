"""All statistics of some traces by name, and the contents that they speak of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import pandas as pd

from tidings.characterisation.fit.contents import Contents, read_contents, wanted_by_batch
from tidings.characterisation.statistics import BATCHES, Partial, merge_rows
from tidings.model.filters import Filter


def texts_of(publications: pd.DataFrame) -> pd.DataFrame:
    """Select the rows of a statistic of publications that are by content."""
    return publications[(publications["statistic"] == "contents") & publications["content"].notna()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """What Spark counted: one table per statistic, and the distinct contents as events."""

    publications: pd.DataFrame
    intervals: pd.DataFrame
    hops: pd.DataFrame
    deliveries: pd.DataFrame
    crossings: pd.DataFrame
    crossing_hours: pd.DataFrame
    sightings: pd.DataFrame
    contents: Contents
    bad_contents: int  # publications whose content is no event
    bad_texts: tuple[str, ...] = ()  # of their contents
    handlings: pd.DataFrame | None = None  # by members of groups
    pickups: pd.DataFrame | None = None  # of those, by how many others were busy
    subscriptions: pd.DataFrame | None = None
    probes: pd.DataFrame | None = None
    probe_hours: pd.DataFrame | None = None
    loss_runs: pd.DataFrame | None = None
    clocks: pd.DataFrame | None = None
    states: pd.DataFrame | None = None
    sessions: pd.DataFrame | None = None  # periods of peers, and rows by reason
    stays: pd.DataFrame | None = None  # periods of subscribers that come and go
    utilisation: pd.DataFrame | None = None  # samples of resources by reason
    batches_s: tuple[float, ...] | None = None  # how long batches are; None: all as long
    notes: tuple[str, ...] = ()

    def publications_by(self, statistic: str) -> pd.DataFrame:
        """Select the good rows of one statistic of publications."""
        return _part(self.publications, statistic, "publisher")

    def hops_by(self, statistic: str) -> pd.DataFrame:
        """Select the good rows of one statistic of hops."""
        return _part(self.hops, statistic, "broker")

    def deliveries_by(self, statistic: str) -> pd.DataFrame:
        """Select the good rows of one statistic of deliveries."""
        return _part(self.deliveries, statistic, "subscriber")


def statistics_of(counted: Partial) -> Statistics:
    """Make statistics of what was counted, with the contents parsed."""
    tables = counted.tables
    rows = texts_of(tables["publications"])
    # That two of as many contents as there may be share a key has a chance of one in 10⁹.
    texts = dict(zip(rows["content_key"], rows["content"], strict=True))
    sightings = tables["sightings"]
    named = {each.name for each in fields(Statistics)} - {"bad_contents"}
    shown: dict[str, Any] = {name: tables[name] for name in named & tables.keys()}
    shown["sightings"] = sightings.assign(content=sightings["content_key"].map(texts))
    if "sessions" in tables:
        shown["crossings"] = _of_those_who_stay(tables["crossings"], tables["sessions"])
    return Statistics(
        **shown,
        contents=read_contents(map(str, rows["content"].unique())),
        bad_contents=int(tables["bad_contents"]["rows"].sum()),
        bad_texts=tuple(map(str, tables["bad_contents"]["content"])),
        notes=counted.notes,
    )


def _of_those_who_stay(crossings: pd.DataFrame, sessions: pd.DataFrame) -> pd.DataFrame:
    """Select the crossings of links whose ends do not come and go.

    Events of peers that do wait for these before they cross. Of a part in which somebody changed
    nothing, nobody could know that when it was counted.
    """
    peers = set(sessions["path"].dropna())
    return crossings[~crossings["source"].isin(peers) & ~crossings["target"].isin(peers)]


def _part(frame: pd.DataFrame, statistic: str, key: str) -> pd.DataFrame:
    """Select the rows of one statistic, without the cell that holds all bad rows."""
    return frame[(frame["statistic"] == statistic) & frame[key].notna()]


def wanted_throughout(counted: Partial, wants: Mapping[str, Filter]) -> Partial:
    """Add to what was counted of a part what those wanted who were subscribed all through it.

    They came or went in other parts only, so that in this one nobody counted for them.
    """
    if not wants:
        return counted
    rows = counted.tables["publications"]
    batches = rows[(rows["statistic"] == "batches") & rows["publisher"].notna()]
    contents = read_contents(map(str, batches["content"].dropna().unique()))
    filters = list(dict.fromkeys(wants.values()))
    number = {each: index for index, each in enumerate(filters)}
    wanted = [
        ("pairs", name, publisher, batch, int(matrix[number[each], batch]))
        for publisher, matrix in wanted_by_batch(batches, contents, filters, BATCHES).items()
        for name, each in wants.items()
        for batch in matrix[number[each]].nonzero()[0]
    ]
    columns = ["statistic", "subscriber", "publisher", "batch", "wanted"]
    more = [counted.tables["deliveries"], pd.DataFrame(wanted, columns=columns)]
    return replace(counted, tables={**counted.tables, "deliveries": merge_rows("deliveries", more)})
