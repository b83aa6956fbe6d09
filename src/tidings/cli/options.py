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
Pairs = Annotated[
    bool,
    typer.Option(
        "--pairs",
        help="Also give a row for every publisher–subscriber pair (with --json or --output).",
    ),
]
Limit = Annotated[
    int,
    typer.Option("--limit", metavar="N", min=1, help="Show at most N rows per table, worst first."),
]
Seed = Annotated[
    int,
    typer.Option(
        "--seed", metavar="N", min=0, help="Random seed; the same seed gives the same results."
    ),
]
Bridges = Annotated[
    list[str] | None,
    typer.Option(
        "--bridge",
        metavar="A,B",
        help="MQTT: a bridge between brokers A and B, each HOST:PORT. Can be repeated.",
    ),
]
Broker = Annotated[
    str,
    typer.Option(
        "--broker",
        metavar="nats|mosquitto",
        help="Which broker to run; mosquitto must be installed (Debian: apt install mosquitto).",
    ),
]
By = Annotated[
    str | None,
    typer.Option(
        "--by",
        metavar="theory|simulation",
        help="Use this engine only. By default theory answers where its known error is small "
        "enough, and the simulation elsewhere.",
    ),
]
Within = Annotated[
    str,
    typer.Option(
        "--within",
        metavar="ERROR",
        help="Largest acceptable error of every on-time share (half-width, 95 %): absolute, "
        "such as 0.005 (half a percentage point), or relative to late and lost events, "
        "as '10% of misses'.",
    ),
]
Seconds = Annotated[
    float,
    typer.Option(
        "--seconds",
        metavar="N",
        min=0.1,
        help="CPU seconds that simulation may use; on-time shares that are still less precise "
        "than asked are marked.",
    ),
]
Budget = Annotated[
    float | None,
    typer.Option(
        "--seconds",
        metavar="N",
        min=0.1,
        help="CPU seconds that all replications together may use; no limit by default.",
    ),
]
Master = Annotated[
    str | None,
    typer.Option(
        "--master",
        metavar="URL",
        help="Spark master: local[4], spark://host:7077, yarn, or sc://host for Spark "
        "Connect. By default Spark runs locally on all cores.",
    ),
]
Memory = Annotated[
    str | None,
    typer.Option("--memory", metavar="SIZE", help="Memory of Spark's driver, such as 4g."),
]
Host = Annotated[
    str,
    typer.Option(
        "--host", metavar="ADDRESS", help="Address to listen on; any but loopback has a token."
    ),
]
Port = Annotated[
    int,
    typer.Option("--port", metavar="N", min=0, max=65535, help="Port; 0 takes a free one."),
]
Token = Annotated[
    str | None,
    typer.Option(
        "--token",
        metavar="TEXT",
        envvar="TIDINGS_TOKEN",
        help="Ask for this token. By default none is needed on loopback, and elsewhere one is "
        "made up and printed.",
    ),
]


def share(meaning: str, *names: str) -> OptionInfo:
    """Make an option that is a share, 0 to 1, or a percentage."""
    option: OptionInfo = typer.Option(*names, metavar="SHARE", parser=_share, help=meaning)
    return option


def _share(text: str | float) -> float:
    """Read a share of the command line: 0.995 or 99.5%."""
    value = units.parse(str(text), {"%": 0.01})
    if value is None or not 0.0 <= value <= 1.0:
        raise typer.BadParameter(f"'{text}' is not a share from 0 to 1, such as 0.995 or 99.5%")
    return value


def seconds(text: str, *, or_zero: bool = False) -> float:
    """Read a time of the command line, in seconds."""
    time_s = units.parse(text, units.SECONDS)
    if time_s is None or time_s < 0 or (time_s == 0 and not or_zero):
        least = "of 0 or more" if or_zero else "above 0"
        from tidings.model.document import meant_number

        meant = meant_number(text, units.SECONDS, None)
        hint = f" ({meant})" if meant else ""
        raise typer.BadParameter(f"'{text}' is not a time {least}, such as 5s, 2min or 1h{hint}")
    return time_s
