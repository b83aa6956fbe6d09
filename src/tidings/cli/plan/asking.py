"""What all plans are asked with: targets, files of objectives, simulation as evidence."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidings.cli import options
from tidings.planning.choices import SECONDS as SECONDS
from tidings.reporting import wording

if TYPE_CHECKING:
    from tidings.model.progress import Progress
    from tidings.model.system import System
    from tidings.planning.evidence import Evidence, Play, Target, TargetStanding


Share = Annotated[
    float | None,
    options.share(
        "On-time share to reach, for subscribers without a 'target' in the system file.", "--target"
    ),
]
Of = Annotated[float, options.share("Share of subscribers that must reach their target.", "--of")]
Slo = Annotated[
    Path | None,
    typer.Option(
        "--slo", metavar="FILE", help="Targets from an OpenSLO file, by subscriber, group or topic."
    ),
]
Simulated = Annotated[
    bool,
    typer.Option(
        "--simulate/--no-simulate",
        help="Confirm the chosen plan by simulation where the prediction alone does not decide.",
    ),
]

DOUBT = "the target lies within the errors, or prediction and simulation disagree"


def asked(system: Path, slo: Path | None, share: float | None, of: float) -> tuple[System, Target]:
    """Read the system with its targets; refuses to begin where nothing is asked of anybody."""
    from tidings.model import reading

    loaded_system = reading.load(system)
    # Slow to import: a mistake in the file is reported before.
    from tidings.planning.evidence import Target
    from tidings.planning.objectives import read_objectives, with_objectives

    if slo is not None:
        loaded_system = with_objectives(loaded_system, read_objectives(slo))
    target = Target(share=share, of=of)
    target.wanted(loaded_system)
    return loaded_system, target


def playing(wanted: bool, seed: int, seconds: float, progress: Progress) -> Play | None:
    """Make the simulation that candidates are played through with; None where it is not wanted."""
    from tidings.planning.verbs import playing as made

    return made(wanted, seed, seconds, progress)


def standing_text(standing: TargetStanding, of: str = "") -> str:
    """Say how a plan (``of`` what) stands to its target, shares in percent."""
    head = f"{of}, {standing.source}" if of else standing.source.capitalize()
    on_time = f"{head}: {wording.percent(standing.on_time)} on time"
    reached = f"{wording.percent(standing.satisfied)} of the subscribers reach their target."
    if not standing.worst:
        return f"{on_time}; {reached}"
    name, where = ("Closest", "above") if standing.margin >= 0 else ("Worst", "below")
    by = f"{100 * abs(standing.margin):.3g}"
    points = f"percentage points {where} its target"
    if standing.error >= abs(standing.margin):
        return (
            f"{on_time}, but this is too uncertain to decide: {standing.worst} is {by} ± "
            f"{100 * standing.error:.2g} {points}."
        )
    error = "" if math.isnan(standing.error) else f" (± {100 * standing.error:.2g})"
    return f"{on_time}; {reached} {name}: {standing.worst}, {by}{error} {points}."


def backed(evidence: Evidence) -> str:
    """Say what supports an answer besides the prediction, in a sentence; empty: none is needed."""
    return "" if evidence.simulated is None else standing_text(evidence.simulated)


def conclude(verdict: str) -> None:
    """End with the exit code that a verdict asks for: 0 only where the target is met."""
    from tidings.planning.evidence import MEETS

    if verdict != MEETS:
        raise typer.Exit(1)
