"""An experiment as tables and claims for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from tidings.model.study import Finding, Grid, Study
from tidings.reporting.terminal import Column, FittingTable

_HOLDS = {
    True: ("holds     ", "green"),
    False: ("does not  ", "red"),
    None: ("open      ", "yellow"),  # within the noise
}


def study_tables(study: Study) -> Iterator[RenderableType]:
    """Every table with numbers in it, then the paper's claims."""
    for section in study.sections:
        for exhibit in section.exhibits:
            if isinstance(exhibit, Grid) and exhibit.names < len(exhibit.columns):
                yield grid_table(exhibit)
    yield _claims(study.findings)


def grid_table(grid: Grid) -> FittingTable:
    """A grid as a table that fits the terminal."""
    columns = [
        Column(title=title, cells=[row[at] for row in grid.rows], left=at < grid.names)
        for at, title in enumerate(grid.columns)
    ]
    return FittingTable(title=grid.title, columns=columns, caption=grid.caption)


def _claims(findings: tuple[Finding, ...]) -> Text:
    text = Text()
    for each in findings:
        text.append(*_HOLDS[each.holds])
        text.append(f"section {each.section}, {each.case}: {each.says}\n")
        text.append(f"         result: {each.found}\n")
    return text
