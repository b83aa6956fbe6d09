"""What all experiments have in common on the command line: where they go, how they are shown."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from studies.saving import save
from tidings.cli import console
from tidings.model.study import Study
from tidings.reporting.study_page import write_study
from tidings.reporting.study_tables import study_tables

PAGE = "reproduction.html"

Folder = Annotated[
    Path, typer.Option(metavar="FOLDER", help="Where points, errors and the page go.")
]
USUAL_FOLDER = Path("tidings-reproduction")


def present(study: Study, folder: Path, *, json: bool) -> None:
    """Save the study, write its page, and print what a person or a program wants to see."""
    save(study, folder)
    page = write_study(study, folder / PAGE)
    if json:
        console.show_json({**study.to_document(), "folder": str(folder), "page": str(page)})
        return
    console.show(*study_tables(study))
    console.show(f"The page: {page} (open it in a browser; it needs no network)")
