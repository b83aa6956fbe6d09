"""``tidings analyse``: rates, loads and latencies of a system by operational analysis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tidings.cli import console, options
from tidings.cli.workloads import (
    Bandwidth,
    EventType,
    Origin,
    Services,
    SharedNetwork,
    SystemIfAny,
    TracesInstead,
    find_workload,
)
from tidings.operational.formulas import FORMULAS
from tidings.reporting import wording

if TYPE_CHECKING:
    from tidings.operational.analysing import Analysis


def analyse(
    system: SystemIfAny = None,
    traces: TracesInstead = None,
    event_type: EventType = None,
    services: Services = None,
    bandwidth: Bandwidth = None,
    shared_network: SharedNetwork = None,
    formula: Annotated[
        str,
        typer.Option(
            metavar="|".join(FORMULAS),
            help="Response times by each queue's service discipline, or all by the formula of "
            "the paper.",
        ),
    ] = FORMULAS[0],
    rate: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=FACTOR",
            help="Multiply the rate of a publisher (or all) by this factor first. Can be repeated.",
        ),
    ] = None,
    speed: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=FACTOR",
            help="Multiply the speed of a broker or queue (or all) by this factor first. Can be "
            "repeated.",
        ),
    ] = None,
    master: options.Master = None,
    json: options.Json = False,
    limit: options.Limit = 10,
) -> None:
    """Analyse mean values: rates, utilisation, response times, latencies, bottleneck, headroom.

    Example: tidings analyse city.yaml --rate all=2 --speed hub=1.5

    Example: tidings analyse --traces traces/ --services utilisation --event-type kind
    """
    from tidings.operational.analysing import analyse as analyse_workload
    from tidings.operational.audiences import delivery_rows
    from tidings.operational.scaling import scaled
    from tidings.reporting.analyses import (
        centre_table,
        connection_table,
        delivery_table,
        routing_table,
        service_table,
    )

    if formula not in FORMULAS:
        raise typer.BadParameter(f"'{formula}' is not one of {', '.join(FORMULAS)}")
    rates, speeds = _factors(rate or []), _factors(speed or [])
    origin = Origin(
        system=system,
        traces=traces,
        event_type=event_type,
        services=services,
        bandwidth=bandwidth,
        shared_network=shared_network,
        master=master,
    )
    with console.progress("analysing") as step:
        sourced = find_workload(origin, step)
        what_if = scaled(sourced.workload, rates=rates, speeds=speeds)
        analysis = analyse_workload(what_if, formula=formula)
    document = {
        **analysis.to_document(),
        "notes": [*sourced.notes, *analysis.notes],
        "deliveries": delivery_rows(analysis, sourced.audiences).to_dict("records"),
    }
    console.warn(tuple(document["notes"]))
    if json:
        console.show_json(
            {**document, **({"measured": sourced.measured} if sourced.measured else {})}
        )
        return
    if sourced.measured:
        console.show(routing_table(sourced.measured, limit), service_table(sourced.measured, limit))
    console.show(centre_table(document, limit))
    if any(row["network"] for row in document["connections"]):
        console.show(connection_table(document, limit))
    console.show(delivery_table(document, limit), _verdict(analysis))


def _factors(given: list[str]) -> dict[str, float]:
    factors: dict[str, float] = {}
    for text in given:
        name, _, factor = text.rpartition("=")
        try:
            factors[name] = float(factor)
        except ValueError:
            name = ""
        if not name:
            raise typer.BadParameter(f"'{text}' is not NAME=FACTOR, such as hub=1.5")
    return factors


def _verdict(analysis: Analysis) -> str:
    if not analysis.bottleneck:
        return (
            "There are no queues: no broker and no network has a service time, so nothing "
            "ever waits."
        )
    name, headroom = analysis.bottleneck, analysis.headroom
    busy = wording.percent(1.0 / headroom)
    if headroom <= 1.0:
        return f"'{name}' is overloaded: the load offered to it is {busy} of its capacity."
    return (
        f"The bottleneck is '{name}', busy {busy} of the time: all rates can grow by a factor of "
        f"{headroom:.3g} until it is overloaded."
    )
