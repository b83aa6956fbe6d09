"""``tidings catchup``: how long until a backlog is gone, and how many events are late."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidings.cli import console, options, spark

if TYPE_CHECKING:
    from tidings.model.system import System


def catchup(
    system: options.SystemFile,
    backlog: Annotated[
        str | None,
        typer.Option(
            metavar="QUEUE=N",
            help="Start with N events waiting in this queue: that of a consumer group, a broker, "
            "or a subscriber with a processing time. Their ages are those of events that "
            "gathered at the usual rate.",
        ),
    ] = None,
    stopped: Annotated[
        str | None,
        typer.Option(
            metavar="QUEUE=TIME",
            help="Instead of --backlog: start after this queue has been stopped for TIME, "
            "such as orders=60s.",
        ),
    ] = None,
    traces: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Instead of --backlog: start from what was in a queue at the end of these traces, "
            "by its counters (levels), or by what was handled later.",
        ),
    ] = None,
    queue: Annotated[
        str | None,
        typer.Option(metavar="QUEUE", help="With --traces: the queue, where several hold events."),
    ] = None,
    replications: Annotated[
        int,
        typer.Option(
            metavar="N", min=2, help="Number of independent runs; their scatter gives the ±."
        ),
    ] = 20,
    seed: options.Seed = 1,
    master: options.Master = None,
    json: options.Json = False,
    limit: options.Limit = 10,
) -> None:
    """Simulate how long a queue takes to catch up, and how many events are late until then.

    The backlog is gone the first time that no more events wait than usual.

    Example: tidings catchup shop.yaml --stopped orders=60s
    """
    from tidings.model import reading

    if [backlog, stopped, traces].count(None) != 2:
        raise typer.BadParameter(
            "give either --backlog QUEUE=N, --stopped QUEUE=TIME or --traces FOLDER"
        )
    if queue is not None and traces is None:
        raise typer.BadParameter("--queue says which queue of --traces is meant")
    asked = _state(backlog, stopped) if traces is None else None
    loaded_system = reading.load(system)
    # Slow to import: a mistake in the file is reported before.
    from tidings.reporting.catch_ups import late_table, sentences, text_curve
    from tidings.simulation.catching_up import catch_up

    with console.progress("catching up") as step:
        if asked is None:
            step("starting Spark")
            assert traces is not None
            asked = _from_traces(loaded_system, traces, queue, master)
        name, state = asked
        answer = catch_up(
            loaded_system, name, **state, replications=replications, seed=seed, progress=step
        )
    document = answer.to_document()
    if json:
        console.show_json(document)
        return
    console.show(*sentences(document))
    if document["curve"]:
        console.show(text_curve(document))
    if document["subscribers"]:
        console.show(late_table(document, limit))


def _state(backlog: str | None, stopped: str | None) -> tuple[str, dict[str, Any]]:
    """Read the queue and its initial state from --backlog or --stopped."""
    queue, equals, value = (backlog or stopped or "").rpartition("=")
    if not equals or not queue:
        raise typer.BadParameter(
            f"'{backlog or stopped}' names no queue; wants QUEUE=VALUE, such as orders=60s"
        )
    if stopped is not None:
        return queue, {"stopped_s": options.seconds(value)}
    if not value.replace("_", "").isdecimal() or int(value) < 1:
        raise typer.BadParameter(f"'{value}' is not a number of events, such as 120000")
    return queue, {"backlog": int(value)}


def _from_traces(
    system: System, folder: Path, queue: str | None, master: str | None
) -> tuple[str, dict[str, Any]]:
    """Find the queue of a system that holds events as its traces end, and how many."""
    from tidings.characterisation.count.backlogs import backlogs, choose_backlog
    from tidings.traces.actions import bring_here
    from tidings.traces.reading import read_traces

    with spark.started(master, small=True) as session:
        given = read_traces(session, folder)
        rows = bring_here(backlogs(given.tables, given.window), "backlogs")
    name, events = choose_backlog(rows, system, queue)
    return name, {"present": events}
