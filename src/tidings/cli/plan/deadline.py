"""``tidings plan deadline``: the shortest lifetime that each subscriber can be promised."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from tidings.cli import console, options
from tidings.cli.plan.asking import DOUBT, SECONDS, Simulated, conclude, playing

if TYPE_CHECKING:
    from tidings.planning.deadlines import Deadlines


def deadline(
    system: options.SystemFile,
    at: Annotated[
        list[float] | None,
        typer.Option(
            metavar="SHARE",
            help="On-time share to promise; 0.95, 0.99 and 0.999 by default. Can be repeated.",
        ),
    ] = None,
    simulate: Simulated = True,
    seconds: options.Seconds = SECONDS,
    seed: options.Seed = 1,
    json: options.Json = False,
    limit: options.Limit = 10,
) -> None:
    """Find the shortest lifetime with which each subscriber gets a given share on time.

    Exit code 1 if a subscriber loses too many events for any lifetime, or if it is undecided.

    Example: tidings plan deadline city.yaml --at 0.99
    """
    from tidings.model import reading

    loaded_system = reading.load(system)
    # Slow to import: a mistake in the file is reported before.
    from tidings.planning.deadlines import LEVELS, shortest_lifetimes
    from tidings.reporting.plans import deadline_table

    with console.progress("finding deadlines") as step:
        play = playing(simulate, seed, seconds, step)
        answer = shortest_lifetimes(loaded_system, tuple(at or LEVELS), play=play, progress=step)
    document = answer.to_document()
    if json:
        console.show_json(document)
    else:
        console.show(deadline_table(document, limit), *_answer(answer))
    conclude(answer.verdict)


def _answer(answer: Deadlines) -> Iterator[str]:
    from tidings.planning.evidence import MISSES, OPEN

    for level, verdict in zip(answer.levels, answer.verdicts, strict=True):
        if verdict == MISSES:
            yield (
                f"{100 * level:g} % on time cannot be promised to every subscriber with any "
                "lifetime: some lose too many events."
            )
        if verdict == OPEN:
            yield (
                f"Undecided whether every subscriber can get {100 * level:g} % on time: {DOUBT}. "
                "The times shown for it are the longest tried."
            )
