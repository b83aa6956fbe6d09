"""``tidings characterise``: what traces tell about the system they come from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tidings.characterisation.assembling import check_base
from tidings.characterisation.job import characterise as characterise_traces
from tidings.characterisation.job import check_tables
from tidings.cli import console, options, spark
from tidings.cli.outcomes import check_output
from tidings.model import reading
from tidings.model.outcome_files import outcome_document, save_outcome
from tidings.reporting import terminal
from tidings.traces.reading import read_traces, table_names


def characterise(
    traces: Annotated[
        str, typer.Argument(metavar="TRACES", help="A folder of trace tables, or its URL.")
    ],
    to: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the fitted system here: .yaml file or folder."),
    ] = None,
    measured: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="Write the measured outcome here: .json file or folder."),
    ] = None,
    base: Annotated[
        Path | None,
        typer.Option(metavar="SYSTEM", help="A system that knows what the traces do not tell."),
    ] = None,
    settle: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Leave out events of the last such time, still on their way when recording "
            "stopped: 5s, 2min.",
        ),
    ] = None,
    back_test: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            min=0.1,
            max=0.9,
            help="Also fit to this first share of the window, predict the rest, and compare.",
        ),
    ] = None,
    master: options.Master = None,
    memory: options.Memory = None,
    json: options.Json = False,
    limit: options.Limit = 10,
) -> None:
    """Learn a system from its traces, on Spark; every number comes with its standard error.

    Example: [bold]tidings characterise traces/ --to fitted.yaml --measured measured.json[/]
    """
    # Whatever can be wrong is found out before Spark takes its time to start.
    settle_s = options.seconds(settle or "0s", or_zero=True)
    if to is not None:
        reading.check_system_place(to)
    check_output(measured)
    known = reading.load(base) if base is not None else None
    if known is not None:
        check_base(known)
    names = table_names(traces)
    if names is not None:
        check_tables(traces, names, known)
    with console.progress("characterising") as step:
        step("starting Spark")
        with spark.started(master, memory=memory) as session:
            given = read_traces(session, traces)
            found = characterise_traces(given, base=known, settle_s=settle_s, progress=step)
            tested = None
            if back_test is not None:
                from tidings.validation.back_testing import back_test as test_back

                tested = test_back(
                    given, share=back_test, base=known, settle_s=settle_s, progress=step
                )
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
                "coverage": found.coverage.to_dict("records"),
                "stationarity": found.stationarity.to_dict("records"),
                "back_test": None if tested is None else tested.comparison.to_document(),
                "notes": list(found.notes),
            }
        )
    else:
        console.show(
            terminal.parameters_table(found.parameters, limit=limit),
            terminal.outcome_table(found.measured, limit=limit),
            terminal.quality_table(found.quality),
            terminal.coverage_table(found.coverage),
        )
        if tested is not None:
            console.show(terminal.comparison_table(tested.comparison, limit=limit), tested.text)
    console.warn(found.notes)
