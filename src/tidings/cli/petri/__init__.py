"""``tidings petri``: queueing Petri nets; one module for each question."""

from __future__ import annotations

import typer

from tidings.cli.listing import Listing
from tidings.cli.petri import check, generate, solve

app = typer.Typer(
    cls=Listing,
    help="Queueing Petri nets: check a net, solve it, or generate one from a "
    "system.\n\nExample: tidings petri solve net.yaml --precision 0.01",
    rich_markup_mode=None,
)
app.command("check")(check.check)
app.command("solve")(solve.solve)
app.command("generate")(generate.generate)
