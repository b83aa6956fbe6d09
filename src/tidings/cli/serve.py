"""``tidings serve``: a watched system on a page that stays up to date, and as metrics."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from tidings.cli import console, options
from tidings.errors import InvalidInputError


def serve(
    folder: Annotated[
        Path | None,
        typer.Argument(
            metavar="FOLDER", help="The folder that 'tidings watch' keeps its state in."
        ),
    ] = None,
    port: options.Port = 8765,
    host: options.Host = "127.0.0.1",
    token: options.Token = None,
    most_labels: Annotated[
        int,
        typer.Option(
            "--most-labels",
            metavar="N",
            min=0,
            help="Export metrics of single subscribers and queues for the N worst of each only, "
            "to limit the number of labels.",
        ),
    ] = 200,
    monitoring: Annotated[
        Path | None,
        typer.Option(
            "--write-dashboards",
            metavar="DIR",
            help="Write a Grafana dashboard and Prometheus alert rules to DIR, and end.",
        ),
    ] = None,
    json: options.Json = False,
) -> None:
    """Show a watched system on a page that stays up to date, and as metrics at /metrics.

    Who is late, why, and what to do; shares on time as promised, measured and predicted; alarms;
    the network; the health of the watcher itself. Reads the folder only. Ctrl-C ends it.

    Example: tidings serve watched/ --port 8765
    """
    if monitoring is not None:
        from tidings.serving.monitoring import write_files

        written = write_files(monitoring)
        if json:
            console.show_json({"files": [str(each) for each in written]})
        else:
            console.show(*(str(each) for each in written))
        return
    if folder is None:
        raise typer.BadParameter("missing argument 'FOLDER'")
    if not folder.is_dir():
        raise InvalidInputError(
            f"{folder} is not a folder; start 'tidings watch' first, which creates it"
        )
    from tidings.serving.guard import token_for
    from tidings.serving.live import ServeSettings
    from tidings.serving.server import serve as serving

    settings = ServeSettings(folder=folder, token=token_for(host, token), most_labels=most_labels)
    with serving(settings, host=host, port=port) as served:
        if json:
            console.show_json(
                {"url": served.url, "host": served.host, "port": served.port, "token": served.token}
            )
        else:
            console.show(served.door)
            console.note("Ctrl-C ends it.")
        sys.stdout.flush()  # whoever started this in a pipe waits for it
        served.wait()
