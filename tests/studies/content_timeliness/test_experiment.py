from __future__ import annotations

import json
from dataclasses import replace

import pandas as pd
import pytest

from studies.content_timeliness import (
    POINT_COLUMNS,
    by_setting,
    by_skewness,
    random_systems,
    simulate_all,
    study,
)
from studies.content_timeliness.latencies import wide_area
from studies.harness import check_folder, save, silent
from studies.settings.content_timeliness import SETTINGS, Settings
from tidings.cli.commands import run
from tidings.errors import InvalidInputError


def test_a_run_for_every_system_load_and_setting():
    assert len(SETTINGS) == 6
    assert len(Settings().runs) == 5 * 2 * 6
    assert len(set(Settings().runs)) == 60
    assert Settings(systems=2, seed=4, load="low", settings=SETTINGS[:1]).runs == [
        (4, "low", "exponential", "exponential"),
        (5, "low", "exponential", "exponential"),
    ]


def test_a_study_is_saved_whole_and_read_back(points, tmp_path):
    found = study(Settings(load="high"), points, "a note")
    save(found, tmp_path / "out")
    document = json.loads((tmp_path / "out" / "reproduction.json").read_text("utf-8"))
    assert document["plan"]["loads"] == {"high": 0.75}
    assert document["choices"][-1] == "a note"
    assert len(document["by_setting"]) == 4
    again = pd.read_csv(tmp_path / "out" / "points.csv")
    pd.testing.assert_frame_equal(again, points)
    save(found, tmp_path / "out")  # a folder of ours may be written again


def test_the_study_shows_models_side_by_side_and_every_run(points):
    shown = study(Settings(load="high"), points)
    models, load, skewness = shown.sections
    assert [row[0] for row in models.exhibits[0].rows] == list(Settings().models)
    size, side, *plots = load.exhibits
    assert size.columns == ("publishing", "matching", "noise", "mm1", "gg1")
    assert size.rows[1] == (
        "uniform", "exponential", "0.0120", "0.2000 (0.300)", "0.0500 (0.050)"
    )  # fmt: skip
    assert side.rows[1][2:] == ("-0.1000 (0.50)", "+0.0000 (0.50)")
    assert {plot.title: plot.clouds for plot in plots}["gg1: uniform / exponential"] == {
        "system 1": ((0.55, 0.60), (0.65, 0.60))
    }
    assert ("high", "0.5", "0.2000", "") in skewness.exhibits[0].rows
    assert [each.case for each in shown.findings] == ["high load"] * 5


def test_a_folder_with_other_things_is_refused(tmp_path):
    (tmp_path / "diary.txt").write_text("mine")
    with pytest.raises(InvalidInputError, match="not made by this command"):
        check_folder(tmp_path)
    (tmp_path / "new").mkdir()
    check_folder(tmp_path / "new")


@pytest.mark.slow
@pytest.mark.statistical
def test_one_system_end_to_end():
    settings = Settings(
        systems=1,
        seeds=6,
        duration_s=1000.0,
        load="high",
        settings=SETTINGS[:1],
        alphas=(0.5, 1.0, 2.0),
    )
    told = []
    points = simulate_all(settings, told.append, wide_area)
    assert told == ["run 1 of 1: system 1, high load, exponential publishing, exponential matching"]
    assert tuple(points.columns) == POINT_COLUMNS
    assert len(points) == 100 * len(settings.models) * len(settings.alphas)
    errors = by_setting(points).set_index("model")
    # With Poisson arrivals and exponential matching waits are all but exact (copies of events are
    # reckoned with to first order); what is left is the noise of the sample and the independence of
    # sojourns on a path (about .005).
    assert errors.loc["law", "mean_absolute"] < errors.loc["law", "noise"] + 0.01
    assert errors.loc["mm1", "mean_absolute"] > 2 * errors.loc["law", "mean_absolute"]
    by_alpha = by_skewness(points).set_index(["model", "alpha"])["mean_absolute"]
    for alpha in (0.5, 2.0):
        assert by_alpha["law", alpha] > 2 * by_alpha["law", 1.0]
    brief = replace(settings, seeds=2, duration_s=60.0, alphas=(1.0,), models=("mm1",))
    one, other = (simulate_all(brief, silent, wide_area) for _ in range(2))
    pd.testing.assert_frame_equal(one, other)


@pytest.mark.slow
def test_the_command_prints_tables_and_leaves_a_folder(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(random_systems, "BROKERS", 6)  # all that the paper does, in small
    monkeypatch.setattr(random_systems, "SUBSCRIBERS", 20)
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
