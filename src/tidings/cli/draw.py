"""``tidings draw``: brokers and links as a drawing."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tidings.cli import console, options
from tidings.model.writing import check_file, write_file

_KINDS = (".svg", ".mmd")


def draw(
    system: options.SystemFile,
    to: Annotated[
        Path | None,
        typer.Option("--to", metavar="FILE", help="Write a .svg picture, or a .mmd Mermaid file."),
    ] = None,
    mermaid: Annotated[
        bool, typer.Option("--mermaid", help="Print Mermaid text; so it is without --to.")
    ] = False,
    json: options.Json = False,
) -> None:
    """Draw brokers and links, with delays and how many clients each broker has.

    Example: tidings draw city.yaml --to city.svg
    """
    from tidings.model import reading

    if to is not None and to.suffix not in _KINDS:
        raise typer.BadParameter(f"'{to}' is neither a .svg nor a .mmd file")
    if to is not None:
        check_file(to)
    loaded_system = reading.load(system)
    from tidings.reporting import drawing

    text = drawing.mermaid(loaded_system)
    if json:
        console.show_json({"mermaid": text, "file": None if to is None else str(to)})
    elif to is None or mermaid:
        typer.echo(text, nl=False)
    if to is not None:
        picture = drawing.svg(loaded_system) if to.suffix == ".svg" else text
        write_file(to, picture.encode())
        console.note(f"wrote {to}")
