"""Where a command's workload comes from: a system, or traces measured on Spark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidings.model import units

if TYPE_CHECKING:
    from tidings.model.workload import Workload
    from tidings.operational.audiences import DeliveryGroup


SystemIfAny = Annotated[
    Path | None,
    typer.Argument(
        metavar="SYSTEM", help="The system: a YAML or JSON file, or a folder of tables."
    ),
]
TracesInstead = Annotated[
    str | None,
    typer.Option(
        "--traces",
        metavar="FOLDER",
        help="Instead of a system file: measure routing, rates and service times from these "
        "trace tables, on Spark.",
    ),
]
EventType = Annotated[
    str | None,
    typer.Option(
        metavar="ATTRIBUTE", help="With --traces: the attribute of contents that is the event type."
    ),
]
Services = Annotated[
    str | None,
    typer.Option(
        metavar="spans|utilisation",
        help="With --traces: where service times come from: 'spans' (the recorded hops; default) "
        "or 'utilisation' (the utilisation law on sampled CPU and disk use).",
    ),
]
Bandwidth = Annotated[
    list[str] | None,
    typer.Option(
        metavar="LINK=RATE",
        help="With --traces: bandwidth of a link (hub--east, or all), such as all=10Mbit/s; "
        "with message sizes, the link becomes a queue.",
    ),
]
SharedNetwork = Annotated[
    str | None,
    typer.Option(
        metavar="RATE", help="With --traces: all links share one network of this bandwidth."
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """What a workload is to be made of: a system, or traces and what they do not tell."""

    system: Path | None
    traces: str | None
    event_type: str | None = None
    services: str | None = None
    bandwidth: Sequence[str] | None = None
    shared_network: str | None = None
    master: str | None = None

    def __post_init__(self) -> None:
        if (self.system is None) == (self.traces is None):
            raise typer.BadParameter("give either a SYSTEM or --traces FOLDER")
        for name in ("event_type", "services", "bandwidth", "shared_network", "master"):
            if self.system is not None and getattr(self, name):
                option = name.replace("_", "-")
                raise typer.BadParameter(
                    f"--{option} works with --traces only; a system file has its own"
                )
        if self.bandwidth and self.shared_network:
            raise typer.BadParameter(
                "--bandwidth and --shared-network exclude each other; give one of them"
            )


@dataclass(frozen=True, kw_only=True)
class SourcedWorkload:
    """A workload, to whom it is delivered (None: not known), and what was measured on the way."""

    workload: Workload
    audiences: tuple[DeliveryGroup, ...] | None
    measured: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def find_workload(
    origin: Origin, step: Callable[[str], None], *, by: str = "type"
) -> SourcedWorkload:
    """Find the workload of a system, or measure that of traces; rates are per second."""
    from tidings.model import reading
    from tidings.model.routes import route
    from tidings.model.system_workload import workload_of
    from tidings.operational.audiences import audiences_of

    if origin.system is not None:
        system = reading.load(origin.system)
        routes = route(system)
        return SourcedWorkload(
            workload=workload_of(system, by=by, routes=routes),
            audiences=tuple(audiences_of(system, routes, by=by)),
        )
    return _measured(origin, step)


def _measured(origin: Origin, step: Callable[[str], None]) -> SourcedWorkload:
    # Only now: Spark takes its time even to be imported.
    from tidings.characterisation.fit.resources import SERVICES, Bandwidths
    from tidings.characterisation.fit.workloads import Measuring
    from tidings.characterisation.job import measure_workload
    from tidings.cli import spark
    from tidings.operational.audiences import audiences_behind
    from tidings.traces.places import require_tables, table_names
    from tidings.traces.reading import read_traces

    assert origin.traces is not None
    shared = origin.shared_network
    how = Measuring(
        event_type=origin.event_type,
        services=origin.services or SERVICES[0],
        bandwidths=Bandwidths(
            bytes_per_s=dict(map(_named_rate, origin.bandwidth or ())),
            shared_bytes_per_s=None if shared is None else _rate(shared),
        ),
    )
    names = table_names(origin.traces)
    if names is not None:
        require_tables(origin.traces, how.tables, names)
    step("starting Spark")
    with spark.started(origin.master) as session:
        step("measuring routing and service times")
        measurement = measure_workload(read_traces(session, origin.traces), how)
    behind = measurement.client_links_s
    return SourcedWorkload(
        workload=measurement.workload,
        audiences=None if behind is None else tuple(audiences_behind(behind)),
        measured={
            name: getattr(measurement, name).to_dict("records")
            for name in ("routing", "paths", "services")
        },
        notes=measurement.notes,
    )


def _named_rate(text: str) -> tuple[str, float]:
    name, _, rate = text.rpartition("=")
    if not name:
        raise typer.BadParameter(f"'{text}' is not LINK=RATE, such as hub--east=10Mbit/s")
    return name, _rate(rate)


def _rate(text: str) -> float:
    bytes_per_s = units.parse(text, units.BYTES_PER_S)
    if bytes_per_s is None or bytes_per_s <= 0.0:
        raise typer.BadParameter(f"'{text}' is not a bandwidth above 0, such as 10Mbit/s or 1MB/s")
    return bytes_per_s
