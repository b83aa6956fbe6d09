"""``tidings check``: is this a valid system, and what is in it?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidings.cli import console, options

if TYPE_CHECKING:
    from tidings.model.system import System

TRACES = "connectivity from traces"


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
    from tidings.model import reading

    wrong = 0
    for each in systems:
        try:
            checked = reading.load(each)
            _require_files(checked, each)
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
    from tidings.model.yaml_text import dump

    checked = reading.load(system)
    facts = _facts(checked)
    if TRACES in facts["features_used"]:
        _require_files(checked, system)
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


def _require_files(system: System, name: Path) -> None:
    """Refuse a system that names missing files, each with the path that was looked at."""
    from tidings.errors import InvalidSystemError, Problem

    missing: dict[str, str] = {}
    for section in ("publishers", "subscribers"):
        for peer in getattr(system, section):
            trace = peer.connectivity.trace if peer.connectivity is not None else None
            if trace is not None and not Path(trace).exists():
                missing.setdefault(trace, f"{section}.{peer.name}.connectivity.trace")
    if not missing:
        return
    problems = [
        Problem(
            at=at,
            saw=f"'{trace}', and there is no file {Path(trace).absolute()}",
            want="a file that exists",
            fix="a relative path starts from the folder where the command runs",
        )
        for trace, at in missing.items()
    ]
    count = "1 missing file" if len(problems) == 1 else f"{len(problems)} missing files"
    raise InvalidSystemError(f"{name}: {count}", problems)


def _facts(system: System) -> dict[str, Any]:
    from tidings.model import reading
    from tidings.model.features import used_features

    return {
        "description": system.description or "",
        "brokers": len(system.brokers),
        "links": len(system.links),
        "publishers": len(system.publishers),
        "published_per_s": round(sum(p.rate_per_s for p in system.publishers), 6),
        "subscribers": sum(subscriber.count for subscriber in system.subscribers),
        "distinct_filters": len({subscriber.wants for subscriber in system.subscribers}),
        "features_used": list(used_features(system)),
        "fingerprint": reading.fingerprint(system),
    }
