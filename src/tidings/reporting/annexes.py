"""Budgets, what-ifs and plans as sections of a page, from the documents that commands print.

A section shows the same tables as the terminal does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tidings.errors import InvalidInputError
from tidings.model import json_text, yaml_text
from tidings.model.plain_files import read_text
from tidings.model.study import Grid, Section
from tidings.reporting import budgets, plans, what_ifs
from tidings.reporting.terminal import FittingTable

ROWS = 10
Document = Mapping[str, Any]


def load_annex(path: Path) -> Section:
    """A section from a file with what ``explain``, ``whatif`` or ``plan`` printed with --json."""
    try:
        document = json_text.parse(read_text(path, follow=True))
    except (OSError, ValueError) as error:
        raise InvalidInputError(f"{path}: not read as JSON: {yaml_text.refusal(error)}") from None
    for key, (title, tables) in _KINDS.items():
        if isinstance(document, dict) and key in document:
            try:
                return Section(title=title, exhibits=tuple(map(grid, tables(document))))
            except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
                raise InvalidInputError(
                    f"{path}: looks like '{title.lower()}', but misses or mistakes {error}"
                ) from None
    raise InvalidInputError(
        f"{path}: none of what explain, whatif or plan print with --json; wants a document with "
        f"one of {', '.join(_KINDS)}"
    )


def grid(table: FittingTable) -> Grid:
    """A table of the terminal as one of a page, with all its columns."""
    left = [column.left for column in table.columns]
    return Grid(
        title=table.title,
        columns=tuple(column.title for column in table.columns),
        rows=tuple(zip(*(column.cells for column in table.columns), strict=True)),
        names=left.index(False) if False in left else len(left),
        caption=table.caption,
    )


def _budget(document: Document) -> list[FittingTable]:
    shown = {**document, "subscribers": document["subscribers"][:ROWS]}
    tables = [budgets.effect_table(shown), budgets.worst_table(shown), budgets.delay_table(shown)]
    return tables + ([budgets.remedy_table(shown, ROWS)] if shown["remedies"] else [])


def _what_if(document: Document) -> list[FittingTable]:
    predicted = document["predicted"]
    return [what_ifs.difference_table(predicted, ROWS), what_ifs.causes_table(predicted)]


_KINDS: dict[str, tuple[str, Callable[[Document], list[FittingTable]]]] = {
    "remedies": ("Why, and what helps most", _budget),
    "predicted": ("What if", _what_if),
    "scenarios": ("What if", lambda d: [what_ifs.scenario_table(d["scenarios"], ROWS)]),
    "schemes": ("Which recovery scheme", plans.scheme_tables),
    "options": ("How much capacity", lambda d: [plans.capacity_table(d)]),
    "moves": ("Who should be at home where", lambda d: [plans.homes_table(d, ROWS)]),
    "places": ("Who may join, and where", lambda d: [plans.admission_table(d, ROWS)]),
    "levels": ("What can be promised", lambda d: [plans.deadline_table(d, ROWS)]),
}
