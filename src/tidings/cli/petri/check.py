"""``tidings petri check``: is this a net that can run, and what do its traffic equations say?"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer

from tidings.cli import console, options


def check(
    net: Annotated[
        Path | None, typer.Argument(metavar="NET", help="The net: a YAML or JSON file.")
    ] = None,
    json: options.Json = False,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the JSON Schema of net files instead.")
    ] = False,
) -> None:
    """Check a net: all its problems at once, transitions that never fire, overloaded places.

    Example: tidings petri check net.yaml
    """
    from tidings.petri.cells import NetCells, flatten
    from tidings.petri.reading import load_net, net_schema
    from tidings.petri.traffic import refuse_overload, solve_traffic

    if schema:
        console.show_json(net_schema())
        return
    if net is None:
        raise typer.BadParameter("no NET given; wants a net file")
    cells = NetCells(net=flatten(load_net(net)))
    traffic = solve_traffic(cells)
    refuse_overload(traffic)
    # What waits for other tokens, or goes round, has a load that only a solution tells.
    unknown_loads = [
        name
        for name in traffic.loads
        if any(
            cell[0] == name and math.isnan(rate)
            for cell, rate in zip(cells.all, traffic.rates_per_s, strict=True)
        )
    ]
    facts = {
        "colours": len(cells.net.colours),
        "places": len(cells.net.places),
        "transitions": len(cells.net.transitions),
        "modes": len(cells.modes),
        "utilisation": {**traffic.loads, **dict.fromkeys(unknown_loads)},
    }
    if json:
        console.show_json({"valid": True, **facts})
        return
    counts = ", ".join(f"{facts[name]} {name}" for name in list(facts)[:4])
    console.show(f"{net}: a valid net ({counts})")
    known_loads = {name: load for name, load in traffic.loads.items() if name not in unknown_loads}
    if known_loads:
        busiest = max(known_loads, key=lambda name: known_loads[name])
        console.show(f"The busiest place is '{busiest}', at ρ = {known_loads[busiest]:.3g}.")
    if unknown_loads:
        listed = ", ".join(unknown_loads[:8]) + (", …" if len(unknown_loads) > 8 else "")
        console.show(
            f"The load of {listed} does not follow from the traffic equations; tidings petri "
            "solve measures it."
        )
