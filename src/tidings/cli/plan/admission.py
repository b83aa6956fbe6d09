"""``tidings plan admission``: may this subscriber, or this thousand, be admitted, and where?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tidings.cli import console, options
from tidings.cli.plan.asking import (
    DOUBT,
    SECONDS,
    Of,
    Share,
    Simulated,
    Slo,
    asked,
    backed,
    conclude,
    playing,
    standing_text,
)
from tidings.reporting import wording

if TYPE_CHECKING:
    from tidings.planning.admission import Admission


def admission(
    system: options.SystemFile,
    like: Annotated[
        str, typer.Option(metavar="NAME", help="Existing subscriber that the new ones resemble.")
    ],
    count: Annotated[int, typer.Option(metavar="N", min=1, help="Number of new subscribers.")] = 1,
    at: Annotated[
        list[str] | None,
        typer.Option(
            metavar="BROKER",
            help="Broker they may connect to; any broker by default. Can be repeated.",
        ),
    ] = None,
    target: Share = None,
    of: Of = 1.0,
    slo: Slo = None,
    simulate: Simulated = True,
    seconds: options.Seconds = SECONDS,
    seed: options.Seed = 1,
    json: options.Json = False,
    limit: options.Limit = 10,
) -> None:
    """Check whether new subscribers can be admitted without anybody missing a target.

    Example: tidings plan admission city.yaml --like alice --count 1000 --target 0.95
    """
    loaded_system, wanted = asked(system, slo, target, of)
    from tidings.planning.admission import Admissions, newcomer_like
    from tidings.reporting.plans import admission_table

    newcomer = newcomer_like(loaded_system, like, count)
    share = newcomer.target if newcomer.target is not None else target
    if share is None:
        raise typer.BadParameter(f"'{like}' has no target in the system file; give --target")
    for name in at or ():
        if name not in loaded_system.broker_index:
            raise typer.BadParameter(f"there is no broker '{name}'")
    with console.progress("asking") as step:
        desk = Admissions(system=loaded_system, target=wanted, progress=step)
        answer = desk.ask(newcomer, target=share, brokers=tuple(at or loaded_system.broker_index))
        answer = desk.prove(newcomer, answer, playing(simulate, seed, seconds, step))
    document = answer.to_document()
    if json:
        console.show_json(document)
    else:
        console.show(admission_table(document, limit), _answer(answer))
    conclude(answer.verdict)


def _answer(answer: Admission) -> str:
    from tidings.planning.evidence import OPEN

    who = wording.plural(answer.count, "new subscriber")
    if answer.choice is not None:
        place = answer.choice
        said = (
            f"{who} can be admitted at {place.broker}, with {wording.percent(place.share)} of "
            "their events on time."
        )
        return f"{said}\n{backed(place.evidence) if place.evidence else ''}".rstrip()
    if answer.verdict == OPEN:
        place = answer.places[0]
        seen = place.evidence.simulated if place.evidence else None
        return f"It cannot be decided whether {who} can be admitted: {DOUBT}." + (
            f" {standing_text(seen, f'Best broker {place.broker}')}" if seen else ""
        )
    best = max(answer.places, key=lambda place: place.margin)
    seen = best.evidence.simulated if best.evidence else None
    if seen is not None:
        return f"{who} cannot be admitted. {standing_text(seen, f'Best broker {best.broker}')}"
    return (
        f"{who} cannot be admitted. At the best broker, {best.broker}, {best.who} would "
        f"be {wording.percent(-best.margin)} below the target."
    )
