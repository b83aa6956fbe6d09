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
    from tidings.planning.mix import Mix


def capacity(
    system: options.SystemFile,
    broker: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Instead of a mix: the one broker to make faster, or 'all' by the same factor.",
        ),
    ] = None,
    cost: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=NUMBER",
            help="Cost of adding this broker's present speed once more (making it twice as fast); "
            "1 by default. Can be repeated.",
        ),
    ] = None,
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
    """Find the cheapest mix of faster brokers that meets the target; or the least size of one.

    Example: tidings plan capacity city.yaml --target 0.95 --cost hub=3
    """
    loaded_system, wanted = asked(system, slo, target, of)
    costs = _costs(cost or [])
    if costs and (broker or copies):
        raise typer.BadParameter("--cost is for the cheapest mix, without --broker and --copies")
    from tidings.planning.capacity import least_copies, least_speed
    from tidings.planning.mix import Mix, cheapest_mix
    from tidings.reporting.plans import capacity_table, mix_table

    answer: Capacity | Mix
    with console.progress("sizing") as step:
        play = playing(simulate, seed, seconds, step)
        if copies is not None:
            answer = least_copies(loaded_system, wanted, copies, play=play, progress=step)
        elif broker is not None:
            answer = least_speed(loaded_system, wanted, broker, play=play, progress=step)
        else:
            answer = cheapest_mix(loaded_system, wanted, costs, play=play, progress=step)
    document = answer.to_document()
    if json:
        console.show_json(document)
    elif isinstance(answer, Mix):
        console.show(mix_table(document), _answer_of_mix(answer, costs))
    else:
        console.show(capacity_table(document), _answer(answer))
    conclude(answer.verdict)


def _costs(given: list[str]) -> dict[str, float]:
    costs = {}
    for text in given:
        name, _, number = text.rpartition("=")
        try:
            costs[name] = float(number)
        except ValueError:
            raise typer.BadParameter(f"'{text}' is not NAME=NUMBER, such as hub=3") from None
    return costs


def _answer_of_mix(answer: Mix, costs: dict[str, float]) -> str:
    from tidings.planning.evidence import MEETS, OPEN

    if answer.verdict == OPEN:
        head = f"It cannot be decided whether a mix that was tried meets the target: {DOUBT}."
    elif answer.verdict != MEETS:
        head = "No mix that was tried meets the target; this one comes nearest."
    elif not answer.brokers:
        head = "The target is met as it is."
    else:
        verb, what = ("cost", "") if costs else ("add", " speeds")
        head = f"The cheapest mix that was found {verb}s {answer.cost:.3g}{what}"
        if answer.alike is not None and answer.alike_cost is not None:
            head += f"; {answer.alike:.3g} times for all would {verb} {answer.alike_cost:.3g}"
        head += "."
    return f"{head}\n{backed(answer.evidence) or standing_text(answer.evidence.predicted)}"


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
