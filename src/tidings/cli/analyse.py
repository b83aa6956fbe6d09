"""``tidings analyse``: rates, loads and latencies of a system by operational analysis."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from tidings.cli import console, options
from tidings.cli.workloads import EventType, Origin, SystemIfAny, TracesInstead, find_workload
from tidings.model.record_tables import column
from tidings.model.system import System
from tidings.prediction.operational.analysing import FORMULAS, Analysis
from tidings.prediction.operational.analysing import analyse as analyse_workload
from tidings.prediction.operational.scaling import scaled
from tidings.reporting import wording
from tidings.reporting.analyses import centre_table, connection_table, delivery_table


def analyse(
    system: SystemIfAny = None,
    traces: TracesInstead = None,
    event_type: EventType = None,
    formula: Annotated[
        str,
        typer.Option(
            metavar="|".join(FORMULAS),
            help="Responses of queues by their discipline, or all as the paper has them.",
        ),
    ] = FORMULAS[0],
    rate: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=FACTOR", help="What if a publisher (or all) published so much more?"
        ),
    ] = None,
    speed: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=FACTOR", help="What if a broker or queue (or all) were faster?"),
    ] = None,
    json: options.Json = False,
    limit: options.Limit = 10,
) -> None:
    """Rates, utilisation, responses and delivery latencies from means; the bottleneck, headroom.

    Example: [bold]tidings analyse city.yaml --rate all=2 --speed hub=1.5[/]
    """
    if formula not in FORMULAS:
        raise typer.BadParameter(f"'{formula}' is not one of {', '.join(FORMULAS)}")
    rates, speeds = _factors(rate or []), _factors(speed or [])
    origin = Origin(system=system, traces=traces, event_type=event_type)
    with console.progress("analysing") as step:
        load, found = find_workload(origin, step)
        analysis = analyse_workload(scaled(load, rates=rates, speeds=speeds), formula=formula)
    document = {**analysis.to_document(), "deliveries": _to_subscribers(found, analysis)}
    if json:
        console.show_json(document)
        return
    console.show(centre_table(document, limit))
    if any(row["network"] for row in document["connections"]):
        console.show(connection_table(document, limit))
    console.show(delivery_table(document, limit), _verdict(analysis))


def _factors(given: list[str]) -> dict[str, float]:
    found: dict[str, float] = {}
    for text in given:
        name, _, factor = text.rpartition("=")
        try:
            found[name] = float(factor)
        except ValueError:
            name = ""
        if not name:
            raise typer.BadParameter(f"'{text}' is not NAME=FACTOR, such as hub=1.5")
    return found


def _to_subscribers(system: System | None, analysis: Analysis) -> list[dict[str, Any]]:
    """Latencies to brokers that have subscribers; to all, where these are not known."""
    rows = [{str(key): row[key] for key in row} for row in analysis.deliveries.to_dict("records")]
    if system is None:
        return rows
    homes = set(column(system.subscribers, "at").values)
    return [row for row in rows if row["broker"] in homes]


def _verdict(analysis: Analysis) -> str:
    if not analysis.bottleneck:
        return "Nothing ever waits: no broker and no network takes time for an event."
    name, headroom = analysis.bottleneck, analysis.headroom
    busy = wording.percent(1.0 / headroom)
    if headroom <= 1.0:
        return f"'{name}' is overloaded: it is offered {busy} of what it can do."
    return (
        f"The bottleneck is '{name}', busy {busy} of the time: all rates can grow by a factor of "
        f"{headroom:.3g} until it is overloaded."
    )
