"""The distinct contents that were published, read once each, and counted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tidings.errors import InvalidInputError, InvalidTracesError
from tidings.model.events import Event, canonical_event, parse_event
from tidings.model.filters import Filter
from tidings.model.laws import Deterministic, Empirical, Law
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
    """The events that these texts stand for; different spellings of one event are one.

    >>> found = read_contents(['{"a": 1}', '{"a":1.0}', 'nonsense'])
    >>> found.events, found.number_of, found.bad
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
        raise InvalidTracesError(
            f"{len(events):,} distinct contents, more than the {MOST_CONTENTS:,} that a system can "
            "hold; leave out attributes that no filter asks for, such as ids and time stamps"
        )
    return Contents(events=tuple(events), number_of=number_of, bad=tuple(bad))


def numbered(rows: pd.DataFrame, contents: Contents) -> pd.DataFrame:
    """The rows whose content is an event, with its number in a column ``event``."""
    good = rows[rows["content"].isin(list(contents.number_of))]
    return good.assign(event=good["content"].map(contents.number_of).astype(np.int64))


def wanted_by_batch(
    rows: pd.DataFrame, contents: Contents, filters: Sequence[Filter], batches: int
) -> dict[str, NDArray[np.float64]]:
    """How many events each filter wants of each publisher: publisher → [filter, batch].

    Filters meet each distinct content once, never each event. Reads ``publisher``, ``content``,
    ``batch`` and ``rows``.
    """
    matrix = match_matrix(filters, contents.events).astype(np.float64)
    found = {}
    for publisher, part in numbered(rows.dropna(subset=["batch"]), contents).groupby("publisher"):
        events, position = np.unique(part["event"].to_numpy(), return_inverse=True)
        counts = np.zeros((len(events), batches))
        np.add.at(counts, (position, part["batch"].to_numpy(dtype=np.int64)), part["rows"])
        found[str(publisher)] = matrix[events].T @ counts
    return found


def lifetimes(rows: pd.DataFrame) -> list[tuple[float, Law | None]]:
    """How many events had which lifetime, of rows of one content: exact values, or one law of all.

    Reads ``lifetime_bin`` (null: for ever), ``rows``, and the least and most in the bin.
    """
    for_ever = float(rows.loc[rows["lifetime_bin"].isna(), "rows"].sum())
    limited = (
        rows[rows["lifetime_bin"].notna()]
        .groupby("lifetime_bin")
        .agg(
            rows=("rows", "sum"),
            least=("least_lifetime_ns", "min"),
            most=("most_lifetime_ns", "max"),
        )
    )
    found: list[tuple[float, Law | None]] = [(for_ever, None)] if for_ever else []
    if limited.empty:
        return found
    if len(limited) <= MOST_LIFETIMES and (limited["least"] == limited["most"]).all():
        exact = zip(limited["rows"], limited["least"], strict=True)
        return found + [(float(n), Deterministic(value_s=float(ns) / 1e9)) for n, ns in exact]
    edges = [float(limited["least"].iloc[0]) / 1e9]
    weights: list[float] = []
    total = float(limited["rows"].sum())
    for row in limited.itertuples():
        if row.least / 1e9 > edges[-1]:
            edges.append(float(row.least) / 1e9)
            weights.append(0.0)
        edges.append(max(float(row.most) / 1e9, edges[-1]))
        weights.append(float(row.rows) / total)
    law = Empirical(edges_s=tuple(edges), weights=tuple(weights))
    return [*found, (total, law)]
