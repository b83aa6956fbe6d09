"""``tidings plan homes``: which broker should be whose home."""

from __future__ import annotations

from collections.abc import Iterator
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
    from tidings.planning.homes import HomesAdvice


def homes(
    system: options.SystemFile,
    who: Annotated[
        str,
        typer.Option(
            metavar="WHO", help="Subscribers that may move: all, a name, at:BROKER, group:NAME."
        ),
    ] = ALL,
    broker: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Home broker to choose from; any broker by default. Can be repeated.",
        ),
    ] = None,
    most: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Maximum number of subscribers per home broker."),
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
    """Find home brokers with which the most subscribers meet their targets.

    Example: tidings plan homes city.yaml --who group:desk --most 50 --target 0.95
    """
    loaded_system, wanted = asked(system, slo, target, of)
    from tidings.planning.homes import assign_homes, search_for
    from tidings.reporting.plans import homes_table

    with console.progress("assigning homes") as step:
        search = search_for(
            loaded_system, wanted, who=who, brokers=tuple(broker or ()), most=most, progress=step
        )
        answer = assign_homes(search, playing(simulate, seed, seconds, step))
    document = answer.to_document()
    if json:
        console.show_json(document)
    else:
        console.show(homes_table(document, limit), *_answer(answer))
    conclude(answer.verdict)


def _answer(answer: HomesAdvice) -> Iterator[str]:
    from tidings.planning.evidence import OPEN

    evidence = answer.best.evidence
    if answer.limit != answer.most:
        yield (
            f"At most {answer.most:,} subscribers per broker is not possible: some broker "
            f"needs {answer.limit:,} at least. Shown are the best home brokers under that "
            "limit."
        )
    yield standing_text(answer.present.standing, "At present")
    yield standing_text(evidence.predicted, "Best assignment")
    if backed(evidence):
        yield backed(evidence)
    if evidence.verdict == OPEN:
        yield f"It cannot be decided whether the targets are met: {DOUBT}."
