"""``tidings report``: one page that shows who gets late events, and why."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tidings.cli import console, options
from tidings.errors import InvalidInputError
from tidings.model.writing import check_file


def report(
    system: options.SystemFile,
    outcomes: Annotated[
        list[Path],
        typer.Argument(
            metavar="OUTCOME...",
            help="Results of predict, simulate or characterise (.json files or folders), at "
            "most one of each.",
        ),
    ],
    to: Annotated[Path, typer.Option(metavar="FILE", help="HTML file to write.")] = Path(
        "report.html"
    ),
    annex: Annotated[
        list[Path] | None,
        typer.Option(
            "--with",
            metavar="FILE",
            help="Also include the saved --json output of explain, whatif, catchup or plan. "
            "Can be repeated.",
        ),
    ] = None,
    remedies: Annotated[
        bool,
        typer.Option(
            "--remedies/--no-remedies",
            help="Also predict which single changes help most; takes some seconds.",
        ),
    ] = True,
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="Title of the page.")] = None,
    json: options.Json = False,
) -> None:
    """Write one self-contained HTML page about a system and its outcomes.

    Example: tidings report city.yaml predicted.json measured.json --to city.html
    """
    from tidings.model import reading

    check_file(to)
    loaded_system = reading.load(system)
    # Slow to import: a mistake in the file is reported before.
    from tidings.model.outcome_files import load_outcome
    from tidings.planning.budget import explain as explain_system
    from tidings.reporting.annexes import load_annex
    from tidings.reporting.page import Report, write_page
    from tidings.validation.origins import doubts

    loaded = {}
    for path in outcomes:
        outcome = load_outcome(path)
        if outcome.source in loaded:
            raise InvalidInputError(
                f"{path}: this is a second {outcome.source} outcome; give one of each kind"
            )
        loaded[outcome.source] = outcome
    sections = tuple(load_annex(path) for path in annex or ())
    name = title or loaded_system.description or Path(system).stem
    warnings = doubts(list(loaded.values()), reading.fingerprint(loaded_system))
    with console.progress("writing the page") as step:
        page = Report(
            title=name,
            system=loaded_system,
            outcomes=loaded,
            notes=warnings,
            sections=sections,
            budget=explain_system(loaded_system, progress=step) if remedies else None,
        )
        write_page(page, to)
    if json:
        console.show_json({"page": str(to), "bytes": to.stat().st_size, "warnings": list(warnings)})
    else:
        console.show(f"Report: {to} (open it in a browser; it needs no network)")
    console.warn(warnings)
