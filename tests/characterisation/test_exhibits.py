"""What is drawn of laws, rates and rows."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from tidings.characterisation.fit.clocks import CLOCK_COLUMNS
from tidings.characterisation.fit.exhibits import MOST_LAWS, SEEN, quality_sections
from tidings.characterisation.fit.laws import fit_law
from tidings.characterisation.fit.samples import sample_of
from tidings.characterisation.fit.stationarity import even_batches_s, rates_over_time
from tidings.model.study import Curves, TextTable
from tidings.reporting.study_page import section_parts
from tidings.reporting.templates import fill


@pytest.fixture(scope="module")
def sections():
    rng = np.random.default_rng(2)
    laws = {f"law {n}": fit_law(sample_of(rng.exponential(0.01, 500))) for n in range(MOST_LAWS)}
    two = np.concatenate([rng.normal(0.01, 1e-4, 400), rng.normal(0.2, 1e-3, 400)])
    laws |= {"humps": fit_law(sample_of(two)), "equal": fit_law(sample_of([0.5] * 9))}
    quality = pd.DataFrame(
        [("hops", "used", "", 1200), ("hops", "set aside", "<b>late</b>", 3)],
        columns=["table", "fate", "reason", "rows"],
    )
    coverage = pd.DataFrame(
        [("seen", 5, 10, 0.5), ("nothing", 0, 0, np.nan)],
        columns=["what", "number", "of", "share"],
    )
    batches = pd.DataFrame(
        {"publisher": "p", "batch": [0.0, 0.0, 31.0, np.nan], "rows": [2, 4, 9, 7]}
    )
    clocks = pd.DataFrame(
        [("a", "b", -0.001, np.nan, 5, 0, 0, 0, "they may be equal")], columns=list(CLOCK_COLUMNS)
    )
    rates = rates_over_time(batches, even_batches_s(64.0))
    return quality_sections(quality, coverage, laws, rates, clocks=clocks)


def test_the_law_that_fits_worst_is_drawn_first_over_its_histogram(sections):
    assert [each.title for each in sections] == [
        "What was read", "Clocks", "Fitted distributions", "Rates over time",
    ]  # fmt: skip
    first, second, *_ = drawn = sections[2].exhibits
    assert len(drawn) <= 2 * MOST_LAWS
    assert isinstance(first, Curves)
    assert first.fold.startswith("humps: empirical, misfit ")
    assert first.fold == second.fold
    assert sum(share for _, share in first.marks[SEEN]) == pytest.approx(100.0, rel=1e-12)
    # the histogram itself is the law: its line goes through the points, but for the first bin
    line, points = dict(first.lines["empirical"]), dict(first.marks[SEEN])
    assert max(abs(line[at] - points[at]) for at in line) < 5.0  # %
    assert all(a >= b for (_, a), (_, b) in pairwise(second.lines[SEEN]))
    assert [*second.lines] == [*first.lines, SEEN]  # so that a law has one colour in both
    assert not any(each.fold.startswith("equal") for each in drawn)  # nothing to draw


def test_rates_are_those_of_parts_of_the_window(sections):
    (curves,) = sections[3].exhibits
    points = curves.lines["p"]
    assert curves.x_label == "seconds"
    assert points[0] == (1.0, 3.0)
    assert points[-1] == (63.0, 4.5)
    assert sum(rate for _, rate in points[1:-1]) == 0.0


def test_rows_and_coverage_are_told_and_names_cannot_become_markup(sections):
    rows, covered = sections[0].exhibits
    assert isinstance(rows, TextTable)
    assert rows.rows[0] == ("hops", "used", "", "1,200")
    assert covered.rows == (("seen", "5", "10", "50.00%"), ("nothing", "0", "0", "—"))
    page = fill("sections.html.jinja", sections=[section_parts(each) for each in sections])
    assert "&lt;b&gt;late&lt;/b&gt;" in page
    assert "<b>late" not in page
    assert page.count("<svg") == len(sections[2].exhibits) + 1
    (clocks,) = sections[1].exhibits  # told also where they may be equal
    assert clocks.rows == (
        ("b", "a", "-1 ms", "—", "5", "0", "0", "0", "they may be equal"),
    )  # fmt: skip
