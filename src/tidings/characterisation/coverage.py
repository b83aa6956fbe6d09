"""How much of what was published could be followed to those who want it, and why not the rest."""

from __future__ import annotations

import pandas as pd

from tidings.characterisation.collecting import Statistics
from tidings.characterisation.deliveries import UNPUBLISHED
from tidings.characterisation.sightings import LOST, PUBLISHED

COVERAGE_COLUMNS = ("what", "number", "of", "share")


def coverage_table(seen: Statistics, subscribers: pd.DataFrame) -> pd.DataFrame:
    """Shares of events, deliveries and wanted copies that the tables explain.

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
        ("events that some broker has seen", events - unseen, events),
        ("deliveries whose publication is known", received - strays, received),
        ("wanted copies that were delivered", of_copies("delivered"), wanted),
        ("wanted copies lost on a link that is known", of_copies("lost_link"), wanted),
        ("wanted copies missing for no known reason", of_copies("lost_unexplained"), wanted),
    ]
    return pd.DataFrame(
        [
            (what, round(number), round(whole), number / whole if whole else float("nan"))
            for what, number, whole in rows
        ],
        columns=list(COVERAGE_COLUMNS),
    )
