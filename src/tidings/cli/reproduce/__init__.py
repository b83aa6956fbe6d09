"""``tidings reproduce PAPER``: the experiments of a paper, run again; one module for each paper."""

from __future__ import annotations

import typer

from tidings.cli.reproduce import (
    combined,
    content_timeliness,
    fault_tolerance,
    mobile_onoff,
    notification_loss,
    performance_methodology,
    published_fits,
)

app = typer.Typer(
    help="Run the experiments of a paper again: predicted against simulated, errors, claims, plots."
    "\n\nExample: [bold]tidings reproduce content-timeliness --systems 2 --load high[/]",
    no_args_is_help=True,
    rich_markup_mode="rich",
)
app.command("content-timeliness")(content_timeliness.content_timeliness)
app.command("fault-tolerance")(fault_tolerance.fault_tolerance)
app.command("mobile-onoff")(mobile_onoff.mobile_onoff)
app.command("notification-loss")(notification_loss.notification_loss)
app.command("performance-methodology")(performance_methodology.performance_methodology)
app.command("published-fits")(published_fits.published_fits)
app.command("combined")(combined.combined)
