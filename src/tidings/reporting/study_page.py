"""One self-contained HTML page about an experiment: claims, tables, plots."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import Any

from tidings.model.study import Curves, Scatter, Section, Study, TextTable, Timeline
from tidings.model.writing import write_file
from tidings.reporting import figures
from tidings.reporting.templates import asset, fill


def render_study(study: Study) -> str:
    """Render the page as HTML text."""
    return fill(
        "study.html.jinja",
        study=study,
        sections=[section_parts(each) for each in study.sections],
        style=asset("page.css") + asset("study.css"),
    )


def write_study(study: Study, path: str | Path) -> Path:
    """Write the page to a file, whole or not at all; answers where it is."""
    target = Path(path)
    write_file(target, render_study(study).encode("utf-8"))
    return target


def section_parts(section: Section) -> dict[str, Any]:
    """Collect what a page shows of a section: tables first, then figures."""
    return {
        "title": section.title,
        "words": section.words,
        "grids": [each for each in section.exhibits if isinstance(each, TextTable)],
        "scatters": [
            {"title": each.title, "svg": figures.scatter(each)}
            for each in section.exhibits
            if isinstance(each, Scatter)
        ],
        "folds": [
            {"title": title, "plots": [_plot(each) for each in plots]}
            for title, plots in groupby(
                (each for each in section.exhibits if isinstance(each, Curves | Timeline)),
                key=lambda each: each.fold if isinstance(each, Curves) else "",
            )
        ],
    }


def _plot(exhibit: Curves | Timeline) -> dict[str, Any]:
    if isinstance(exhibit, Timeline):
        return {"title": exhibit.title, "svg": figures.timeline(exhibit), "names": []}
    names = [*exhibit.lines, *exhibit.marks]
    return {"title": exhibit.title, "svg": figures.curves(exhibit), "names": names}
