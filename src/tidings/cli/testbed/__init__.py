"""``tidings testbed``: a system on real servers of this machine; one module for each command."""

from __future__ import annotations

import typer

from tidings.cli.testbed import compare, run

app = typer.Typer(
    help="Run a system on real brokers, and watch the mathematics be right or wrong."
    "\n\nExample: [bold]tidings testbed run city.yaml --to traces[/]",
    no_args_is_help=True,
    rich_markup_mode="rich",
)
app.command("run")(run.run)
app.command("compare")(compare.compare)
