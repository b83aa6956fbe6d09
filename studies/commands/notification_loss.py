"""``tidings reproduce notification-loss``."""

from __future__ import annotations

from typing import Annotated

import typer

from studies.commands.presenting import USUAL_FOLDER, Folder, present
from studies.notification_loss import experiment
from studies.notification_loss.exhibits import study
from studies.saving import check_folder
from tidings.cli import console, options

USUAL = experiment.Plan()


def notification_loss(
    topologies: Annotated[
        int, typer.Option(metavar="N", min=1, help="Random networks, each with an overlay.")
    ] = USUAL.topologies,
    couples: Annotated[
        int, typer.Option(metavar="N", min=1, help="Subscribers with a publisher, on each.")
    ] = USUAL.couples,
    publications: Annotated[
        int, typer.Option(metavar="N", min=1, help="Events of each couple, for each T_ON.")
    ] = USUAL.publications,
    to: Folder = USUAL_FOLDER,
    seed: options.Seed = 1,
    json: options.Json = False,
) -> None:
    """What is missed because subscriptions and events take time to spread, by length of stay.

    Example: [bold]tidings reproduce notification-loss --publications 20[/]
    """
    check_folder(to)
    plan = experiment.Plan(
        topologies=topologies, couples=couples, publications=publications, seed=seed
    )
    with console.progress("reproducing") as step:
        results = experiment.reproduce(plan, step)
    present(study(results), to, json=json)
