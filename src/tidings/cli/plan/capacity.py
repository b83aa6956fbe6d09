"""``tidings plan capacity``: how fast brokers must be, or how many, for a target."""

from __future__ import annotations

from typing import Annotated

import typer

from tidings.cli import console, options
from tidings.cli.plan.asking import Of, Share, Simulated, Slo, asked, evidence, told
from tidings.planning.capacity import Capacity, least_copies, least_speed
from tidings.planning.selections import ALL
from tidings.reporting.plans import capacity_table


def capacity(
    system: options.SystemFile,
    broker: Annotated[
        str, typer.Option(metavar="NAME", help="The broker to be made faster, or all.")
    ] = ALL,
    copies: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Instead of faster: how many brokers should share the subscribers of this one.",
        ),
    ] = None,
    target: Share = None,
    of: Of = 1.0,
    slo: Slo = None,
    simulate: Simulated = True,
    seed: options.Seed = 1,
    json: options.Json = False,
) -> None:
    """The least speed of brokers, or the least number of them, with which the target is met.

    Example: [bold]tidings plan capacity city.yaml --broker hub --target 0.95[/]
    """
    found, wanted = asked(system, slo, target, of)
    with console.progress("sizing") as step:
        if copies is not None:
            answer = least_copies(found, wanted, copies, progress=step)
        else:
            answer = least_speed(found, wanted, broker, progress=step)
    proof = evidence(answer.plan, wanted, seed) if simulate and answer.choice else None
    document = answer.to_document()
    if json:
        console.show_json({**document, "simulated": proof.to_document() if proof else None})
    else:
        console.show(capacity_table(document), _answer(answer))
        if proof is not None:
            console.show(told(proof))
    if answer.choice is None:
        raise typer.Exit(1)


def _answer(answer: Capacity) -> str:
    whose = "all brokers" if answer.broker == ALL else f"'{answer.broker}'"
    if answer.choice is None:
        best = answer.best
        size = f"{best.size:.3g} times as fast" if answer.what == "speed" else f"{best.size:g}"
        return f"No size of {whose} that was tried meets the target. At best ({size}): " + told(
            best.standing
        )
    if answer.what == "brokers":
        return f"The subscribers of {whose} need {answer.choice.size:g} brokers."
    factor = answer.choice.size
    return f"The least speed of {whose}: {factor:.3g} times the present one."
