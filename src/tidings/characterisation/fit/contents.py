"""The distinct contents that were published, read once each, and counted."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tidings.characterisation.fit.laws import fit_law
from tidings.characterisation.fit.samples import Sample
from tidings.characterisation.statistics import sums_at
from tidings.errors import InvalidInputError, InvalidTracesError
from tidings.model.delay_grid import BINS
from tidings.model.events import Event, canonical_event, parse_event
from tidings.model.filters import Filter
from tidings.model.laws import Deterministic, Law
from tidings.model.matching import match_matrix

MOST_CONTENTS = 200_000
MOST_LIFETIMES = 8  # of one content, before they are taken as drawn from a law


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """Distinct events; which of them each text of the traces is; texts that are no event."""

    events: tuple[Event, ...]
    number_of: dict[str, int]
    bad: tuple[str, ...]


def read_contents(texts: Iterable[str]) -> Contents:
    """Read the events that these texts stand for; different spellings of one event are one.

    >>> contents = read_contents(['{"a": 1}', '{"a":1.0}', 'nonsense'])
    >>> contents.events, contents.number_of, contents.bad
    (({'a': 1},), {'{"a": 1}': 0, '{"a":1.0}': 0}, ('nonsense',))
    """
    events: list[Event] = []
    known: dict[str, int] = {}
    number_of: dict[str, int] = {}
    bad = []
    for text in sorted(texts):
        try:
            event = parse_event(text)
        except (InvalidInputError, RecursionError):
            bad.append(text)
            continue
        canonical = canonical_event(event)
        if canonical not in known:
            known[canonical] = len(events)
            events.append(event)
        number_of[text] = known[canonical]
    if len(events) > MOST_CONTENTS:
        raise too_many_contents(f"{len(events):,}")
    return Contents(events=tuple(events), number_of=number_of, bad=tuple(bad))


def too_many_contents(seen: str) -> InvalidTracesError:
    """Make the error that says why not every event may differ from every other."""
    return InvalidTracesError(
        f"{seen} distinct contents, where a system can hold {MOST_CONTENTS:,}; remove "
        "attributes that no filter uses, such as ids and time stamps"
    )


def numbered(rows: pd.DataFrame, contents: Contents) -> pd.DataFrame:
    """Select the rows whose content is an event; add its number in a column ``event``."""
    good = rows[rows["content"].isin(list(contents.number_of))]
    return good.assign(event=good["content"].map(contents.number_of).astype(np.int64))


def wanted_by_batch(
    rows: pd.DataFrame, contents: Contents, filters: Sequence[Filter], batches: int
) -> dict[str, NDArray[np.float64]]:
    """Count the events each filter wants of each publisher: publisher → [filter, batch].

    Filters meet each distinct content once, never each event. Reads ``publisher``, ``content``,
    ``batch`` and ``rows``.
    """
    matrix = match_matrix(filters, contents.events).astype(np.float64)
    wanted = {}
    for publisher, part in numbered(rows.dropna(subset=["batch"]), contents).groupby("publisher"):
        events, position = np.unique(part["event"].to_numpy(), return_inverse=True)
        places = (pd.Series(position), part["batch"])
        wanted[str(publisher)] = matrix[events].T @ sums_at(
            part, "rows", (len(events), batches), *places
        )
    return wanted


def lifetimes(rows: pd.DataFrame) -> list[tuple[float, Law | None]]:
    """Count events by lifetime, of rows of one content: exact values, or one fitted distribution.

    Exact where every row has one lifetime and there are at most :data:`MOST_LIFETIMES` of them.
    Reads ``lifetime_bin`` (null: for ever), ``rows``, ``lifetime_total_s``, and the least and most
    of the row, in nanoseconds.
    """
    for_ever = float(rows.loc[rows["lifetime_bin"].isna(), "rows"].sum())
    shares: list[tuple[float, Law | None]] = [(for_ever, None)] if for_ever else []
    limited = rows[rows["lifetime_bin"].notna()]
    if limited.empty:
        return shares
    if (limited["least_lifetime_ns"] == limited["most_lifetime_ns"]).all():
        exact = limited.groupby("least_lifetime_ns")["rows"].sum()
        if len(exact) <= MOST_LIFETIMES:
            laws = [Deterministic(value_s=float(ns) / 1e9) for ns in exact.index]
            return shares + [(float(n), law) for n, law in zip(exact, laws, strict=True)]
    binned = limited.groupby("lifetime_bin").agg(
        rows=("rows", "sum"),
        total_s=("lifetime_total_s", "sum"),
        least=("least_lifetime_ns", "min"),
        most=("most_lifetime_ns", "max"),
    )
    return [*shares, (float(binned["rows"].sum()), fit_law(_lifetime_sample(binned)).law)]


def shared_bins(rows: pd.DataFrame) -> pd.DataFrame:
    """Find pairs (publisher, content) with several lifetimes in one bin that may yet be few in all.

    Reads the statistic of publications by content and bin of the lifetime.
    """
    limited = rows[rows["lifetime_bin"].notna()]
    several = limited["least_lifetime_ns"] != limited["most_lifetime_ns"]
    if not several.any():
        return limited[["publisher", "content"]].head(0)
    pairs = limited.assign(several=several).groupby(["publisher", "content"])["several"]
    bins = pairs.agg(["size", "any"])
    chosen = bins.index[(bins["size"] <= MOST_LIFETIMES) & bins["any"]]
    return chosen.to_frame(index=False)


def with_exact_lifetimes(publications: pd.DataFrame, exact: pd.DataFrame) -> pd.DataFrame:
    """Put exact lifetimes into the statistics of publications, where a content has only a few.

    ``exact`` has one row per publisher, content and lifetime; pairs with more than
    :data:`MOST_LIFETIMES` of them stay in bins.
    """
    key = ["publisher", "content"]
    limited = exact[exact["lifetime_bin"].notna()]
    counts = limited.groupby(key).size()
    few = counts.index[counts <= MOST_LIFETIMES]
    refined = exact[pd.MultiIndex.from_frame(exact[key]).isin(few)].assign(statistic="contents")
    if refined.empty:
        return publications
    replaced = (publications["statistic"] == "contents") & pd.MultiIndex.from_frame(
        publications[key]
    ).isin(few)
    refined = refined.reindex(columns=publications.columns)
    if "content_key" in publications:  # by which sightings find their content
        keys = publications[replaced].drop_duplicates("content").set_index("content")["content_key"]
        refined = refined.assign(content_key=refined["content"].map(keys))
    return pd.concat([publications[~replaced], refined], ignore_index=True)


def _lifetime_sample(limited: pd.DataFrame) -> Sample:
    """Make a sample of lifetimes in bins; within a bin, 5 % wide, all are as long as their mean."""
    counts = limited["rows"].to_numpy(dtype=np.float64)
    means_s = limited["total_s"].to_numpy(dtype=np.float64) / counts
    logs = np.log(np.maximum(means_s, 1e-12))
    bins = np.zeros(BINS, dtype=np.int64)
    bins[limited.index.to_numpy(dtype=np.int64)] = limited["rows"].to_numpy(dtype=np.int64)
    return Sample(
        count=int(counts.sum()),
        total_s=float(counts @ means_s),
        squares=float(counts @ means_s**2),
        logs=float(counts @ logs),
        squared_logs=float(counts @ logs**2),
        lowest_s=float(limited["least"].min()) / 1e9,
        highest_s=float(limited["most"].max()) / 1e9,
        bins=bins,
    )


def asked_attributes(filters: Iterable[Filter]) -> tuple[str, ...]:
    """List the attributes that any of the filters tests, sorted."""
    return tuple(
        sorted(
            {
                constraint.attribute
                for wants in filters
                for conjunction in wants.conjunctions
                for constraint in conjunction.constraints
            }
        )
    )


def folding_note(counted: pd.DataFrame, attributes: Collection[str]) -> str:
    """Say that contents were folded: the share of publications it concerns, and of how many."""
    asked = ", ".join(attributes) or "none"
    row = counted.iloc[0]
    return (
        f"about {row['contents']:,} distinct contents are more than a system can hold; "
        f"only the attributes that filters use are kept ({asked}), which makes no "
        f"difference to subscribers: {row['folded'] / max(row['rows'], 1):.2%} of "
        f"{row['rows']:,} publications had other attributes too"
    )
