"""``tidings reproduce content-timeliness``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from studies.commands.presenting import USUAL_FOLDER, Folder, present
from studies.content_timeliness import experiment, where_it_holds
from studies.content_timeliness.exhibits import study
from studies.latencies import BUILT_IN, LinkDelays, read_latencies, wide_area
from studies.saving import check_folder
from tidings.cli import console, options

LOADS = (*experiment.LOADS, "both")
USUAL = experiment.Plan()


def content_timeliness(
    context: typer.Context,
    systems: Annotated[
        int, typer.Option(metavar="N", min=1, help="Random systems.")
    ] = USUAL.systems,
    seeds: Annotated[
        int, typer.Option(metavar="N", min=1, help="Simulations of each, with other phases.")
    ] = USUAL.replications,
    duration: Annotated[
        str, typer.Option(metavar="TIME", help="Simulated time of each simulation.")
    ] = f"{USUAL.duration_s:g}s",
    load: Annotated[
        str,
        typer.Option(metavar="|".join(LOADS), help="How busy the busiest broker is: 30 % or 75 %."),
    ] = "both",
    latencies: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Round-trip times to draw links from: Parquet with slice, src, dst, rtt_ms. "
            "By default links come from a law of wide-area shape.",
        ),
    ] = None,
    other_traffic: Annotated[
        bool,
        typer.Option(
            "--where-it-holds",
            help="Other traffic instead: unequal, bursty, jittering, busier. Two systems, and "
            "longer simulations, unless --systems, --seeds, --duration are given.",
        ),
    ] = False,
    to: Folder = USUAL_FOLDER,
    seed: options.Seed = 1,
    json: options.Json = False,
) -> None:
    """Six traffic settings and imprecise contents: every queue model against the simulator.

    Example: [bold]tidings reproduce content-timeliness --systems 2 --load high[/]
    """
    if load not in LOADS:
        raise typer.BadParameter(f"'{load}' is not one of {', '.join(LOADS)}")
    check_folder(to)
    if other_traffic:
        effort = _effort(context)
        with console.progress("simulating other traffic") as step:
            points = where_it_holds.where_it_holds(effort, progress=step)
        present(where_it_holds.study(points, effort), to, json=json)
        return
    delays, notes = _delays(latencies)
    plan = experiment.Plan(
        systems=systems,
        replications=seeds,
        duration_s=options.seconds(duration),
        loads=tuple(experiment.LOADS) if load == "both" else (load,),
        seed=seed,
        delays=delays,
    )
    with console.progress("reproducing") as step:
        results = experiment.reproduce(plan, notes=notes, progress=step)
    present(study(results), to, json=json)


def _effort(context: typer.Context) -> where_it_holds.Effort:
    """What was asked for of other traffic; what would mean nothing there is refused."""

    def given(name: str) -> Any:
        source = context.get_parameter_source(name)
        return context.params[name] if source and source.name == "COMMANDLINE" else None

    for name in ("load", "latencies"):
        if given(name) is not None:
            raise typer.BadParameter(f"--{name} does not go with --where-it-holds")
    first = given("seed") or where_it_holds.SEEDS[0]
    systems = given("systems") or len(where_it_holds.SEEDS)
    duration = given("duration")
    return where_it_holds.Effort(
        seeds=tuple(range(first, first + systems)),
        replications=given("seeds"),
        duration_s=None if duration is None else options.seconds(duration),
    )


def _delays(latencies: Path | None) -> tuple[LinkDelays, tuple[str, ...]]:
    if latencies is None:
        return wide_area, (BUILT_IN,)
    table = read_latencies(latencies)
    return table.draw, (table.describe(latencies.name),)
