from __future__ import annotations

import math

from studies.points import points_of
from tidings.model.outcome import Outcome, table


def test_points_are_subscribers_known_on_both_sides():
    def outcome(source, shares, errors=(math.nan,) * 3):
        names = ["a", "b", "c"]
        columns = {"subscriber": names, "broker": ["hub"] * 3, "count": [1] * 3}
        columns |= {"events": [10.0, 20.0, 0.0], "on_time": shares, "on_time_se": errors}
        return Outcome(source=source, subscribers=table("subscribers", columns))

    found = points_of(
        outcome("predicted", [0.5, 0.6, math.nan]),
        outcome("simulated", [0.4, 0.7, math.nan], (0.01, 0.02, math.nan)),
    )
    assert found.to_dict("list") == {
        "subscriber": ["a", "b"],
        "broker": ["hub", "hub"],
        "events": [10.0, 20.0],
        "predicted": [0.5, 0.6],
        "actual": [0.4, 0.7],
        "actual_se": [0.01, 0.02],
    }
