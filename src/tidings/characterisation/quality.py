"""What became of every row that was read: used, set aside with a reason, or one too many."""

from __future__ import annotations

import pandas as pd

from tidings.characterisation.collecting import Statistics
from tidings.characterisation.subscribers import BAD_FILTER

QUALITY_COLUMNS = ("table", "fate", "reason", "rows")
FATES = ("used", "set aside", "duplicate")
BAD_CONTENT = "content is not an event in JSON"


def quality_table(seen: Statistics, *, bad_filters: int) -> pd.DataFrame:
    """Rows of every table by fate and reason; those of one table add up to all that were read.

    Contents and filters that are none were found out only when the texts were looked into; they
    are moved from those used to those set aside.
    """
    contents = seen.publications_by("contents")
    bad_contents = int(contents.loc[contents["content"].isin(seen.contents.bad), "rows"].sum())
    statistics = {
        "publications": seen.publications,
        "hops": seen.hops,
        "deliveries": seen.deliveries,
        "probes": seen.probes,
        "subscriptions": seen.subscriptions,
    }
    rows = []
    for table, frame in statistics.items():
        if frame is None:
            continue
        if "statistic" in frame:
            frame = frame[frame["statistic"] == "quality"]
        late = {"publications": bad_contents, "subscriptions": bad_filters}.get(table, 0)
        good = frame["reason"].isna()
        duplicates = (
            int(frame.loc[good, "duplicates"].fillna(0).sum()) if "duplicates" in frame else 0
        )
        used = int(frame.loc[good, "rows"].sum()) - late - duplicates
        rows.append((table, "used", "", used))
        if late:
            reason = BAD_CONTENT if table == "publications" else BAD_FILTER
            rows.append((table, "set aside", reason, late))
        for reason, part in frame[~good].groupby("reason"):
            rows.append((table, "set aside", str(reason), int(part["rows"].sum())))
        if duplicates:
            rows.append((table, "duplicate", "received again by the same subscriber", duplicates))
    return pd.DataFrame(rows, columns=list(QUALITY_COLUMNS))


def rows_read(quality: pd.DataFrame) -> dict[str, int]:
    """How many rows of each table were read: used, set aside and duplicates together."""
    return {str(name): int(rows) for name, rows in quality.groupby("table")["rows"].sum().items()}
