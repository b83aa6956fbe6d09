from __future__ import annotations

import math

import pytest

from studies.content_timeliness import by_setting, by_skewness, findings


def rows_of(frame, *keys):
    return {tuple(row[key] for key in keys): row for row in frame.to_dict("records")}


def test_errors_of_points_made_by_hand(points):
    rows = rows_of(by_setting(points), "publishing", "matching", "model")
    assert len(rows) == 4  # skewed contents are not counted here
    row = rows["uniform", "exponential", "mm1"]
    assert row["points"] == 2
    assert row["mean_absolute"] == pytest.approx(0.2)
    assert row["maximum"] == pytest.approx(0.3)
    assert row["mean_signed"] == pytest.approx(-0.1)
    assert row["at_most_actual"] == 0.5
    assert row["noise"] == pytest.approx(0.015 * math.sqrt(2 / math.pi))
    assert rows["exponential", "exponential", "mm1"]["at_most_actual"] == 1.0


def test_errors_by_skewness_are_of_the_exponential_setting(points):
    rows = rows_of(by_skewness(points), "alpha", "model")
    assert {key: row["mean_absolute"] for key, row in rows.items()} == pytest.approx(
        {(1.0, "mm1"): 0.05, (1.0, "gg1"): 0.05, (0.5, "mm1"): 0.2, (2.0, "mm1"): 0.05}
    )


def test_claims_are_answered_from_the_errors(points):
    found = list(findings(points))
    answers = [(each.section, each.case, each.holds) for each in found]
    assert answers == [
        ("5.2", "high load", True),  # 0.05 where exponential, 0.2 elsewhere
        ("5.2", "high load", False),  # half of the predictions are above the actual value
        ("5.3", "high load", True),  # 0.05 against 0.2
        ("5.3", "high load", True),  # the same numbers
        ("5.4", "high load", True),  # 0.2 at one half, 0.05 at two
    ]
    assert found[0].found == (
        "mean absolute error 0.0500 there, elsewhere at least 0.2000 (uniform/exponential)"
    )


def test_claims_that_the_runs_cannot_answer_are_left_out(points):
    few = points[(points["model"] == "mm1") & (points["alpha"] == 1.0)]
    sections = [each.section for each in findings(few)]
    assert sections == ["5.2", "5.2"]


def test_a_claim_that_fails_says_where(points):
    worse = points.copy()
    worse.loc[(worse["model"] == "gg1") & (worse["publishing"] == "uniform"), "predicted"] = 0.0
    found = findings(worse)
    (claim,) = [each for each in found if "G/G/1 model is more accurate" in each.says]
    assert not claim.holds
    assert claim.found == "in 0 of 1 settings; not in uniform/exponential 0.6000 against 0.2000"
