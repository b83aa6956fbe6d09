"""``tidings reproduce performance-methodology``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from studies.commands.presenting import USUAL_FOLDER, Folder, present
from studies.performance_methodology import experiment
from studies.performance_methodology.exhibits import study
from studies.saving import check_folder, claim_folder
from tidings.cli import console, options
from tidings.model.study import Study
from tidings.model.writing import check_new_folder

USUAL = experiment.Plan()
_NOT_REAL, _REAL = ("events", "seeds"), ("factor", "load", "duration", "repetitions")
TESTBED = "testbed"  # the folder of traces and fitted systems, in that of the study


def performance_methodology(
    context: typer.Context,
    precision: Annotated[
        float, typer.Option(metavar="SHARE", help="Of residence times in the net (95 %).")
    ] = USUAL.precision,
    events: Annotated[
        int, typer.Option(metavar="N", min=1, help="Published in each simulation.")
    ] = USUAL.events,
    seeds: Annotated[
        int, typer.Option(metavar="N", min=2, help="Simulations of each case.")
    ] = USUAL.replications,
    real: Annotated[
        bool,
        typer.Option(
            "--real",
            help="On real brokers of this machine, beside all predictions from a calibration run; "
            "goes with --precision and the next four options.",
        ),
    ] = False,
    factor: Annotated[
        float, typer.Option(metavar="N", help="Real: all times, so many times the paper's.")
    ] = 3.0,
    load: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE", help="Real: of the root in scenario 1; else as in the paper."
        ),
    ] = None,
    duration: Annotated[
        str, typer.Option(metavar="TIME", help="Real: how long every run publishes and records.")
    ] = "60s",
    repetitions: Annotated[
        int, typer.Option(metavar="N", min=1, help="Real: runs of each scenario.")
    ] = 3,
    to: Folder = USUAL_FOLDER,
    seed: options.Seed = 1,
    json: options.Json = False,
) -> None:
    """Fifteen brokers under two loads: operational analysis, Petri net, simulator, side by side.

    Example: [bold]tidings reproduce performance-methodology --precision 0.02[/]

    On real brokers: [bold]tidings reproduce performance-methodology --real --to for-real[/]
    """
    check_folder(to)
    _refuse_without_meaning(context, real=real)
    if real:
        chosen = _RealChoice(
            factor=factor, load=load, precision=precision, duration_s=options.seconds(duration),
            repetitions=repetitions, seed=seed,
        )  # fmt: skip
        present(_for_real(chosen, to), to, json=json)
        return
    plan = experiment.Plan(precision=precision, events=events, replications=seeds, seed=seed)
    with console.progress("reproducing") as step:
        results = experiment.reproduce(plan, progress=step)
    present(study(results), to, json=json)


def _refuse_without_meaning(context: typer.Context, *, real: bool) -> None:
    for name in _NOT_REAL if real else _REAL:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            does = "does not go" if real else "goes only"
            raise typer.BadParameter(f"--{name} {does} with --real")


@dataclass(frozen=True, slots=True, kw_only=True)
class _RealChoice:
    factor: float
    load: float | None
    precision: float
    duration_s: float
    repetitions: int
    seed: int


def _for_real(chosen: _RealChoice, to: Path) -> Study:
    """The study on real brokers; the client library comes with an extra, so it is loaded late."""
    from studies.performance_methodology.real import RealPlan, reproduce_for_real
    from studies.performance_methodology.real_exhibits import real_study
    from tidings.cli import spark
    from tidings.testbed.calibrating import Bench
    from tidings.testbed.runs import TestbedOptions

    named = {"factor": chosen.factor, "precision": chosen.precision}
    plan = RealPlan(**named) if chosen.load is None else RealPlan(load=chosen.load, **named)
    length = TestbedOptions(duration_s=chosen.duration_s, seed=chosen.seed)
    check_new_folder(to / TESTBED)
    claim_folder(to)
    with console.progress("testbed") as step:
        step("starting Spark")
        with spark.started(None, small=True) as session:
            bench = Bench(
                spark=session, options=length, repetitions=chosen.repetitions, progress=step
            )
            results = reproduce_for_real(plan, bench, to / TESTBED)
    return real_study(results)
