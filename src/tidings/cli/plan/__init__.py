"""``tidings plan``: what to change so that targets are met; one module for each question."""

from __future__ import annotations

import typer

from tidings.cli.plan import scheme

app = typer.Typer(
    help="What to change so that everybody gets what they should; exit code 1 where nothing does."
    "\n\nExample: [bold]tidings plan scheme city.yaml --target 0.99[/]",
    no_args_is_help=True,
    rich_markup_mode="rich",
)
app.command("scheme")(scheme.scheme)
