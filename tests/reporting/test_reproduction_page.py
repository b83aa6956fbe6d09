from __future__ import annotations

import re
from io import StringIO

import pandas as pd
import pytest
from rich.console import Console

from tidings.reporting import figures
from tidings.reporting.reproduction_page import (
    Reproduction,
    render_reproduction,
    write_reproduction,
)
from tidings.reporting.reproduction_tables import claims_text, error_tables, skewness_table

NASTY = "<script>alert(1)</script>&\"'"


def _errors(**values):
    found = {"mean_absolute": 0.1234, "maximum": 0.4, "mean_signed": -0.05, "noise": 0.0056}
    return {"points": 2, **found, "at_most_actual": 0.75, **values}


@pytest.fixture
def study():
    setting = {"load": "high", "publishing": "uniform", "matching": "exponential"}
    points = pd.DataFrame(
        [
            {**setting, "seed": seed, "utilisation": 0.75, "model": model, "alpha": 1.0}
            | {"predicted": 0.25 * seed, "actual": 0.5}
            for model in ("law", "mm1")
            for seed in (1, 2, 3)
        ]
    )
    by_setting = pd.DataFrame([{**setting, "model": m, **_errors()} for m in ("law", "mm1")])
    by_skewness = pd.DataFrame(
        [
            {"load": "high", "alpha": alpha, "model": m, **_errors(mean_absolute=0.1 * alpha)}
            for alpha in (0.5, 1.0, 2.0)
            for m in ("law", "mm1")
        ]
    )
    document = {
        "claims": [
            {"section": "5.2", "says": NASTY, "load": "high", "found": "so", "holds": False},
            {"section": "5.3", "says": "that", "load": "high", "found": "this", "holds": True},
        ],
        "models": {"law": "whole laws", "mm1": "means"},
        "paper_settings": {"runs": "5"},
        "plan": {"systems": 3, "replications": 16, "duration_s": 2500.0},
        "choices": ["a choice"],
        "notes": ["a note"],
    }
    return Reproduction(
        title="An experiment",
        points=points,
        by_setting=by_setting,
        by_skewness=by_skewness,
        document=document,
    )


def test_the_page_needs_nothing_from_outside_and_runs_nothing(study):
    text = render_reproduction(study)
    assert "default-src 'none'" in text
    assert not re.search(r"<(script|link|iframe|img|object)|src=|href=|url\(|@import", text)
    assert "&lt;script&gt;alert(1)" in text


def test_the_page_holds_claims_errors_and_a_plot_for_every_model_and_setting(study):
    text = render_reproduction(study)
    for part in ("0.1234", "0.400", "-0.0500", "0.75", "0.0056", "3 random systems", "a note"):
        assert part in text
    assert text.count('class="diagonal"') == 2
    assert text.count('class="cloud law"') == 3
    assert text.count('class="line ') == 2


def test_points_lie_where_they_should():
    drawn = figures.scatter("plot", {"system 1": [(0.0, 0.0), (1.0, 1.0)]}, "law")
    (diagonal,) = re.findall(r'class="diagonal" d="M([\d. ]+)L([\d. ]+)"', drawn)
    (dots,) = re.findall(r'class="cloud law" d="M([\d. ]+)h0M([\d. ]+)h0"', drawn)
    assert dots == diagonal


@pytest.mark.parametrize("most", [0.003, 0.09, 0.1, 0.161, 0.5, 1.0, 7.0])
def test_axes_have_a_handful_of_ticks_and_hold_every_value(most):
    drawn = figures.lines("errors", {"law": [(0.5, 0.0), (2.0, most)]}, "x", "y")
    numbers = [float(each) for each in re.findall(r'text-anchor="end">([^<]+)<', drawn)]
    assert numbers[0] == 0.0
    assert numbers[-1] >= most
    assert 3 <= len(numbers) <= 7


def test_the_page_is_written_whole(study, tmp_path):
    path = write_reproduction(study, tmp_path / "deep" / "page.html")
    assert path.read_text(encoding="utf-8") == render_reproduction(study)


def test_without_a_study_of_skewness_there_is_no_figure_of_it(study):
    one = study.by_skewness[study.by_skewness["alpha"] == 1.0]
    text = render_reproduction(
        Reproduction(
            title=study.title,
            points=study.points,
            by_setting=study.by_setting,
            by_skewness=one,
            document=study.document,
        )
    )
    assert "skewness α" not in text


def test_the_terminal_shows_models_side_by_side(study):
    console = Console(file=StringIO(), width=120)
    for part in error_tables(study.by_setting, {"high": 0.75}):
        console.print(part)
    console.print(skewness_table(study.by_skewness), claims_text(study.document["claims"]))
    text = console.file.getvalue()
    words = " ".join(text.split())
    assert "Mean absolute error (largest), high load, busiest broker at 75 %" in words
    assert "uniform exponential 0.0056 0.1234 (0.400) 0.1234 (0.400)" in words
    assert "uniform exponential -0.0500 (0.75) -0.0500 (0.75)" in words
    assert "high 0.5 0.0500 0.0500" in words
    assert "does not section 5.2" in words
    assert "holds section 5.3, high load: that found: this" in words
