"""``tidings generate``: traces of any size, with what a system states planted in them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from tidings.cli import console, options, spark
from tidings.model import units
from tidings.model.writing import check_new_folder

USUAL_EVENTS = 50_000


def generate(
    system: options.SystemFile,
    into: Annotated[
        Path,
        typer.Option(
            metavar="FOLDER",
            help="New folder for the trace tables; on a cluster, one that all workers see "
            "under the same path.",
        ),
    ],
    events: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Number of events to publish, approximately; 50,000 by default.",
        ),
    ] = None,
    duration: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Instead of --events: simulated time, starting at midnight, such as 90s or 3d.",
        ),
    ] = None,
    probes: Annotated[
        int,
        typer.Option(
            metavar="N", min=0, help="Also this many probes of every link, in each direction."
        ),
    ] = 0,
    samples: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="Also sample broker utilisation at this interval, such as 1s."
        ),
    ] = None,
    ahead: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=TIME",
            help="Set the clock of a broker or peer ahead by this time (-5ms: behind). Can be "
            "repeated.",
        ),
    ] = None,
    dirt: Annotated[
        float,
        typer.Option(
            metavar="SHARE",
            min=0.0,
            max=0.3,
            help="Corrupt this share of rows in each of three ways: duplicated, id removed, "
            "impossible times.",
        ),
    ] = 0.0,
    seed: options.Seed = 1,
    master: options.Master = None,
    memory: options.Memory = None,
    json: options.Json = False,
) -> None:
    """Generate synthetic traces of any size on Spark, from a system whose parameters are known.

    The simulator runs in Spark tasks, one for every million events; a system with failures, mobile
    peers or churn is simulated in a single task.

    Example: tidings generate city.yaml --into traces/ --events 1000000 --probes 5000
    """
    from tidings.model import reading
    from tidings.simulation.recording import untold
    from tidings.sweeps.dirt import Dirt
    from tidings.sweeps.generating import (
        Planting,
        check_planting,
        generate_traces,
        rows_written,
        span_of,
        write_generated,
    )

    if events is not None and duration is not None:
        raise typer.BadParameter("--events and --duration exclude each other; give one of them")
    planting = Planting(
        seed=seed,
        probes=probes,
        sample_s=None if samples is None else options.seconds(samples),
        ahead_s=_clocks(ahead or ()),
        dirt=Dirt(twice=dirt, nameless=dirt, impossible=dirt),
    )
    check_new_folder(into)
    loaded_system = reading.load(system)
    asked_s = None if duration is None else options.seconds(duration)
    span_s = span_of(loaded_system, events or USUAL_EVENTS) if asked_s is None else asked_s
    check_planting(loaded_system, span_s, planting)
    console.warn(tuple(each.sentence() for each in untold(loaded_system)))
    with console.progress("generating") as step:
        step("starting Spark")
        with spark.started(master, memory=memory) as session:
            made = generate_traces(session, loaded_system, span_s, planting)
            write_generated(made, into, step)
    rows, window = rows_written(into), made.window
    if json:
        ends = {"from_ns": window.from_ns, "until_ns": window.until_ns}
        console.show_json({"traces": str(into), **ends, "seed": seed, "rows": rows})
        return
    listed = ", ".join(f"{count:,} {name}" for name, count in rows.items())
    console.show(
        f"{into}: {units.format_seconds(span_s)} with {listed}.",
        f"Next: tidings characterise {into}",
    )


def _clocks(ahead: Sequence[str]) -> dict[str, float]:
    """Read by how many seconds each named clock is ahead."""
    ahead_s = {}
    for text in ahead:
        name, equals, time = text.rpartition("=")
        seconds = units.parse(time.removeprefix("-"), units.SECONDS) if equals and name else None
        if seconds is None:
            raise typer.BadParameter(f"--ahead '{text}': wants NAME=TIME, such as hub=5ms")
        ahead_s[name] = -seconds if time.startswith("-") else seconds
    return ahead_s
