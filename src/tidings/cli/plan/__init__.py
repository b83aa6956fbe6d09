"""``tidings plan``: what to change so that targets are met; one module for each question."""

from __future__ import annotations

import typer

from tidings.cli.listing import Listing
from tidings.cli.plan import admission, capacity, consumers, deadline, homes, scheme, targets

app = typer.Typer(
    cls=Listing,
    help="Find what to change so that subscribers meet their targets; exit code 1 if nothing "
    "does, or it cannot be decided.\n\nExample: tidings plan scheme city.yaml --target "
    "0.99",
    rich_markup_mode=None,
)
app.command("targets")(targets.targets)
app.command("admission")(admission.admission)
app.command("capacity")(capacity.capacity)
app.command("consumers")(consumers.consumers)
app.command("scheme")(scheme.scheme)
app.command("homes")(homes.homes)
app.command("deadline")(deadline.deadline)
