"""``tidings simulate``: what happens when the system is played through."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidings.cli import console, options
from tidings.cli.outcomes import check_output, present
from tidings.model.writing import check_new_folder
from tidings.simulation.options import SimulationOptions

if TYPE_CHECKING:
    from tidings.model.outcome import Outcome
    from tidings.model.system import System


USUAL = SimulationOptions()
OF_MANY_RUNS = ("replications", "precision", "seconds", "max_replications")


def simulate(
    context: typer.Context,
    system: options.SystemFile,
    events: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Events to publish in each replication, on average; 50,000 by default, more "
            "where failures are too rare to be seen in that time.",
        ),
    ] = None,
    duration: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Instead of --events: simulated time of each replication, such as 90s or 2h.",
        ),
    ] = None,
    replications: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=1,
            help="Number of independent runs; their scatter gives the standard errors.",
        ),
    ] = USUAL.replications,
    precision: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            min=1e-5,
            max=0.5,
            help="Add replications until every on-time share is known to ± this (95 %), up to "
            "--max-replications; 0.005 is half a percentage point.",
        ),
    ] = None,
    seconds: options.Budget = None,
    max_replications: Annotated[
        int, typer.Option(metavar="N", min=2, help="Upper limit of replications with --precision.")
    ] = USUAL.max_replications,
    max_copies: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=1,
            help="Stop as unstable when more copies of events than this are in the system at once.",
        ),
    ] = USUAL.max_copies,
    seed: options.Seed = 1,
    master: Annotated[
        str | None,
        typer.Option(
            "--master",
            metavar="URL",
            help="Run the replications on this Spark master, with the same results: "
            "spark://host:7077, yarn, or sc://host for Spark Connect. By default on the "
            "cores of this machine.",
        ),
    ] = None,
    traces: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Record a single run as trace tables in this new folder, and show its outcome.",
        ),
    ] = None,
    json: options.Json = False,
    output: options.Output = None,
    limit: options.Limit = 10,
) -> None:
    """Simulate a system: on-time shares with standard errors, or traces to characterise.

    Example: tidings simulate city.yaml --precision 0.005
    """
    from tidings.model import reading
    from tidings.model.parquet_files import load_arrow

    duration_s = None if duration is None else options.seconds(duration)
    if precision is None and _given(context, ("max_replications",)):
        raise typer.BadParameter("--max-replications only limits --precision; give --precision too")
    if traces is not None:
        _refuse_many_runs(context)
        if master is not None:
            raise typer.BadParameter(
                "--traces records a single run on this machine; leave --master out"
            )
        check_new_folder(traces)
        load_arrow()
    loaded_system = reading.load(system)
    check_output(output)
    # Slow to import: a mistake in the file is reported before.
    from tidings.simulation.run import simulate as simulate_outcome

    with console.progress("simulating") as step:
        if traces is None:
            simulated: Callable[..., Outcome] = simulate_outcome
            if master is not None:
                simulated = _on_spark(master, step)
            outcome = simulated(
                loaded_system,
                seed=seed,
                replications=replications,
                precision=precision,
                seconds=seconds,
                max_replications=max_replications,
                max_copies=max_copies,
                events=events,
                duration_s=duration_s,
                progress=step,
            )
        else:
            from tidings.simulation.recording import record, write_traces

            recording = record(
                loaded_system,
                seed=seed,
                events=events,
                duration_s=duration_s,
                max_copies=max_copies,
                progress=step,
            )
            if output is not None:  # first: where there are traces, the command cannot be repeated
                from tidings.model.outcome_files import save_outcome

                save_outcome(recording.outcome, output)
            write_traces(recording, traces)
            outcome = recording.outcome
    present(outcome, json=json, output=output, limit=limit)


def _on_spark(master: str, step: Callable[[str], None]) -> Callable[..., Outcome]:
    """Make a simulation that runs its replications on Spark, started when there is work for it."""
    from tidings.cli import spark
    from tidings.simulation.run import simulate as simulate_outcome
    from tidings.sweeps.replications import replicate_on

    def simulated(system: System, **asked: Any) -> Outcome:
        step("starting Spark")
        with spark.started(master, small=True) as session:
            return simulate_outcome(system, elsewhere=replicate_on(session), **asked)

    return simulated


def _refuse_many_runs(context: typer.Context) -> None:
    """Refuse options for many runs: with traces one run is recorded, so they would be ignored."""
    given = _given(context, OF_MANY_RUNS)
    if given:
        raise typer.BadParameter(f"--traces records a single run; leave {', '.join(given)} out")


def _given(context: typer.Context, names: Sequence[str]) -> list[str]:
    """List those of the options that stand on the command line, as they stand there."""
    sources = {name: context.get_parameter_source(name) for name in names}
    return [
        "--" + name.replace("_", "-")
        for name, source in sources.items()
        if source is not None and not source.name.startswith("DEFAULT")
    ]
