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
            metavar="SHARE", help="On-time shares to promise; 0.95, 0.99 and 0.999 if not given."
        ),
    ] = None,
    simulate: Simulated = True,
    seconds: options.Seconds = SECONDS,
    seed: options.Seed = 1,
    json: options.Json = False,
    limit: options.Limit = 10,
) -> None:
    """The shortest lifetime of events with which each subscriber gets so much in time.

    Exit code 1 where somebody loses too many events for any lifetime; its best share is shown.

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
            yield f"{100 * level:g} % cannot be promised to everybody."
        if verdict == OPEN:
            yield (
                f"Whether {100 * level:g} % can be promised cannot be told: {DOUBT}. Times shown "
                "are the longest that were tried."
            )
