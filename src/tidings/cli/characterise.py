"""``tidings characterise``: what traces tell about the system they come from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tidings.characterisation.job import characterise as characterise_traces
from tidings.cli import console, options
from tidings.errors import InvalidTracesError
from tidings.model import reading
from tidings.model.outcome_files import outcome_document, save_outcome
from tidings.reporting import terminal
from tidings.traces.reading import read_traces
from tidings.traces.session import spark_session


def characterise(
    traces: Annotated[
        str, typer.Argument(metavar="TRACES", help="A folder of trace tables, or its URL.")
    ],
    to: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the fitted system here, as YAML."),
    ] = None,
    measured: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="Write the measured outcome here: .json file or folder."),
    ] = None,
    base: Annotated[
        Path | None,
        typer.Option(metavar="SYSTEM", help="A system that knows what the traces do not tell."),
    ] = None,
    master: options.Master = None,
    memory: options.Memory = None,
    json: options.Json = False,
    limit: options.Limit = 10,
) -> None:
    """Learn a system from its traces, on Spark; every number comes with its standard error.

    Example: [bold]tidings characterise traces/ --to fitted.yaml --measured measured.json[/]
    """
    if "://" not in traces and not Path(traces).exists():  # before Spark takes its time to start
        raise InvalidTracesError(f"{traces}: no such folder; wants one with trace tables")
    known = reading.load(base) if base is not None else None
    with console.progress("characterising") as step:
        step("starting Spark")
        with spark_session(master, memory=memory) as spark:
            found = characterise_traces(read_traces(spark, traces), base=known, progress=step)
    if to is not None:
        reading.save(found.system, to)
    if measured is not None:
        save_outcome(found.measured, measured)
    if json:
        console.show_json(
            {
                "system": reading.system_document(found.system),
                "parameters": found.parameters.to_dict("records"),
                "measured": outcome_document(found.measured),
                "quality": found.quality.to_dict("records"),
                "notes": list(found.notes),
            }
        )
    else:
        console.show(
            terminal.parameters_table(found.parameters, limit=limit),
            terminal.outcome_table(found.measured, limit=limit),
            terminal.quality_table(found.quality),
        )
    console.warn(found.notes)
