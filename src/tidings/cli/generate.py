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
            help="The folder of trace tables to make; with a cluster, one that its workers reach "
            "under the same path.",
        ),
    ],
    events: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="Events published, about; 50,000 unless said otherwise."
        ),
    ] = None,
    duration: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Time covered instead, from a midnight on: 90s, 3d."),
    ] = None,
    probes: Annotated[
        int, typer.Option(metavar="N", min=0, help="Also so many probes of every link, each way.")
    ] = 0,
    samples: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Also a sample of how busy brokers are every such time."),
    ] = None,
    ahead: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=TIME",
            help="The clock of this broker or peer is ahead by so much (-5ms: behind). May be "
            "given again.",
        ),
    ] = None,
    dirt: Annotated[
        float,
        typer.Option(
            metavar="SHARE",
            min=0.0,
            max=0.3,
            help="Spoil rows: this share stands there twice, as many have no id, as many "
            "impossible times.",
        ),
    ] = 0.0,
    seed: options.Seed = 1,
    master: options.Master = None,
    memory: options.Memory = None,
    json: options.Json = False,
) -> None:
    """Make traces of any size on Spark, with planted rates, laws, losses, failures and dirt.

    The simulator runs in Spark's tasks and records what happens, a task for every million events;
    where anything fails, comes or goes, all in one.

    Example: tidings generate city.yaml --into traces/ --events 1000000 --probes 5000
    """
    from tidings.model import reading
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
        raise typer.BadParameter("--events and --duration both say how much; give one of them")
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
        f"What they tell: tidings characterise {into}",
    )


def _clocks(ahead: Sequence[str]) -> dict[str, float]:
    """By how many seconds each named clock is ahead."""
    ahead_s = {}
    for text in ahead:
        name, equals, time = text.rpartition("=")
        seconds = units.parse(time.removeprefix("-"), units.SECONDS) if equals and name else None
        if seconds is None:
            raise typer.BadParameter(f"--ahead '{text}': wants NAME=TIME, such as hub=5ms")
        ahead_s[name] = -seconds if time.startswith("-") else seconds
    return ahead_s
