"""``tidings testbed``: a system on real servers of this machine; one module for each command."""

from __future__ import annotations

import typer

from tidings.cli.listing import Listing
from tidings.cli.testbed import compare, run

app = typer.Typer(
    cls=Listing,
    help="Run a system on real brokers (nats-server), and compare with its "
    "prediction.\n\nExample: tidings testbed run city.yaml --to traces",
    rich_markup_mode=None,
)
app.command("run")(run.run)
app.command("compare")(compare.compare)
