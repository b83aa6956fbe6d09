from __future__ import annotations

import re
from dataclasses import replace
from io import StringIO
from itertools import pairwise

import pandas as pd
import pytest
from rich.console import Console

from studies.harness import study_tables
from tidings.model.study import Curves, Finding, Scatter, Section, Study, TextTable, Timeline
from tidings.reporting import figures
from tidings.reporting.study_page import render_study, write_study

NASTY = "<script>alert(1)</script>&\"'"


@pytest.fixture
def study():
    words = TextTable(title="", columns=("model", "assumes"), rows=((NASTY, "nothing"),), names=2)
    errors = TextTable(
        title="Errors", columns=("setting", "law"), rows=(("uniform", "0.1234"),), caption="all"
    )
    clouds = {f"system {n}": ((0.25 * n, 0.5),) for n in (1, 2, 3)}
    plots = tuple(Scatter(title=f"plot {n} {NASTY}", clouds=clouds, series=n) for n in (0, 1))
    curve = Curves(
        title=NASTY,
        lines={NASTY: ((0.5, 0.1), (2.0, 0.2))},
        marks={"seen": ((0.5, 0.12),)},
        x_label="α",
        y_label="error",
    )
    about = {"section": "5.2", "case": "high load", "found": "this"}
    return Study(
        paper="a-paper",
        title="An experiment",
        summary="3 random systems",
        settings={"runs": "5"},
        choices=("a choice",),
        findings=(
            Finding(**about, says=NASTY, holds=False),
            Finding(**about, says="that", holds=True),
        ),
        sections=(
            Section(title="Models", exhibits=(words,)),
            Section(title="Load", words="how to read", exhibits=(errors, *plots, curve)),
        ),
        tables={"points": pd.DataFrame({"x": [1.0]}), "errors": pd.DataFrame({"y": [2.0]})},
        plan={"systems": 3},
    )


def test_the_page_needs_nothing_from_outside_and_runs_nothing(study):
    text = render_study(study)
    assert "default-src 'none'" in text
    assert not re.search(r"<(script|link|iframe|img|object)|src=|href=|url\(|@import", text)
    assert "&lt;script&gt;alert(1)" in text


def test_the_page_holds_claims_tables_and_plots(study):
    text = render_study(study)
    for part in ("0.1234", "3 random systems", "a choice", "how to read", "runs", "high load"):
        assert part in text
    assert text.count('class="diagonal"') == 2
    assert text.count('class="cloud series-1"') == 3
    assert text.count('class="line ') == 1
    assert text.count('class="dots ') == 2


def test_points_lie_where_they_should():
    drawn = figures.scatter(Scatter(title="plot", clouds={"one": ((0.0, 0.0), (1.0, 1.0))}))
    (diagonal,) = re.findall(r'class="diagonal" d="M([\d. ]+)L([\d. ]+)"', drawn)
    (dots,) = re.findall(r'class="cloud series-0" d="M([\d. ]+)h0M([\d. ]+)h0"', drawn)
    assert dots == diagonal


def test_decades_are_equally_far_apart_on_a_logarithmic_axis():
    plot = Curves(
        title="growth",
        lines={"time": ((10.0, 1.0), (100.0, 10.0), (1000.0, 100.0))},
        x_label="n",
        y_label="s",
        x_log=True,
        y_log=True,
    )
    (path,) = re.findall(r'class="line series-0" d="M([^"]+)"', figures.curves(plot))
    places = [[float(part) for part in each.split()] for each in path.split("L")]
    for axis in (0, 1):
        steps = [b[axis] - a[axis] for a, b in pairwise(places)]
        assert steps[0] == pytest.approx(steps[1], abs=0.11)


def test_a_row_that_does_not_fit_its_columns_is_refused():
    with pytest.raises(ValueError, match="'t' has 2 columns"):
        TextTable(title="t", columns=("a", "b"), rows=(("only",),))


@pytest.mark.parametrize("most", [0.003, 0.09, 0.1, 0.161, 0.5, 1.0, 7.0])
def test_axes_have_a_handful_of_ticks_and_hold_every_value(most):
    lines = {"law": ((0.5, 0.0), (2.0, most))}
    drawn = figures.curves(Curves(title="errors", lines=lines, x_label="x", y_label="y"))
    numbers = [float(each) for each in re.findall(r'text-anchor="end">([^<]+)<', drawn)]
    assert numbers[0] == 0.0
    assert numbers[-1] >= most
    assert 3 <= len(numbers) <= 7


def test_the_page_is_written_whole(study, tmp_path):
    path = write_study(study, tmp_path / "deep" / "page.html")
    assert path.read_text(encoding="utf-8") == render_study(study)


def test_the_terminal_shows_numbers_and_claims(study):
    console = Console(file=StringIO(), width=120)
    for part in study_tables(study):
        console.print(part)
    words = " ".join(console.file.getvalue().split())
    assert "Errors setting law" in words
    assert "uniform 0.1234 all" in words
    assert "nothing" not in words  # words alone are for the page
    assert "does not section 5.2" in words
    assert "holds section 5.2, high load: that result: this" in words


def test_points_stay_out_of_the_document(study):
    document = study.to_document()
    assert document["errors"] == [{"y": 2.0}]
    assert "points" not in document


def test_a_time_line_has_a_row_for_every_name_and_a_bar_for_every_span():
    plot = Timeline(
        title=NASTY,
        spans={NASTY: ((0.0, 2.5), (5.0, 10.0)), "calm": ()},
        x_label="seconds",
        end=10.0,
    )
    drawn = figures.timeline(plot)
    first, second = re.findall(r'class="span series-1" d="([^"]*)"', drawn)
    ends = re.findall(r"([\d.]+) ([\d.]+)", first)
    across = [float(x) for x, _ in ends]
    assert across[1] - across[0] == pytest.approx(0.25 * (across[3] - across[0]), abs=0.2)
    assert len({y for _, y in ends}) == 1
    assert second == ""
    assert NASTY not in drawn


def test_a_study_of_no_paper_does_not_speak_of_one(study):
    own = replace(study, paper="", settings={})
    assert "the paper" not in render_study(own)
    assert "What should hold" in render_study(own)
