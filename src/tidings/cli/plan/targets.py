"""``tidings plan targets``: does everybody get what they should, as the system is?"""

from __future__ import annotations

import typer

from tidings.cli import console, options
from tidings.cli.plan.asking import Of, Share, Simulated, Slo, asked, evidence, told
from tidings.planning.evidence import foreseen


def targets(
    system: options.SystemFile,
    target: Share = None,
    of: Of = 1.0,
    slo: Slo = None,
    simulate: Simulated = False,
    seed: options.Seed = 1,
    json: options.Json = False,
) -> None:
    """Check whether subscribers get their targets, as a gate before a deployment.

    Example: [bold]tidings plan targets city.yaml --slo objectives.yaml[/]
    """
    found, wanted = asked(system, slo, target, of)
    with console.progress("predicting"):
        standings = [foreseen(found, wanted)]
    if simulate:
        standings.append(evidence(found, wanted, seed))
    if json:
        console.show_json({each.source: each.to_document() for each in standings})
    else:
        for each in standings:
            console.show_checked(each.meets, ("met", "not met"), told(each))
    if not all(each.meets for each in standings):
        raise typer.Exit(1)
