"""``tidings reproduce fault-tolerance``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from studies.commands.presenting import USUAL_FOLDER, Folder, present
from studies.fault_tolerance import experiment
from studies.fault_tolerance.exhibits import study
from studies.fault_tolerance.random_systems import MACHINES
from studies.fault_tolerance.real_uptimes import Effort, examine
from studies.fault_tolerance.uptime_traces import Uptimes, read_uptimes
from studies.saving import check_folder
from tidings.cli import console, options

USUAL = experiment.Plan()
KINDS = (*MACHINES, "both", "none")


def fault_tolerance(
    systems: Annotated[
        int, typer.Option(metavar="N", min=1, help="Random systems for each case.")
    ] = USUAL.systems,
    seeds: Annotated[
        int, typer.Option(metavar="N", min=1, help="Simulations of each.")
    ] = USUAL.replications,
    duration: Annotated[
        str, typer.Option(metavar="TIME", help="Simulated time of each simulation.")
    ] = f"{USUAL.duration_s:g}s",
    every: Annotated[
        str,
        typer.Option(
            metavar="TIME",
            help="Time between two events of a publisher. Failures make the noise, not events: "
            "600s gives nearly the same numbers in a tenth of the time.",
        ),
    ] = f"{USUAL.every_s:g}s",
    machines: Annotated[
        str,
        typer.Option(
            metavar="|".join(KINDS),
            help="How available the brokers are; none: nothing but real uptimes.",
        ),
    ] = "both",
    precise: Annotated[
        bool,
        typer.Option(
            "--precise", help="Simulate on until chance explains next to nothing of the errors."
        ),
    ] = False,
    uptimes: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="PATH",
            help="Real times up and down, a file or folder of Parquet tables: what exponential "
            "times and independent failures are worth on them. Can be given again.",
        ),
    ] = None,
    leave_out: Annotated[
        list[str] | None,
        typer.Option(metavar="MONITOR", help="Whose checks not to use. Can be given again."),
    ] = None,
    to: Folder = USUAL_FOLDER,
    seed: options.Seed = 1,
    json: options.Json = False,
) -> None:
    """Failing brokers and links: every recovery scheme in random trees and graphs.

    Example: [bold]tidings reproduce fault-tolerance --machines low-end --every 600s --precise[/]
    """
    if machines not in KINDS:
        raise typer.BadParameter(f"'{machines}' is not one of {', '.join(KINDS)}")
    if machines == "none" and not uptimes:
        raise typer.BadParameter("'none' leaves nothing to do without --uptimes")
    check_folder(to)
    traces = _traces(uptimes or [], leave_out or [])
    plan = experiment.Plan(
        systems=systems,
        replications=seeds,
        duration_s=options.seconds(duration),
        every_s=options.seconds(every),
        precise=precise,
        machines={"both": tuple(MACHINES), "none": ()}.get(machines, (machines,)),
        seed=seed,
    )
    with console.progress("reproducing") as step:
        results = experiment.reproduce(plan, progress=step)
        effort = Effort(runs=seeds, seed=seed)
        found = [examine(trace, effort, progress=step) for trace in traces]
    present(study(results, found), to, json=json)


def _traces(paths: list[Path], leave_out: list[str]) -> list[Uptimes]:
    """Everything is read before hours are spent on the rest."""
    return [trace for path in paths for trace in read_uptimes(path, leave_out)]
