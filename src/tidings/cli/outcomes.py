"""How commands show and save an outcome."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tidings.cli import console

if TYPE_CHECKING:
    import pandas as pd

    from tidings.model.outcome import Outcome


def check_output(output: Path | None) -> None:
    """Refuse a place where the outcome cannot be saved, before the long work."""
    from tidings.model.outcome_files import check_outcome_place

    if output is not None:
        check_outcome_place(output)


def present(
    outcome: Outcome,
    *,
    json: bool,
    output: Path | None,
    limit: int,
    intervals: pd.DataFrame | None = None,
    answers: Mapping[str, str] | None = None,
) -> None:
    """Save an outcome where asked, and show it to a person, or with intervals to a program.

    ``answers``, by question, stand below the headline.
    """
    from rich.text import Text

    from tidings.model.outcome_files import outcome_document, save_outcome
    from tidings.reporting import terminal

    if output is not None:
        save_outcome(outcome, output)
        if not json:
            console.note(f"saved to {output}")
    if json:
        document = outcome_document(outcome)
        if intervals is not None:
            document["intervals"] = intervals.to_dict("records")
        console.show_json(document)
    else:
        said = [f"{question}: {text}" for question, text in (answers or {}).items()]
        console.show(
            terminal.outcome_table(outcome, limit=limit, below=said),
            terminal.broker_table(outcome, limit=limit),
        )
        if len(outcome.links):
            console.show(terminal.link_table(outcome, limit=limit))
        for assumption in outcome.provenance.get("approximations", ()):
            console.show(Text(f"assumed: {assumption}", style="dim"))
    console.warn(outcome.warnings)
