"""``tidings petri generate``: the queueing Petri net of a system."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

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
from tidings.model.flow_kinds import FLOWS
from tidings.model.writing import check_file
from tidings.petri.options import FORWARDING


def generate(
    system: SystemIfAny = None,
    traces: TracesInstead = None,
    event_type: EventType = None,
    services: Services = None,
    bandwidth: Bandwidth = None,
    shared_network: SharedNetwork = None,
    to: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the net to this file; printed by default."),
    ] = None,
    forwarding: Annotated[
        str,
        typer.Option(
            metavar="|".join(FORWARDING),
            help="Whether copies of an event go to several brokers jointly, as contents and "
            "filters decide, or to each broker independently, as in the paper.",
        ),
    ] = FORWARDING[0],
    colours: Annotated[
        str,
        typer.Option(
            metavar="|".join(FLOWS),
            help="One token colour for each publisher and event type, or for each class of "
            "contents.",
        ),
    ] = FLOWS[0],
    master: options.Master = None,
    json: options.Json = False,
) -> None:
    """Generate the queueing Petri net of a system: brokers and networks are places, events tokens.

    Example: tidings petri generate city.yaml --to net.yaml
    """
    from tidings.petri.generating import generate_net
    from tidings.petri.reading import checked, dumps_net, net_document, save_net

    for value, known in ((forwarding, FORWARDING), (colours, FLOWS)):
        if value not in known:
            raise typer.BadParameter(f"'{value}' is not one of {', '.join(known)}")
    if to is not None:
        check_file(to)
    origin = Origin(
        system=system,
        traces=traces,
        event_type=event_type,
        services=services,
        bandwidth=bandwidth,
        shared_network=shared_network,
        master=master,
    )
    if traces is not None and colours != FLOWS[0]:
        raise typer.BadParameter(
            f"--traces can be split by {FLOWS[0]} only, not by {colours}; leave --colours out"
        )
    with console.progress("generating") as step:
        sourced = find_workload(origin, step, by=colours)
        net = checked(generate_net(sourced.workload, forwarding=forwarding))
    console.warn(sourced.notes)
    if to is not None:
        save_net(net, to)
    if json:
        console.show_json(net_document(net))
    elif to is None:
        typer.echo(dumps_net(net), nl=False)
    else:
        console.note(
            f"{to}: {len(net.colours)} colours, {len(net.places)} places, "
            f"{len(net.transitions)} transitions"
        )
