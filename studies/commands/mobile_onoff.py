"""``tidings reproduce mobile-onoff``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from studies.commands.presenting import USUAL_FOLDER, Folder, present
from studies.mobile_onoff import experiment
from studies.mobile_onoff.antennas import SLOT_S, quietest_and_busiest
from studies.mobile_onoff.connectivity import examine
from studies.mobile_onoff.exhibits import study
from studies.mobile_onoff.simulating import Effort
from studies.saving import check_folder
from tidings.cli import console, options

if TYPE_CHECKING:
    from tidings.characterisation.durations import Durations
    from tidings.model.behaviour import DailyRates

USUAL = Effort()
USUAL_OFF_KBPS = 20.0


def mobile_onoff(
    sessions: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="Real connectivity, a table or folder: sessions of traces, connectivity tuples, "
            "or throughput of trips. Laws are fitted to its times connected and away.",
        ),
    ] = None,
    activity: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="Real activity of antennas in slots of ten minutes, in place of synthetic ones.",
        ),
    ] = None,
    runs: Annotated[
        int, typer.Option(metavar="N", min=0, help="Simulations of every number; 0: theory alone.")
    ] = USUAL.runs,
    cycles: Annotated[
        float, typer.Option(metavar="N", min=1.0, help="How long each is, in periods ON and OFF.")
    ] = USUAL.cycles,
    off_kbps: Annotated[
        float,
        typer.Option(metavar="N", min=0.0, help="Throughput up to which a trip is disconnected."),
    ] = USUAL_OFF_KBPS,
    to: Folder = USUAL_FOLDER,
    seed: options.Seed = 1,
    master: options.Master = None,
    json: options.Json = False,
) -> None:
    """Peers that come and go: response time against rate, real times, end to end (Table 3).

    Example: [bold]tidings reproduce mobile-onoff --to mobile[/]
    """
    check_folder(to)
    with console.progress("reproducing") as step:
        periods, rates = None, None
        aside: tuple[str, ...] = ()
        if sessions is not None or activity is not None:
            periods, rates, aside = _from_traces(sessions, activity, off_kbps, master, step)
        paths = examine(periods, str(sessions)) if periods is not None else []
        antennas = quietest_and_busiest(rates) if rates is not None else None
        effort = Effort(runs=runs, cycles=cycles, seed=seed)
        results = experiment.reproduce(step, effort=effort, paths=paths, antennas=antennas)
    found = study(results)
    present(replace(found, choices=(*found.choices, *aside)), to, json=json)


def _from_traces(
    sessions: Path | None,
    activity: Path | None,
    off_kbps: float,
    master: str | None,
    step: Callable[[str], None],
) -> tuple[dict[str, dict[bool, Durations]] | None, dict[str, DailyRates] | None, tuple[str, ...]]:
    """What Spark makes of the traces, and what was set aside; started only if there are any."""
    from tidings.characterisation.activity import activity_rates, daily_rates
    from tidings.characterisation.sessions import (
        durations_by_path,
        period_cells,
        session_periods,
    )
    from tidings.cli import spark
    from tidings.traces.actions import bring_here
    from tidings.traces.activity import read_activity
    from tidings.traces.connections import read_connections, sessions_place
    from tidings.traces.places import table_kind

    if sessions is not None:
        sessions_place(sessions)
    if activity is not None:
        table_kind(activity)
    step("starting Spark")
    periods, rates, aside = None, None, []
    with spark.started(master) as session:
        if sessions is not None:
            step("times connected and away")
            found = read_connections(session, sessions, off_kbps=off_kbps)
            cells = period_cells(session_periods(found.sessions, found.observed))
            periods = durations_by_path(bring_here(cells, str(sessions)))
            if found.set_aside is not None:
                counted = bring_here(found.set_aside, str(sessions)).sort_values("reason")
                aside = [
                    f"{sessions}: {row.rows:,} rows were set aside: {row.reason}."
                    for row in counted.itertuples()
                ]
        if activity is not None:
            step("rates of antennas")
            per_slot = activity_rates(read_activity(session, activity), SLOT_S)
            rates = daily_rates(bring_here(per_slot, str(activity)), SLOT_S)
    return periods, rates, tuple(aside)
