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
from tidings.reporting import wording

if TYPE_CHECKING:
    from tidings.planning.consumers import ConsumersPlan
    from tidings.planning.group_work import Bound


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

    Where a partition bounds them, also how many partitions, and what else would help.

    Example: tidings plan consumers workers.yaml --target 0.99
    """
    loaded_system, wanted = asked(system, slo, target, of)
    from tidings.planning.consumers import plan_group
    from tidings.reporting.plans import capacity_table, helps_table, settings_table

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
        if answer.helps:
            console.show(helps_table(document))
    conclude(answer.verdict)


def _answer(answer: ConsumersPlan) -> str:
    from tidings.planning.changes import sentences
    from tidings.planning.evidence import MISSES, OPEN

    why = "" if answer.bound is None else f"\n{_bound(answer.bound)}"
    if answer.choice is None:
        head = f"No number of members of '{answer.broker}' that was tried meets the target."
        if answer.bound is not None:
            head = f"No numbers of members and partitions of '{answer.broker}' meet the target."
        if answer.verdict == OPEN:
            head = f"It cannot be decided how many members '{answer.broker}' needs: {DOUBT}."
        best = answer.best.evidence.simulated or answer.best.standing
        if answer.bound is not None and answer.bound.is_alone:
            why += " Nor do more partitions, if it is one key that makes this one hot."
        if answer.verdict == MISSES and not answer.helps:
            why += (
                "\nMembers that take hardly any time would not, either: 'tidings explain' says why."
            )
        return f"{head} {standing_text(best, f'Best number tried ({answer.best.size:g})')}{why}"
    number = f"{answer.choice.size:g} member{'s' if answer.choice.size > 1 else ''}"
    if answer.bound is not None:
        number += ", each with a partition of its own"
    said = f"'{answer.broker}' needs {number}. Changes: {sentences(answer.changes)}."
    return f"{said}{why}\n{backed(answer.choice.evidence)}".rstrip()


def _bound(bound: Bound) -> str:
    """Say why more members do not help as it is."""
    which = f"partition {bound.partition}" if bound.is_alone else "each of them"
    return (
        f"More members do not help with {bound.partitions} partitions: {which} has "
        f"{wording.percent(bound.share)} of the events, {bound.load:.2g} s of work a second for "
        "the one member that has it."
    )
