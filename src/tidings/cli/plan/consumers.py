"""``tidings plan consumers``: how many members a consumer group needs, and with which settings."""

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

if TYPE_CHECKING:
    from tidings.planning.consumers import ConsumersPlan


def consumers(
    system: options.SystemFile,
    group: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The consumer group, if the system has several."),
    ] = None,
    target: Share = None,
    of: Of = 1.0,
    slo: Slo = None,
    simulate: Simulated = True,
    seconds: options.Seconds = SECONDS,
    seed: options.Seed = 1,
    json: options.Json = False,
) -> None:
    """Find how many members a consumer group needs, with settings that repeat no work.

    Example: tidings plan consumers workers.yaml --target 0.99
    """
    loaded_system, wanted = asked(system, slo, target, of)
    from tidings.planning.consumers import plan_group
    from tidings.reporting.plans import capacity_table, settings_table

    with console.progress("sizing") as step:
        play = playing(simulate, seed, seconds, step)
        answer = plan_group(loaded_system, wanted, group, play=play, progress=step)
    document = answer.to_document()
    if json:
        console.show_json(document)
    else:
        if answer.settings:
            console.show(settings_table(document))
        console.show(capacity_table(document), _answer(answer))
    conclude(answer.verdict)


def _answer(answer: ConsumersPlan) -> str:
    from tidings.planning.changes import sentences
    from tidings.planning.evidence import OPEN

    if answer.choice is None:
        head = f"No number of members of '{answer.broker}' that was tried meets the target."
        if answer.verdict == OPEN:
            head = f"It cannot be decided how many members '{answer.broker}' needs: {DOUBT}."
        best = answer.best.evidence.simulated or answer.best.standing
        return f"{head} {standing_text(best, f'Best number tried ({answer.best.size:g})')}"
    number = f"{answer.choice.size:g} member{'s' if answer.choice.size > 1 else ''}"
    said = f"'{answer.broker}' needs {number}. Changes: {sentences(answer.changes)}."
    return f"{said}\n{backed(answer.choice.evidence)}".rstrip()
