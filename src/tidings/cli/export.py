"""``tidings export``: a system as a file that other tools read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tidings.cli import console, options
from tidings.model.writing import check_file


def export(
    system: options.SystemFile,
    to: Annotated[
        Path,
        typer.Option(
            "--to", metavar="FILE.jsimg", help="Write a queueing network that JMT and LINE read."
        ),
    ],
    json: options.Json = False,
) -> None:
    """Write a system as a queueing network, to check waits with another tool.

    Example: tidings export city.yaml --to city.jsimg
    """
    from tidings.model import reading

    check_file(to)
    loaded_system = reading.load(system)
    from tidings.reporting import queueing_networks

    queueing_networks.export(loaded_system, to)
    if json:
        console.show_json({"file": str(to)})
    else:
        console.note(f"wrote {to}")
