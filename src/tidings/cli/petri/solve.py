"""``tidings petri solve``: throughput, population and residence times of a net."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tidings.cli import console, options
from tidings.petri.options import NetOptions

USUAL = NetOptions()


def solve(
    net: Annotated[Path, typer.Argument(metavar="NET", help="The net: a YAML or JSON file.")],
    precision: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Continue until every mean residence time is known to within this share of "
            "itself (95 %).",
        ),
    ] = None,
    seconds: options.Budget = None,
    replications: Annotated[
        int, typer.Option(metavar="N", min=1, help="Minimum number of independent runs.")
    ] = USUAL.replications,
    max_replications: Annotated[
        int, typer.Option(metavar="N", min=1, help="Maximum number of independent runs.")
    ] = USUAL.max_replications,
    duration: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="Simulated time of each run that is measured, after the warm-up."
        ),
    ] = None,
    warmup: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Simulated time discarded at the start of each run; determined by pilot runs by "
            "default.",
        ),
    ] = None,
    max_tokens: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=1,
            help="Stop with an error when more tokens than this are in the net at once.",
        ),
    ] = USUAL.max_tokens,
    exact: Annotated[
        bool,
        typer.Option(
            "--exact",
            help="Solve exactly instead of simulating: queue by queue where an open net has a "
            "product form (Poisson sources, one exponential service time per queue, "
            "priorities only in the last queue of a path), else as the Markov chain of a "
            "small net with exponential times. Refused where neither applies.",
        ),
    ] = False,
    seed: options.Seed = 1,
    json: options.Json = False,
    limit: options.Limit = 10,
) -> None:
    """Solve a queueing Petri net by simulation, or exactly where it is small.

    Example: tidings petri solve net.yaml --precision 0.01
    """
    from tidings.petri.exact import solve_exactly
    from tidings.petri.reading import load_net
    from tidings.petri.simulating import simulate_net
    from tidings.reporting.analyses import net_tables

    if exact and not (precision is None and duration is None and warmup is None):
        raise typer.BadParameter("--exact does not simulate; leave --precision and the times out")
    chosen = NetOptions(
        seed=seed,
        replications=replications,
        precision=precision,
        seconds=seconds,
        max_replications=max_replications,
        duration_s=None if duration is None else options.seconds(duration),
        warmup_s=None if warmup is None else options.seconds(warmup, or_zero=True),
        max_tokens=max_tokens,
    )
    petri_net = load_net(net)
    with console.progress("solving") as step:
        outcome = (
            solve_exactly(petri_net) if exact else simulate_net(petri_net, chosen, progress=step)
        )
    console.warn(tuple(outcome.provenance["notes"]))
    if json:
        console.show_json(outcome.to_document())
    else:
        console.show(*net_tables(outcome.to_document(), limit))
