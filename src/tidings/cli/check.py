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
    system: Annotated[
        Path | None,
        typer.Argument(metavar="SYSTEM", help="A YAML or JSON file, or a folder of tables."),
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
    topology: Annotated[
        bool,
        typer.Option(
            "--topology",
            help="SYSTEM is a .graphml, .gml or node-link .json file; print its brokers and "
            "links as the start of a system file.",
        ),
    ] = False,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the JSON Schema of system files instead.")
    ] = False,
) -> None:
    """Check a system file, and report all its problems at once, each with its line.

    Example: tidings check city.yaml
    """
    from rich.table import Table
    from rich.text import Text

    from tidings.model import reading
    from tidings.model.schema import system_schema
    from tidings.model.yaml_text import dump

    if schema:
        if system is not None:
            raise typer.BadParameter(
                f"--schema prints the schema of all system files; leave {system} out"
            )
        console.show_json(system_schema())
        return
    if system is None:
        raise typer.BadParameter("no SYSTEM given; wants a system file or folder")
    if topology:
        from tidings.model.graph_files import read_topology

        graph = read_topology(system)
        console.warn(graph.notes)
        document = graph.document
        console.show_json(document) if json else typer.echo(dump(document), nl=False)
        return
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
