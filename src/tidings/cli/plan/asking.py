"""What all plans are asked with: targets, files of objectives, simulation as evidence."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tidings.cli import console, options
from tidings.model import reading
from tidings.model.system import System
from tidings.planning.evidence import Standing, played
from tidings.planning.objectives import read_objectives, with_objectives
from tidings.planning.targets import Target
from tidings.reporting import wording
from tidings.simulation.run import SimulationOptions

Share = Annotated[
    float | None,
    options.share(
        "On-time share that subscribers without a 'target' of their own should get.", "--target"
    ),
]
Of = Annotated[float, options.share("Share of subscribers that must.", "--of")]
Slo = Annotated[
    Path | None,
    typer.Option(
        "--slo", metavar="FILE", help="Targets from an OpenSLO file, by subscriber, group or topic."
    ),
]
Simulated = Annotated[
    bool,
    typer.Option("--simulate/--no-simulate", help="Play the chosen plan through as evidence."),
]


def asked(system: Path, slo: Path | None, share: float | None, of: float) -> tuple[System, Target]:
    """The system with its targets; refuses to begin where nothing is asked of anybody."""
    found = reading.load(system)
    if slo is not None:
        found = with_objectives(found, read_objectives(slo))
    target = Target(share=share, of=of)
    target.wanted(found)
    return found, target


def evidence(plan: System, target: Target, seed: int) -> Standing:
    """The chosen plan, simulated."""
    with console.progress("simulating the plan") as step:
        return played(plan, target, SimulationOptions(seed=seed), step)


def told(standing: Standing) -> str:
    """How a plan stands to its target, in a sentence."""
    by = f"{standing.worst} is {wording.percent(abs(standing.margin))}"
    where = "above" if standing.margin >= 0 else "below"
    return (
        f"{standing.source.capitalize()}: {wording.percent(standing.on_time)} on time, "
        f"{wording.percent(standing.satisfied)} of the subscribers get their target"
        + (f" ({by} {where} its own)." if standing.worst else ".")
    )
