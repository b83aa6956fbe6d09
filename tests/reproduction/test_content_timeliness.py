from __future__ import annotations

import json

import pandas as pd
import pytest

from tidings.cli.main import run
from tidings.errors import InvalidInputError
from tidings.reproduction.accuracy import POINT_COLUMNS
from tidings.reproduction.content_timeliness import (
    ALPHAS,
    SETTINGS,
    Plan,
    Study,
    check_folder,
    reproduce,
    save,
)


def test_a_run_for_every_system_load_and_setting():
    assert len(SETTINGS) == 6
    assert len(Plan().runs) == 5 * 2 * 6
    assert len(set(Plan().runs)) == 60
    assert Plan(systems=2, seed=4, loads=("low",), settings=SETTINGS[:1]).runs == [
        (4, "low", "exponential", "exponential"),
        (5, "low", "exponential", "exponential"),
    ]


def test_plans_that_cannot_be_are_refused():
    with pytest.raises(InvalidInputError, match="no load 'medium'; wants low, high"):
        Plan(loads=("medium",))
    with pytest.raises(InvalidInputError, match="systems is 0"):
        Plan(systems=0)


def test_a_study_is_saved_whole_and_read_back(points, tmp_path):
    study = Study(plan=Plan(loads=("high",)), points=points, notes=("a note",))
    save(study, tmp_path / "out")
    document = json.loads((tmp_path / "out" / "reproduction.json").read_text("utf-8"))
    assert document["plan"]["loads"] == {"high": 0.75}
    assert document["notes"] == ["a note"]
    assert set(document["models"]) == set(study.plan.models)
    assert len(document["by_setting"]) == 4
    again = pd.read_csv(tmp_path / "out" / "points.csv")
    pd.testing.assert_frame_equal(again, points)
    save(study, tmp_path / "out")  # a folder of ours may be written again


def test_a_folder_with_other_things_is_refused(tmp_path):
    (tmp_path / "diary.txt").write_text("mine")
    with pytest.raises(InvalidInputError, match="not of ours"):
        check_folder(tmp_path)
    (tmp_path / "new").mkdir()
    check_folder(tmp_path / "new")


@pytest.mark.slow
@pytest.mark.statistical
def test_one_system_end_to_end():
    plan = Plan(
        systems=1, replications=6, duration_s=1000.0, loads=("high",), settings=SETTINGS[:1]
    )
    told = []
    study = reproduce(plan, progress=told.append)
    assert told == ["run 1 of 1: system 1, high load, exponential publishing, exponential matching"]
    assert tuple(study.points.columns) == POINT_COLUMNS
    assert len(study.points) == 100 * len(plan.models) * len(ALPHAS)
    errors = study.by_setting.set_index("model")
    # With Poisson arrivals and exponential matching the whole law is exact at every broker; what
    # is left is the noise of the sample and the independence of sojourns on a path (about .005).
    assert errors.loc["law", "mean_absolute"] < errors.loc["law", "noise"] + 0.01
    assert errors.loc["mm1", "mean_absolute"] > 2 * errors.loc["law", "mean_absolute"]
    by_alpha = study.by_skewness.set_index(["model", "alpha"])["mean_absolute"]
    for alpha in (0.5, 2.0):
        assert by_alpha["law", alpha] > 2 * by_alpha["law", 1.0]
    pd.testing.assert_frame_equal(study.points, reproduce(plan).points)


@pytest.mark.slow
def test_the_command_prints_tables_and_leaves_a_folder(tmp_path, capsys):
    arguments = ["--systems", "1", "--seeds", "2", "--duration", "60s", "--load", "low"]
    folder = tmp_path / "out"
    code = run(["reproduce", "content-timeliness", *arguments, "--to", str(folder)])
    out = " ".join(capsys.readouterr().out.split())
    assert code == 0
    assert "Mean absolute error (largest), low load, busiest broker at 30 %" in out
    assert "section 5.4, low load" in out
    assert {each.name for each in folder.iterdir()} == {
        "by_setting.csv",
        "by_skewness.csv",
        "points.csv",
        "reproduction.html",
        "reproduction.json",
    }
