"""Arguments and options that several commands share, so that they read the same everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from typer.models import OptionInfo

from tidings.model import units

SystemFile = Annotated[
    Path,
    typer.Argument(
        metavar="SYSTEM", help="The system: a YAML or JSON file, or a folder of tables."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the result, or the error, as JSON.")]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="PATH",
        help="Also save the result: a .json file, or a folder of Parquet tables.",
    ),
]
Pairs = Annotated[bool, typer.Option("--pairs", help="Also give every publisher–subscriber pair.")]
Limit = Annotated[
    int, typer.Option("--limit", metavar="N", min=1, help="Show so many rows a table, worst first.")
]
Seed = Annotated[
    int, typer.Option("--seed", metavar="N", min=0, help="The same seed gives the same numbers.")
]
By = Annotated[
    str | None,
    typer.Option(
        "--by",
        metavar="theory|simulation",
        help="The one engine that is to answer; not said: theory where its measured error is "
        "small enough, else the simulation.",
    ),
]
Within = Annotated[
    str,
    typer.Option(
        "--within",
        metavar="ERROR",
        help="The error (half-width, 95 %) wanted of every on-time share: a share such as 0.005, "
        "or '10% of misses'.",
    ),
]
Seconds = Annotated[
    float,
    typer.Option(
        "--seconds",
        metavar="N",
        min=0.1,
        help="CPU seconds that simulating may take; shares that are not as precise as wanted by "
        "then say so.",
    ),
]
Budget = Annotated[
    float | None,
    typer.Option(
        "--seconds",
        metavar="N",
        min=0.1,
        help="CPU seconds that all replications together may take; no limit if left out.",
    ),
]
Master = Annotated[
    str | None,
    typer.Option(
        "--master",
        metavar="URL",
        help="Where Spark runs: local[4], spark://host:7077, yarn, or sc://host for Connect. "
        "By default inside this process, on all cores.",
    ),
]
Memory = Annotated[
    str | None,
    typer.Option("--memory", metavar="SIZE", help="Memory of Spark's driver, such as 4g."),
]


def share(meaning: str, *names: str) -> OptionInfo:
    """Make an option that is a share, 0 to 1."""
    option: OptionInfo = typer.Option(*names, metavar="SHARE", min=0.0, max=1.0, help=meaning)
    return option


def seconds(text: str, *, or_zero: bool = False) -> float:
    """Read a time of the command line, in seconds."""
    time_s = units.parse(text, units.SECONDS)
    if time_s is None or time_s < 0 or (time_s == 0 and not or_zero):
        least = "of 0 or more" if or_zero else "above 0"
        raise typer.BadParameter(f"'{text}' is not a time {least}, such as 5s, 2min or 1h")
    return time_s
