"""``tidings plan targets``: does everybody get what they should, as the system is?"""

from __future__ import annotations

from tidings.cli import console, options
from tidings.cli.plan.asking import (
    DOUBT,
    Of,
    Share,
    Simulated,
    Slo,
    asked,
    conclude,
    playing,
    told,
)
from tidings.planning.evidence import OPEN, weigh


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
    with console.progress("predicting") as step:
        evidence = weigh(found, wanted, playing(simulate, seed, step))
    if json:
        simulated = evidence.simulated.to_document() if evidence.simulated else None
        console.show_json(
            {
                "predicted": evidence.predicted.to_document(),
                "simulated": simulated,
                "verdict": evidence.verdict,
            }
        )
    else:
        for each in (evidence.predicted, evidence.simulated):
            if each is not None:
                console.show_checked(each.meets, ("met", "not met"), told(each))
        if evidence.verdict == OPEN:
            console.show(f"Whether the targets are met cannot be told: {DOUBT}.")
    conclude(evidence.verdict)
