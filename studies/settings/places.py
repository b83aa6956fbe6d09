"""Where all studies put what they found."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

USUAL_FOLDER = Path("tidings-reproduction")
Folder = Annotated[
    Path, typer.Option(metavar="FOLDER", help="Where points, errors and the page go.")
]
