"""``tidings reproduce published-fits``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from studies.commands.presenting import USUAL_FOLDER, Folder, present
from studies.published_fits import refit, study
from studies.saving import check_folder
from tidings.cli import console, options


def published_fits(
    traces: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER",
            help="Traces of the Failure Trace Archive as Parquet, and published_fits.csv.",
        ),
    ],
    to: Folder = USUAL_FOLDER,
    json: options.Json = False,
) -> None:
    """Laws that the literature fitted to public traces of failures, fitted again to these traces.

    Example: [bold]tidings reproduce published-fits fta/[/]
    """
    check_folder(to)
    with console.progress("reproducing") as step:
        step("fitting")
        found = refit(traces)
    present(study(found), to, json=json)
