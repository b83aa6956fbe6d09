"""``tidings petri solve``: throughput, population and residence times of a net."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tidings.cli import console, options
from tidings.petri.options import NetOptions

USUAL = NetOptions()


def solve(
    net: Annotated[Path, typer.Argument(metavar="NET", help="A net: a YAML or JSON file.")],
    precision: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Go on until every mean residence time is known to this share of it (95 %).",
        ),
    ] = None,
    seconds: options.Budget = None,
    replications: Annotated[
        int, typer.Option(metavar="N", min=1, help="Independent runs, at least.")
    ] = USUAL.replications,
    max_replications: Annotated[
        int, typer.Option(metavar="N", min=1, help="Independent runs, at most.")
    ] = USUAL.max_replications,
    duration: Annotated[
        str | None, typer.Option(metavar="TIME", help="Measured time of each run.")
    ] = None,
    warmup: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Left out before; found by pilot runs if not given."),
    ] = None,
    max_tokens: Annotated[
        int, typer.Option(metavar="N", min=1, help="In the net at once, at most.")
    ] = USUAL.max_tokens,
    exact: Annotated[
        bool,
        typer.Option(
            "--exact",
            help="Instead, without errors: an open net queue by queue where it has a product form "
            "(Poisson sources, one exponential law in each line, priorities only where no line "
            "follows); else the Markov chain of a small net with exponential times. Refused "
            "where neither is right.",
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
        raise typer.BadParameter("--exact simulates nothing; --precision and times go without it")
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
