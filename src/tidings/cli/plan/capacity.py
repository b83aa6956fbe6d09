"""``tidings plan capacity``: how fast brokers must be, or how many, for a target."""

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
from tidings.planning.choices import ALL

if TYPE_CHECKING:
    from tidings.planning.capacity import Capacity, Option


def capacity(
    system: options.SystemFile,
    broker: Annotated[
        str, typer.Option(metavar="NAME", help="Broker to make faster, or all.")
    ] = ALL,
    copies: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Instead of speed: find how many brokers must share the subscribers of this one.",
        ),
    ] = None,
    target: Share = None,
    of: Of = 1.0,
    slo: Slo = None,
    simulate: Simulated = True,
    seconds: options.Seconds = SECONDS,
    seed: options.Seed = 1,
    json: options.Json = False,
) -> None:
    """Find the lowest speed, or the smallest number, of brokers that meets the target.

    Example: tidings plan capacity city.yaml --broker hub --target 0.95
    """
    loaded_system, wanted = asked(system, slo, target, of)
    from tidings.planning.capacity import least_copies, least_speed
    from tidings.reporting.plans import capacity_table

    with console.progress("sizing") as step:
        play = playing(simulate, seed, seconds, step)
        if copies is not None:
            answer = least_copies(loaded_system, wanted, copies, play=play, progress=step)
        else:
            answer = least_speed(loaded_system, wanted, broker, play=play, progress=step)
    document = answer.to_document()
    if json:
        console.show_json(document)
    else:
        console.show(capacity_table(document), _answer(answer))
    conclude(answer.verdict)


def _answer(answer: Capacity) -> str:
    whose = "all brokers" if answer.broker == ALL else f"'{answer.broker}'"
    if answer.choice is None:
        best = answer.best.evidence.simulated or answer.best.standing
        size = f"Best size tried ({_size(answer, answer.best)})"
        return f"{_none(answer, whose)} {standing_text(best, size)}"
    if answer.what == "brokers":
        said = f"The subscribers of {whose} need {answer.choice.size:g} brokers."
    else:
        said = (
            f"The least speed of {whose} that meets the target: {answer.choice.size:.3g} "
            "times the present one."
        )
    return f"{said}\n{backed(answer.choice.evidence)}".rstrip()


def _none(answer: Capacity, whose: str) -> str:
    from tidings.planning.evidence import OPEN

    if answer.verdict == OPEN:
        return f"It cannot be decided whether any tried size of {whose} meets the target: {DOUBT}."
    return f"No size of {whose} that was tried meets the target."


def _size(answer: Capacity, option: Option) -> str:
    return (
        f"{option.size:.3g} times as fast" if answer.what == "speed" else f"{option.size:g} brokers"
    )
