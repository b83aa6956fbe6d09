"""``tidings plan homes``: which broker should be whose home."""

from __future__ import annotations

from typing import Annotated

import typer

from tidings.cli import console, options
from tidings.cli.plan.asking import Of, Share, Simulated, Slo, asked, evidence, told
from tidings.planning.homes import assign_homes, search_for
from tidings.planning.selections import ALL
from tidings.reporting.plans import homes_table


def homes(
    system: options.SystemFile,
    who: Annotated[
        str, typer.Option(metavar="WHO", help="Who may move: all, a name, at:BROKER, group:NAME.")
    ] = ALL,
    broker: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Where to; any broker if not given.")
    ] = None,
    most: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Subscribers that a broker may be home to."),
    ] = None,
    target: Share = None,
    of: Of = 1.0,
    slo: Slo = None,
    simulate: Simulated = True,
    seed: options.Seed = 1,
    json: options.Json = False,
    limit: options.Limit = 10,
) -> None:
    """Home brokers with which most subscribers get their target, and then the best shares.

    Example: [bold]tidings plan homes city.yaml --who group:desk --most 50 --target 0.95[/]
    """
    found, wanted = asked(system, slo, target, of)
    with console.progress("assigning homes") as step:
        answer = assign_homes(
            search_for(
                found, wanted, who=who, brokers=tuple(broker or ()), most=most, progress=step
            )
        )
    best = answer.best.standing
    proof = evidence(answer.plan, wanted, seed) if simulate else None
    document = answer.to_document()
    if json:
        console.show_json({**document, "simulated": proof.to_document() if proof else None})
    else:
        console.show(homes_table(document, limit))
        console.show(f"As it is: {told(answer.present.standing)}", f"Best found: {told(best)}")
        if proof is not None:
            console.show(told(proof))
    if not best.meets:
        raise typer.Exit(1)
