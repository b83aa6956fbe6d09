"""``tidings demo``: the main job from end to end."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tidings.cli import console, options, spark

DISAGREE = 1


def demo(
    to: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Folder for traces, results and the report.")
    ] = Path("tidings-demo"),
    system: Annotated[
        Path | None,
        typer.Option(metavar="SYSTEM", help="Your own system file instead of the sample."),
    ] = None,
    minutes: Annotated[
        float,
        typer.Option(
            metavar="N",
            min=0.5,
            help='Minutes of simulated traffic to record as the "real" system.',
        ),
    ] = 30.0,
    seed: options.Seed = 1,
    master: options.Master = None,
    memory: options.Memory = None,
    json: options.Json = False,
) -> int:
    """Run the whole workflow on a sample system: traces, Spark, prediction, simulation, report.

    A simulated run stands for the real system and is recorded as traces; a system is fitted to
    them on Spark, then predicted and simulated; both results are compared with the measured one.

    Example: tidings demo --to /tmp/demo
    """
    from tidings.demonstration.run import check_place, demonstrate
    from tidings.demonstration.sample_system import market_and_weather
    from tidings.model import reading
    from tidings.reporting import terminal

    shown_system = reading.load(system) if system is not None else market_and_weather()
    check_place(to)  # before Spark takes its time to start
    with console.progress("demo") as step:
        step("starting Spark")
        with spark.started(master, memory=memory, small=True) as session:
            result = demonstrate(
                shown_system, session, folder=to, minutes=minutes, seed=seed, progress=step
            )
    if json:
        console.show_json(result.to_document())
    else:
        outcomes = [result.measured, result.simulated, result.predicted]
        console.show(terminal.broker_table(result.predicted))
        console.show(terminal.side_by_side(outcomes, limit=12))
        for check in result.checks:
            console.show_checked(check.passed, ("holds", "does not"), check.text)
        console.show(f"\nReport: {result.page} (open it in a browser; it needs no network)")
    console.warn(result.warnings)
    return 0 if all(check.passed for check in result.checks) else DISAGREE
