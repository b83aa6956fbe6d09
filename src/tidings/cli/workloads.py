"""Where a command's workload comes from: a system, or traces measured on Spark."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from tidings.model import reading
from tidings.model.system import System
from tidings.model.system_workload import workload_of
from tidings.model.workload import Workload

SystemIfAny = Annotated[
    Path | None,
    typer.Argument(
        metavar="[SYSTEM]", help="The system: a YAML or JSON file, or a folder of tables."
    ),
]
TracesInstead = Annotated[
    str | None,
    typer.Option(
        "--traces",
        metavar="FOLDER",
        help="Instead of a system: measure routing, rates and service times in traces, on Spark.",
    ),
]
EventType = Annotated[
    str | None,
    typer.Option(metavar="ATTRIBUTE", help="Of traces: the attribute that is an event's type."),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """What a workload is to be made of: exactly one of both."""

    system: Path | None
    traces: str | None
    event_type: str | None = None

    def __post_init__(self) -> None:
        if (self.system is None) == (self.traces is None):
            raise typer.BadParameter("give a SYSTEM, or --traces FOLDER")
        if self.system is not None and self.event_type is not None:
            raise typer.BadParameter("--event-type goes with --traces; a system has its own")


def find_workload(
    origin: Origin, step: Callable[[str], None], *, by: str = "type"
) -> tuple[Workload, System | None]:
    """The workload, and the system where it comes from one."""
    if origin.system is not None:
        system = reading.load(origin.system)
        return workload_of(system, by=by), system
    # Only now: Spark takes its time even to be imported.
    from tidings.characterisation.workloads import measure_workload
    from tidings.cli import spark
    from tidings.traces.reading import read_traces, require_tables, table_names

    assert origin.traces is not None
    names = table_names(origin.traces)
    if names is not None:
        require_tables(origin.traces, ("publications", "hops"), names)
    step("starting Spark")
    with spark.started(None) as session:
        step("measuring routing and service times")
        traces = read_traces(session, origin.traces)
        return measure_workload(traces, event_type=origin.event_type).workload, None
