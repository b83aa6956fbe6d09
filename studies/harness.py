"""What all studies stand on: settings as data, a run, what it says to a paper's claims, a page.

A study is a module of this folder with an :class:`Experiment`. The fields of its settings are the
options of ``tidings reproduce NAME``; its run gives a :class:`~tidings.model.study.Study`, which is
saved as tables, as JSON and as a page.
"""

from __future__ import annotations

import json as json_format
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Formatter
from typing import Any

import pandas as pd
from numpy.typing import ArrayLike
from rich.console import RenderableType
from rich.text import Text

from studies.commands import words_of
from tidings.cli import console
from tidings.errors import InvalidInputError
from tidings.model.json_text import plain
from tidings.model.progress import Progress
from tidings.model.study import Curves, Finding, Points, Scatter, Section, Study, TextTable
from tidings.model.writing import write_file
from tidings.reporting.study_page import write_study
from tidings.reporting.terminal import Column, FittingTable

MARKER, PAGE = "reproduction.json", "reproduction.html"  # a folder with the first is ours

Row = Mapping[str, Any]
Exhibit = TextTable | Scatter | Curves


def silent(_: str) -> None:
    """Report no progress to anybody."""


class Texts:
    """What a study says: the paper's settings and claims, our choices, the words of its page.

    They stand in a YAML file beside its module. Words in braces are filled in when they are used.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.all = words_of(name)

    def claim(self, key: str, holds: bool | None, **values: object) -> Finding:
        """Answer a claim by what was measured, and whether it holds (None: within the noise)."""
        words = {name: text.format(**values) for name, text in self.all["claims"][key].items()}
        return Finding(**words, holds=holds)

    def grid(
        self, key: str, rows: pd.DataFrame | Iterable[Row], further: str = "", **values: object
    ) -> TextTable:
        """Write rows into the table of this key; ``further`` columns depend on the run."""
        words = self.all["grids"][key]
        title, columns = words["title"].format(**values), words["columns"] + further
        return grid(
            title, rows, columns, names=words.get("names", 1), caption=words.get("caption", "")
        )

    def curves(
        self,
        key: str,
        lines: Mapping[str, Points],
        marks: Mapping[str, Points] | None = None,
        **values: object,
    ) -> Curves:
        """Draw lines, and points alone, into the plot of this key."""
        words = self.all["curves"][key]
        return Curves(
            title=words["title"].format(**values),
            lines=lines,
            marks=marks or {},
            x_label=words["x"],
            y_label=words["y"],
            x_log="x" in words.get("log", ""),
            y_log="y" in words.get("log", ""),
        )

    def section(self, key: str, *exhibits: Exhibit, **values: object) -> Section:
        """Put exhibits under their title and words."""
        text = self.all["sections"][key]
        words = text.get("words", "").format(**values)
        return Section(title=text["title"].format(**values), words=words, exhibits=exhibits)

    def study(
        self,
        *,
        findings: Iterable[Finding],
        sections: Iterable[Section],
        notes: Iterable[str] = (),
        **results: Any,
    ) -> Study:
        """Put a study together; what is not named here is its summary, tables and plan."""
        return Study(
            paper=self.name,
            title=self.all["title"],
            settings=self.all["stated"],
            choices=(*self.all["choices"], *notes),
            findings=tuple(findings),
            sections=tuple(sections),
            **results,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """A study: its words, its settings (a dataclass of options), how it is run."""

    texts: Texts
    settings: type[Any]
    run: Callable[[Any, Progress], Study]


def present(study: Study, folder: Path, *, json: bool) -> None:
    """Save the study and its page, and print what a person or a program wants to see."""
    save(study, folder)
    page = write_study(study, folder / PAGE)
    if json:
        console.show_json({**study.to_document(), "folder": str(folder), "page": str(page)})
        return
    console.show(*study_tables(study))
    console.show(f"The page: {page} (open it in a browser; it needs no network)")


def check_folder(folder: Path) -> None:
    """Refuse a folder that holds something else."""
    if folder.exists() and not folder.is_dir():
        raise InvalidInputError(f"{folder} is a file; choose a folder with --to")
    if folder.exists() and not (folder / MARKER).exists() and any(folder.iterdir()):
        raise InvalidInputError(
            f"{folder} exists and was not made by this command; choose another with --to"
        )


def save(study: Study, folder: Path) -> None:
    """Write the tables as CSV and the whole study as JSON."""
    text = json_format.dumps(
        plain(study.to_document()), indent=1, ensure_ascii=False, allow_nan=False
    )
    write_file(folder / MARKER, text.encode())
    for name, table in study.tables.items():
        write_file(folder / f"{name}.csv", table.to_csv(index=False).encode())


# Exhibits, from tables.


def grid(
    title: str,
    rows: pd.DataFrame | Iterable[Row],
    columns: str,
    *,
    names: int = 1,
    caption: str = "",
) -> TextTable:
    """Write rows as a table of texts: columns are headings, each with a template for a row.

    What has no value (None or NaN) is left empty.

    >>> grid("", [{"a": 1, "b": 2.0}, {"a": 2, "b": math.nan}], "x = {a} | y, s = {b:.1f}").rows
    (('1', '2.0'), ('2', ''))
    """
    each = rows.to_dict("records") if isinstance(rows, pd.DataFrame) else rows
    headings, _, templates = zip(
        *(one.partition(" = ") for one in columns.split(" | ")), strict=True
    )
    texts = tuple(tuple(_text(template, row) for template in templates) for row in each)
    return TextTable(title=title, columns=headings, rows=texts, names=names, caption=caption)


def _text(template: str, row: Row) -> str:
    parts = []
    for text, name, form, _ in Formatter().parse(template):
        parts.append(text)
        if name is not None:
            first, _, attribute = name.partition(".")
            value = row[name] if name in row else getattr(row[first], attribute)
            if value is None or (isinstance(value, float) and math.isnan(value)):
                return ""
            parts.append(format(value, form or ""))
    return "".join(parts)


def line(across: ArrayLike, up: ArrayLike) -> Points:
    """Pair the coordinates of a line.

    >>> line([1, 2], [0.5, 0.25])
    ((1.0, 0.5), (2.0, 0.25))
    """
    return tuple((float(x), float(y)) for x, y in zip(list(across), list(up), strict=True))  # type: ignore[arg-type]


def lines(
    table: pd.DataFrame, by: str, across: str, up: str, named: str = "{}"
) -> dict[str, Points]:
    """Pair the coordinates of a line for each value of a column, in the order of the table."""
    return {
        named.format(value): line(group[across], group[up])
        for value, group in table.groupby(by, sort=False)
    }


def root_of_squares(errors: pd.Series) -> float:
    """Compute the standard error of a mean of independent values from their standard errors."""
    return math.sqrt(float((errors**2).sum())) / len(errors)


_HOLDS = {
    True: ("holds     ", "green"),
    False: ("does not  ", "red"),
    None: ("open      ", "yellow"),  # within the noise
}


def study_tables(study: Study) -> Iterator[RenderableType]:
    """Every table with numbers in it, then the paper's claims."""
    for section in study.sections:
        for exhibit in section.exhibits:
            if isinstance(exhibit, TextTable) and exhibit.names < len(exhibit.columns):
                yield grid_table(exhibit)
    yield _claims(study.findings)


def grid_table(grid: TextTable) -> FittingTable:
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
