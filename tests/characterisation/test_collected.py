"""What was counted, as a fit sees it."""

from __future__ import annotations

import pandas as pd

from tidings.characterisation.fit.collected import statistics_of
from tidings.characterisation.statistics import Partial


def counted(**more):
    """Hardly anything, and crossings between a broker and three peers, two of them publishers."""
    empty = {name: pd.DataFrame() for name in ("intervals", "hops", "deliveries")}
    return Partial(
        tables={
            **empty,
            "publications": pd.DataFrame(columns=["statistic", "content", "content_key"]),
            "sightings": pd.DataFrame(columns=["content_key"]),
            "crossing_hours": pd.DataFrame(columns=["source", "target", "hour"]),
            "bad_contents": pd.DataFrame(columns=["rows", "content"]),
            "crossings": pd.DataFrame(
                {"source": ["p", "q", "b", None], "target": ["b", "b", "s", None], "rows": [1] * 4}
            ),
            **more,
        }
    )


def test_crossings_of_peers_that_come_and_go_tell_nothing_of_links_on_any_day():
    sessions = pd.DataFrame({"path": ["q", "s", None]})
    left = statistics_of(counted(sessions=sessions)).crossings
    assert list(left["source"]) == ["p", None]
    assert len(statistics_of(counted()).crossings) == 4
