"""``tidings reproduce combined``: no paper's, but all of theirs at once."""

from __future__ import annotations

from typing import Annotated

import typer

from studies.combined import experiment
from studies.combined.exhibits import study
from studies.commands.presenting import USUAL_FOLDER, Folder, present
from studies.saving import check_folder
from tidings.cli import console, options
from tidings.model.system import SCHEMES

USUAL = experiment.Plan()


def combined(
    scheme: Annotated[
        str, typer.Option(metavar="|".join(SCHEMES), help="What is done about failures.")
    ] = USUAL.scheme,
    events: Annotated[
        int, typer.Option(metavar="N", min=1, help="Events a replication, one or two effects on.")
    ] = USUAL.events,
    events_of_all: Annotated[
        int, typer.Option(metavar="N", min=1, help="Events a replication, everything on.")
    ] = USUAL.events_of_all,
    replications: Annotated[
        int, typer.Option(metavar="N", min=2, help="Independent runs of each.")
    ] = USUAL.replications,
    pairs: Annotated[
        bool, typer.Option(help="Also each effect alone and every two of them, or only all.")
    ] = USUAL.pairs,
    to: Folder = USUAL_FOLDER,
    seed: options.Seed = USUAL.seed,
    json: options.Json = False,
) -> None:
    """All effects at once: predicted against simulated, alone, in pairs, and all together.

    Example: [bold]tidings reproduce combined --events 20000 --events-of-all 50000[/]
    """
    if scheme not in SCHEMES:
        raise typer.BadParameter(f"'{scheme}' is not one of {', '.join(SCHEMES)}")
    check_folder(to)
    plan = experiment.Plan(
        seed=seed,
        scheme=scheme,
        events=events,
        events_of_all=events_of_all,
        replications=replications,
        pairs=pairs,
    )
    with console.progress("combining") as step:
        results = experiment.reproduce(plan, step)
    present(study(results), to, json=json)
