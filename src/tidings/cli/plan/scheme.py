"""``tidings plan scheme``: which recovery scheme meets the target at the least cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tidings.cli import console, options
from tidings.cli.plan.asking import Of, Share, Slo, asked, conclude
from tidings.planning.choices import SCHEME_SECONDS
from tidings.simulation.options import SimulationOptions

if TYPE_CHECKING:
    from tidings.planning.schemes import SchemeAdvice


USUAL = SimulationOptions()


def scheme(
    system: options.SystemFile,
    target: Share = None,
    of: Of = 1.0,
    slo: Slo = None,
    duration: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Simulated time of each replication, such as 14d."),
    ] = None,
    replications: Annotated[
        int, typer.Option(metavar="N", min=1, help="Independent runs for each scheme.")
    ] = USUAL.replications,
    seconds: Annotated[
        float,
        typer.Option(metavar="N", min=0.1, help="CPU seconds that simulating each scheme may use."),
    ] = SCHEME_SECONDS,
    seed: options.Seed = 1,
    json: options.Json = False,
) -> None:
    """Compare all recovery schemes, and name the cheapest that meets the target.

    Example: tidings plan scheme city.yaml --target 0.99 --of 0.95
    """
    loaded_system, wanted = asked(system, slo, target, of)
    from tidings.planning.evidence import MEETS, MISSES
    from tidings.planning.schemes import compare_schemes
    from tidings.reporting.plans import scheme_tables

    chosen = SimulationOptions(
        seed=seed,
        replications=replications,
        duration_s=None if duration is None else options.seconds(duration),
        seconds=None if duration is not None else seconds,
    )
    with console.progress("comparing schemes") as step:
        advice = compare_schemes(loaded_system, wanted, chosen, progress=step)
    if json:
        console.show_json(advice.to_document())
    else:
        console.show(*scheme_tables(advice.to_document()), _answer(advice))
        said = (f"{each.scheme}: {text}" for each in advice.reports for text in each.warnings)
        console.warn(tuple(said))
    conclude(MEETS if advice.choice is not None else MISSES)


def _answer(advice: SchemeAdvice) -> str:
    perhaps = " and ".join(each.scheme for each in advice.perhaps)
    if not perhaps:
        return _sure(advice)
    return (
        f"{_sure(advice)} It cannot be decided whether {perhaps}, at less cost, would "
        "meet it too: their errors are too large. More --seconds may decide it."
    )


def _sure(advice: SchemeAdvice) -> str:
    if advice.choice is not None:
        best = advice.choice
        others = " and ".join(each.scheme for each in advice.cheapest if each is not best)
        return (
            f"The cheapest scheme that meets the target is {best.scheme}: "
            f"{best.cost:.3f} messages between brokers for each delivery."
            + (f" {others} cost the same within the error." if others else "")
        )
    nearest = advice.nearest
    return (
        f"No recovery scheme surely meets the target. The closest is {nearest.scheme}: "
        f"{100 * nearest.likely[0]:.1f} % of the subscribers reach it."
    )
