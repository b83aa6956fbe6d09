"""``tidings plan targets``: does everybody get what they should, as the system is?"""

from __future__ import annotations

from typing import Annotated

import typer

from tidings.cli import console, options
from tidings.cli.plan.asking import (
    DOUBT,
    SECONDS,
    Of,
    Share,
    Slo,
    asked,
    conclude,
    playing,
    standing_text,
)


def targets(
    system: options.SystemFile,
    target: Share = None,
    of: Of = 1.0,
    slo: Slo = None,
    simulate: Annotated[
        bool | None,
        typer.Option(
            "--simulate/--no-simulate",
            help="Always or never simulate; by default only where the prediction alone does "
            "not decide.",
        ),
    ] = None,
    seconds: options.Seconds = SECONDS,
    seed: options.Seed = 1,
    json: options.Json = False,
) -> None:
    """Check whether subscribers get their targets, as a gate before a deployment.

    A target that lies within the error of the prediction is decided by simulation, if possible.

    Example: tidings plan targets city.yaml --slo objectives.yaml
    """
    loaded_system, wanted = asked(system, slo, target, of)
    from tidings.planning.evidence import MEETS, MISSES, OPEN, weigh

    with console.progress("predicting") as step:
        play = playing(simulate is not False, seed, seconds, step)
        evidence = weigh(loaded_system, wanted, play, always=bool(simulate))
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
        passed = {MEETS: True, MISSES: False, OPEN: None}
        for each in (evidence.predicted, evidence.simulated):
            if each is not None:
                console.show_checked(
                    passed[each.tells], ("met", "not met", "undecided"), standing_text(each)
                )
        if evidence.verdict == OPEN:
            console.show(f"It cannot be decided whether the targets are met: {DOUBT}.")
    conclude(evidence.verdict)
