"""What became of every row that was read: used, set aside with a reason, or one too many."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from tidings.characterisation.statistics import (
    ARRIVED_OUTSIDE,
    BAD_CONTENT,
    BAD_FILTER,
    CHANGED_LATER,
    CHANGED_OUTSIDE,
    CONFLICT,
    LOST,
    PUBLISHED,
    PUBLISHED_OUTSIDE,
    SENT_IN_OUTAGE,
    SETTLING,
    UNASKED,
    UNPUBLISHED,
)

if TYPE_CHECKING:
    from tidings.characterisation.fit.collected import Statistics

SET_ASIDE = "set aside"
NAMELESS = "no event"  # the reason of rows without the id of one
QUALITY_COLUMNS = ("table", "fate", "reason", "rows")
DUPLICATE = {
    "publications": "published before with the same id and content",
    "deliveries": "received again by the same subscriber",
}
COPY = "the same in every column as another row"
# Reasons of rows that nothing is wrong with.
_OF_ANOTHER_TIME = (
    PUBLISHED_OUTSIDE, ARRIVED_OUTSIDE, CHANGED_OUTSIDE, CHANGED_LATER, SETTLING, UNPUBLISHED,
    UNASKED, SENT_IN_OUTAGE,
)  # fmt: skip
_LEFT_UNTOLD = {
    "publications": "rates may be too low by as much (their standard errors include this)",
    "hops": "losses of links without probes assume the same share at every broker "
    "(their standard errors allow for another)",
    "deliveries": "measured losses of subscribers may be too high by as much",
}
COVERAGE_COLUMNS = ("what", "number", "of", "share")


def quality_table(
    seen: Statistics,
    *,
    bad_filters: int,
    contradicting: Mapping[tuple[str, str], int] | None = None,
) -> pd.DataFrame:
    """Count rows of every table by fate and reason; those of one table add up to all that was read.

    Contents and filters that are none were found out only when the texts were looked into, and ids
    that stand for two publications only when events were, and rows that others contradict (by table
    and reason) only when all were counted; these are moved from those used to those set aside.
    """
    statistics = {
        "publications": seen.publications,
        "hops": seen.hops,
        "deliveries": seen.deliveries,
        "probes": seen.probes,
        "subscriptions": seen.subscriptions,
        "states": seen.states,
        "sessions": seen.sessions,
        "utilisation": seen.utilisation,
    }
    late: dict[str, dict[str, int]] = {
        "publications": {BAD_CONTENT: seen.bad_contents, CONFLICT: _conflicts(seen)},
        "subscriptions": {BAD_FILTER: bad_filters},
    }
    for (table, reason), number in (contradicting or {}).items():
        late.setdefault(table, {})[reason] = number
    rows: list[tuple[str, str, str, int]] = []
    for table, frame in statistics.items():
        if frame is None:
            continue
        if "statistic" in frame:
            frame = frame[frame["statistic"] == "quality"]
        good = frame["reason"].isna()
        found_late = late.get(table, {})
        duplicates = _copied(seen) if table == "publications" else _duplicates(frame[good])
        if table == "deliveries" and seen.handlings is not None:
            handled = seen.handlings[seen.handlings["statistic"] == "shares"]
            duplicates += int(handled["duplicates"].sum())
        used = int(frame.loc[good, "rows"].sum()) - sum(found_late.values()) - duplicates
        rows.append((table, "used", "", used))
        rows += [(table, SET_ASIDE, why, number) for why, number in found_late.items() if number]
        for reason, part in frame[~good].groupby("reason"):
            rows.append((table, SET_ASIDE, str(reason), int(part["rows"].sum())))
        if duplicates:
            rows.append((table, "duplicate", DUPLICATE.get(table, COPY), duplicates))
    return pd.DataFrame(rows, columns=list(QUALITY_COLUMNS))


def _conflicts(seen: Statistics) -> int:
    published = seen.sightings[seen.sightings["statistic"] == PUBLISHED]
    return int(published.loc[published["reason"].notna(), "rows"].sum())


def _copied(seen: Statistics) -> int:
    """Count publications beyond the first of every event."""
    published = seen.sightings[seen.sightings["statistic"] == PUBLISHED]
    once = published[published["reason"].isna()]
    return int((once["rows"] - once["events"]).sum())


def _duplicates(good: pd.DataFrame) -> int:
    """Count rows beyond the first of what can happen only once; 0 where nobody looked for any."""
    return int(good["duplicates"].fillna(0).sum()) if "duplicates" in good else 0


def unusable_rows(quality: pd.DataFrame) -> int:
    """Count rows that nobody can use: set aside, and not merely as being of another time."""
    wrong = (quality["fate"] == SET_ASIDE) & ~quality["reason"].isin(_OF_ANOTHER_TIME)
    return int(quality.loc[wrong, "rows"].sum())


def spoilt_shares(quality: pd.DataFrame) -> dict[str, float]:
    """Compute which share of the rows of the observed time could not be used, by table."""
    timely = quality[~quality["reason"].isin(_OF_ANOTHER_TIME)]
    read = timely.groupby("table")["rows"].sum()
    aside = timely[timely["fate"] == SET_ASIDE].groupby("table")["rows"].sum()
    return {str(name): float(rows / read[name]) for name, rows in aside.items()}


def nameless_share(hops: pd.DataFrame) -> float:
    """Compute the share of hops of the observed time that do not say of which event they are."""
    rows = hops[hops["statistic"] == "quality"]
    nameless = float(rows.loc[rows["reason"] == NAMELESS, "rows"].sum())
    timely = float(rows.loc[~rows["reason"].isin(_OF_ANOTHER_TIME), "rows"].sum())
    return nameless / timely if nameless else 0.0


def spoilt_notes(spoilt: Mapping[str, float]) -> list[str]:
    """Note what is unknown because of rows that could not be used, by table."""
    return [
        f"{100.0 * spoilt[table]:.2g} % of the rows of {table} were set aside: {what}"
        for table, what in _LEFT_UNTOLD.items()
        if table in spoilt
    ]


def coverage_table(seen: Statistics, subscribers: pd.DataFrame) -> pd.DataFrame:
    """Compute the shares of events, deliveries and wanted copies that the tables explain.

    ``subscribers`` is the measured outcome. Events are those published in the measured window;
    copies are events counted once for everybody who wants them.
    """
    published = seen.sightings[
        (seen.sightings["statistic"] == PUBLISHED) & seen.sightings["reason"].isna()
    ]
    events = int(published["events"].sum())
    lost = seen.sightings[seen.sightings["statistic"] == LOST]
    unseen = int(lost.loc[lost["target"].isna(), "events"].sum())
    quality = seen.deliveries[seen.deliveries["statistic"] == "quality"]
    received = int((quality["rows"] - quality["duplicates"].fillna(0)).sum())
    strays = int(quality.loc[quality["reason"] == UNPUBLISHED, "rows"].sum())
    copies = (subscribers["events"] * subscribers["count"]).fillna(0.0)
    wanted = float(copies.sum())

    def of_copies(column: str) -> float:
        return float((copies * subscribers[column].fillna(0.0)).sum())

    rows = [
        ("events seen by at least one broker", events - unseen, events),
        ("deliveries whose publication is known", received - strays, received),
        ("wanted copies that were delivered", of_copies("delivered"), wanted),
        ("wanted copies lost on a known link", of_copies("lost_link"), wanted),
        ("wanted copies missing without a known reason", of_copies("lost_unexplained"), wanted),
    ]
    return pd.DataFrame(
        [
            (what, round(number), round(whole), number / whole if whole else float("nan"))
            for what, number, whole in rows
        ],
        columns=list(COVERAGE_COLUMNS),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class BadTexts:
    """Contents and filters that are none: found out when the distinct texts were looked into."""

    contents: tuple[str, ...] = ()
    filters: tuple[str, ...] = ()
