"""What all plans are asked with: targets, files of objectives, simulation as evidence."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tidings.cli import options
from tidings.model import reading
from tidings.model.system import System
from tidings.planning.evidence import MEETS, OPEN, Evidence, Play, Progress, Standing
from tidings.planning.objectives import read_objectives, with_objectives
from tidings.planning.targets import Target
from tidings.reporting import wording
from tidings.simulation.run import SimulationOptions, simulate

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

DOUBT = "prediction and simulation differ, or the target is within their error"
UNPLAYED = (
    "That is the prediction's word; within its error it cannot be told, and only a simulation "
    "(--simulate) decides."
)


def asked(system: Path, slo: Path | None, share: float | None, of: float) -> tuple[System, Target]:
    """The system with its targets; refuses to begin where nothing is asked of anybody."""
    found = reading.load(system)
    if slo is not None:
        found = with_objectives(found, read_objectives(slo))
    target = Target(share=share, of=of)
    target.wanted(found)
    return found, target


def playing(wanted: bool, seed: int, progress: Progress) -> Play | None:
    """The simulation that candidates are played through with; None where it is not wanted."""
    options = SimulationOptions(seed=seed)
    return (lambda plan: simulate(plan, options, progress=progress)) if wanted else None


def told(standing: Standing) -> str:
    """How a plan stands to its target, in a sentence."""
    by = f"{standing.worst} is {wording.percent(abs(standing.margin))}"
    where = "above" if standing.margin >= 0 else "below"
    chance = standing.meets and standing.margin < 0 and standing.source == "simulated"
    own = "its own, which chance explains" if chance else "its own"
    return (
        f"{standing.source.capitalize()}: {wording.percent(standing.on_time)} on time, "
        f"{wording.percent(standing.satisfied)} of the subscribers get their target"
        + (f" ({by} {where} {own})." if standing.worst else ".")
    )


def backed(evidence: Evidence) -> str:
    """What stands behind an answer besides the prediction, in a sentence; empty: none is needed."""
    if evidence.simulated is not None:
        return told(evidence.simulated)
    return UNPLAYED if evidence.foretold == OPEN else ""


def conclude(verdict: str) -> None:
    """End with the exit code that a verdict asks for: 0 only where the target is met."""
    if verdict != MEETS:
        raise typer.Exit(1)
