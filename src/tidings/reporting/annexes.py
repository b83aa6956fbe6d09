"""What commands find out as sections of a page, from the documents that they print.

A section shows the same tables as the terminal does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tidings.errors import InvalidInputError
from tidings.model import json_text, yaml_text
from tidings.model.plain_files import read_text
from tidings.model.study import Curves, Section, TextTable
from tidings.reporting import budgets, catch_ups, plans, what_ifs
from tidings.reporting.terminal import FittingTable

ROWS = 10
CATCH_UP = "catch_up"
Document = Mapping[str, Any]


def load_annex(path: Path) -> Section:
    """Load a section from a file that ``explain``, ``whatif``, ``catchup`` or ``plan`` printed."""
    try:
        document = json_text.parse(read_text(path, follow=True))
    except (OSError, ValueError) as error:
        raise InvalidInputError(
            f"{path}: cannot be read as JSON: {yaml_text.refusal(error)}"
        ) from None
    for key, (title, tables) in _KINDS.items():
        if isinstance(document, dict) and set(key.split()) <= document.keys():
            try:
                words = " ".join(catch_ups.sentences(document)) if key == CATCH_UP else ""
                shown = (grid(t) if isinstance(t, FittingTable) else t for t in tables(document))
                return Section(title=title, words=words, exhibits=tuple(shown))
            except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
                raise InvalidInputError(
                    f"{path}: looks like the output of a command ('{title.lower()}'), but "
                    f"this field is missing or wrong: {error}"
                ) from None
    raise InvalidInputError(
        f"{path}: not the --json output of explain, whatif, catchup or plan; wants a document with "
        f"one of the fields {', '.join(key for key in _KINDS if ' ' not in key)}"
    )


def grid(table: FittingTable) -> TextTable:
    """Turn a table of the terminal into one of a page, with all its columns."""
    left = [column.left for column in table.columns]
    return TextTable(
        title=table.title,
        columns=tuple(column.title for column in table.columns),
        rows=tuple(zip(*(column.cells for column in table.columns), strict=True)),
        names=left.index(False) if False in left else len(left),
        caption=table.caption,
    )


def _budget(document: Document) -> list[FittingTable]:
    shown = {**document, "subscribers": document["subscribers"][:ROWS]}
    tables = [budgets.cause_table(shown, ROWS), budgets.worst_table(shown)]
    return ([budgets.remedy_table(shown, ROWS)] if shown["remedies"] else []) + tables


def _what_if(document: Document) -> list[FittingTable]:
    predicted = document["predicted"]
    return [what_ifs.difference_table(predicted, ROWS), what_ifs.causes_table(predicted)]


# By the fields that tell them, the first that a document has all of.
_KINDS: dict[str, tuple[str, Callable[[Document], Sequence[FittingTable | Curves]]]] = {
    CATCH_UP: ("Catching up", catch_ups.exhibits),
    "predicted verdict": ("Targets", lambda d: [plans.targets_table(d)]),
    "remedies": ("What makes events late or lost, and what helps most", _budget),
    "predicted": ("What if", _what_if),
    "scenarios": ("What if", lambda d: [what_ifs.scenario_table(d["scenarios"], ROWS)]),
    "schemes": ("Recovery schemes", plans.scheme_tables),
    "options": ("Capacity", lambda d: [plans.capacity_table(d)]),
    "mix": ("Capacity", lambda d: [plans.mix_table(d)]),
    "moves": ("Home brokers", lambda d: [plans.homes_table(d, ROWS)]),
    "places": ("Admission of new subscribers", lambda d: [plans.admission_table(d, ROWS)]),
    "levels": ("Deadlines that can be promised", lambda d: [plans.deadline_table(d, ROWS)]),
}
