"""``tidings petri``: queueing Petri nets; one module for each question."""

from __future__ import annotations

import typer

from tidings.cli.petri import check, generate, solve

app = typer.Typer(
    help="Queueing Petri nets: check a net, solve it by simulation, make one of a system."
    "\n\nExample: [bold]tidings petri solve net.yaml --precision 0.01[/]",
    no_args_is_help=True,
    rich_markup_mode="rich",
)
app.command("check")(check.check)
app.command("solve")(solve.solve)
app.command("generate")(generate.generate)
