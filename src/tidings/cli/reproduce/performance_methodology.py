"""``tidings reproduce performance-methodology``."""

from __future__ import annotations

from typing import Annotated

import typer

from tidings.cli import console, options
from tidings.cli.reproduce.presenting import USUAL_FOLDER, Folder, present
from tidings.reproduction.performance_methodology import experiment
from tidings.reproduction.performance_methodology.exhibits import study
from tidings.reproduction.saving import check_folder

USUAL = experiment.Plan()


def performance_methodology(
    precision: Annotated[
        float, typer.Option(metavar="SHARE", help="Of residence times in the net (95 %).")
    ] = USUAL.precision,
    events: Annotated[
        int, typer.Option(metavar="N", min=1, help="Published in each simulation.")
    ] = USUAL.events,
    seeds: Annotated[
        int, typer.Option(metavar="N", min=2, help="Simulations of each case.")
    ] = USUAL.replications,
    to: Folder = USUAL_FOLDER,
    seed: options.Seed = 1,
    json: options.Json = False,
) -> None:
    """Fifteen brokers under two loads: operational analysis, Petri net, simulator, side by side.

    Example: [bold]tidings reproduce performance-methodology --precision 0.02[/]
    """
    check_folder(to)
    plan = experiment.Plan(precision=precision, events=events, replications=seeds, seed=seed)
    with console.progress("reproducing") as step:
        results = experiment.reproduce(plan, progress=step)
    present(study(results), to, json=json)
