"""``tidings audit``: was every notification of a recorded history due, did every due one come?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidings.cli import console, options, spark
from tidings.model.writing import check_new_folder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def audit(
    traces: Annotated[
        str,
        typer.Argument(
            metavar="TRACES", help="A folder of trace tables, its URL, or catalog:SCHEMA."
        ),
    ],
    subscription_delay: Annotated[
        str,
        typer.Option(
            metavar="TIME",
            help="Time within which a subscription must have reached every broker (T_sub).",
        ),
    ],
    diffusion_delay: Annotated[
        str,
        typer.Option(
            metavar="TIME",
            help="Time within which a publication must have reached every broker (T_diff).",
        ),
    ],
    in_time: Annotated[
        bool,
        typer.Option(
            "--in-time",
            help="Also count a notification as missing if it arrived later than --diffusion-delay "
            "after publication.",
        ),
    ] = False,
    to: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Write all violations, and counts for every subscriber, to this folder (Parquet).",
        ),
    ] = None,
    master: options.Master = None,
    memory: options.Memory = None,
    json: options.Json = False,
    limit: options.Limit = 10,
) -> None:
    """Check recorded traces on Spark for notifications that were wrong or are missing.

    Exit code 1 if there is any violation.

    Example: tidings audit traces/ --subscription-delay 12s --diffusion-delay 8s
    """
    from tidings.histories.checking import NEEDED, checked_history
    from tidings.histories.judging import Bounds
    from tidings.histories.summary import summary
    from tidings.reporting.histories import history_tables
    from tidings.traces.parsing_once import parsed_once
    from tidings.traces.places import require_tables, table_names
    from tidings.traces.reading import read_traces
    from tidings.traces.window import NANOSECONDS

    bounds_s = [options.seconds(t, or_zero=True) for t in (subscription_delay, diffusion_delay)]
    if to is not None:
        check_new_folder(to)
    names = table_names(traces)
    if names is not None:
        require_tables(traces, NEEDED, names)
    with console.progress("checking the history") as step:
        step("starting Spark")
        with (
            spark.started(master, memory=memory) as session,
            parsed_once(read_traces(session, traces)) as history,
        ):
            require_tables(traces, NEEDED, history.tables)
            bounds = Bounds(
                subscription_ns=round(bounds_s[0] * NANOSECONDS),
                diffusion_ns=round(bounds_s[1] * NANOSECONDS),
                in_time=in_time,
                recorded_until_ns=history.window.until_ns,
            )
            with checked_history(history.tables, bounds, step) as checked:
                step("counting")
                since = {"source": history.source, "from_ns": history.window.from_ns}
                document = {**since, **summary(checked, limit)}
                if to is not None:
                    step("writing")
                    _write(checked.violations, to / "violations")
                    _write(checked.counts, to / "counts")
    if json:
        console.show_json(document)
    else:
        console.show(*history_tables(document))
    console.warn(history.notes)
    if any(document["violations"].values()):
        raise typer.Exit(1)


def _write(frame: DataFrame, place: Path) -> None:
    from tidings.traces.actions import run_action

    run_action(lambda: frame.write.parquet(place.resolve().as_uri()), "the history")
