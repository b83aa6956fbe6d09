"""``tidings explain``: why events are not on time, and which single change helps most."""

from __future__ import annotations

import math
from typing import Annotated

import typer

from tidings.cli import console, options
from tidings.reporting import wording


def explain(
    system: options.SystemFile,
    remedies: Annotated[
        bool,
        typer.Option(
            "--remedies/--no-remedies",
            help="Also predict the gain from single changes (faster brokers, better links, "
            "other recovery schemes).",
        ),
    ] = True,
    target: Annotated[
        float | None,
        typer.Option(
            "--target",
            min=0.0,
            max=1.0,
            help="On-time share of all events to reach: changes are then as small as reaches it.",
        ),
    ] = None,
    json: options.Json = False,
    limit: options.Limit = 10,
) -> None:
    """Explain what makes events late or lost, cause by cause, and which change helps most.

    Example: tidings explain city.yaml
    """
    from tidings.model import reading

    loaded_system = reading.load(system)
    # Slow to import: a mistake in the file is reported before.
    from tidings.planning.budget import explain as explain_system
    from tidings.planning.changes import quoted
    from tidings.reporting.budgets import cause_table, remedy_table, worst_table
    from tidings.reporting.headline import targets

    with console.progress("explaining") as step:
        budget = explain_system(loaded_system, remedies=remedies, target=target, progress=step)
    if json:
        console.show_json(budget.to_document())
        return
    document = budget.to_document(limit)
    if budget.aim is not None:
        console.show(f"Targets: {targets(budget.aim)}")
    if budget.remedies:
        console.show(remedy_table(document, limit))
    console.show(cause_table(document, limit), worst_table(document))
    if budget.bottleneck:
        busiest = budget.bottleneck  # as it is: in JSON a wait without limit is none
        wait_s = busiest["wait_mean_s"]
        waits = "without limit" if math.isinf(wait_s) else wording.seconds(wait_s)
        console.show(
            f"The busiest broker is {busiest['broker']}: busy "
            f"{wording.percent(busiest['utilisation'])} of the time, events wait {waits} there."
        )
    untried = [
        f"{quoted(change)} could not be predicted and is not listed: {why}"
        for change, why in budget.untried.items()
    ]
    console.warn((*budget.outcome.warnings, *untried))
