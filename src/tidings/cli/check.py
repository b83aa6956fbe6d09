"""``tidings check``: is this a valid system, and what is in it?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tidings.cli import console, options


def check(
    systems: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="SYSTEM...", help="YAML or JSON files, or folders of tables; often one."
        ),
    ] = None,
    json: options.Json = False,
    canonical: Annotated[
        bool,
        typer.Option(
            "--canonical",
            help="Print the system in canonical form: defaults filled in, units and order "
            "normalised.",
        ),
    ] = False,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the JSON Schema of system files instead.")
    ] = False,
    install: Annotated[
        bool,
        typer.Option(
            "--install",
            help="With --schema: write it beside the YAML files SYSTEM (by default those of "
            "this folder) and name it in their first line, where editors look for it.",
        ),
    ] = False,
) -> None:
    """Check a system file, and report all its problems at once, each with its line.

    Example: tidings check city.yaml
    """
    given = systems or []
    if schema or install:
        _schema(given, schema=schema, install=install)
    elif not given:
        raise typer.BadParameter("no SYSTEM given; wants a system file or folder")
    elif len(given) == 1:
        _check_one(given[0], json=json, canonical=canonical)
    elif json or canonical:
        raise typer.BadParameter("--json and --canonical take one SYSTEM only")
    else:
        _check_all(given)


def _schema(systems: list[Path], *, schema: bool, install: bool) -> None:
    from tidings.model.schema import system_schema

    if not schema:
        raise typer.BadParameter("--install belongs to --schema")
    if install:
        from tidings.cli.editors import install_schema

        install_schema(systems)
        return
    if systems:
        raise typer.BadParameter(
            f"--schema prints the schema of all system files; leave {systems[0]} out"
        )
    console.show_json(system_schema())


def _check_all(systems: list[Path]) -> None:
    """Check files one by one, all of them, and fail if one of them is no valid system."""
    from tidings.errors import InvalidInputError
    from tidings.model.system_summary import check_file

    wrong = 0
    for each in systems:
        try:
            check_file(each)
            console.show(f"{each}: a valid system")
        except InvalidInputError as error:
            console.complain(error)
            wrong += 1
    if wrong:
        raise typer.Exit(InvalidInputError.exit_code)


def _check_one(system: Path, *, json: bool, canonical: bool) -> None:
    from rich.table import Table
    from rich.text import Text

    from tidings.model import reading
    from tidings.model.system_summary import check_file, facts_of
    from tidings.model.yaml_text import dump

    checked = check_file(system)
    facts = facts_of(checked)
    if canonical:
        document = reading.system_document(checked)
        console.show_json(document) if json else typer.echo(dump(document), nl=False)
        return
    if json:
        console.show_json({"valid": True, **facts})
        return
    table = Table(show_header=False)
    for name, value in facts.items():
        shown = ", ".join(value) if isinstance(value, list) else str(value)
        table.add_row(name.replace("_", " "), Text(shown or "none"))
    console.show(f"{system}: a valid system", table)
