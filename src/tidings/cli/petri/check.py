"""``tidings petri check``: is this a net that can run, and what do its traffic equations say?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tidings.cli import console, options
from tidings.petri.cells import Cells
from tidings.petri.flattening import flatten
from tidings.petri.reading import load_net, net_schema
from tidings.petri.traffic import refuse_overload, solve_traffic


def check(
    net: Annotated[
        Path | None, typer.Argument(metavar="NET", help="A net: a YAML or JSON file.")
    ] = None,
    json: options.Json = False,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the JSON Schema of net files instead.")
    ] = False,
) -> None:
    """Check a net: all its problems at once, transitions that never fire, overloaded places.

    Example: [bold]tidings petri check net.yaml[/]
    """
    if schema:
        console.show_json(net_schema())
        return
    if net is None:
        raise typer.BadParameter("which net? give its file")
    cells = Cells(net=flatten(load_net(net)))
    traffic = solve_traffic(cells)
    refuse_overload(traffic)
    facts = {
        "colours": len(cells.net.colours),
        "places": len(cells.net.places),
        "transitions": len(cells.net.transitions),
        "modes": len(cells.modes),
        "utilisation": traffic.loads,
    }
    if json:
        console.show_json({"valid": True, **facts})
        return
    counts = ", ".join(f"{facts[name]} {name}" for name in list(facts)[:4])
    console.show(f"{net}: a valid net ({counts})")
    if traffic.loads:
        busiest = max(traffic.loads, key=lambda name: traffic.loads[name])
        console.show(f"The busiest place is '{busiest}', at ρ = {traffic.loads[busiest]:.3g}.")
