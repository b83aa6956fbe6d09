"""``tidings samples``: recorded runs of real brokers that come with the package."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated

import typer

from tidings.cli import console, options


def samples(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="The sample to copy; with --to.")
    ] = None,
    to: Annotated[
        Path | None, typer.Option("--to", metavar="FOLDER", help="New folder for a copy of it.")
    ] = None,
    json: options.Json = False,
) -> None:
    """List recorded runs of real brokers that come with Tidings, or copy one into a folder.

    Each is a folder of trace tables, with the system that was played, the share of its events that
    each subscriber got in time, and a data card. Licence: CC BY 4.0.

    Example: tidings samples nats-failing --to traces
    """
    if (name is None) != (to is None):
        raise typer.BadParameter("NAME and --to go together; without both, samples are listed")
    if name is None or to is None:
        _list(json=json)
        return
    from tidings.model.writing import new_folder
    from tidings.samples.loading import MEASURED, SYSTEM, load_sample

    sample = load_sample(name)
    with new_folder(to) as place:
        for file in sorted(each for each in sample.traces.rglob("*") if each.is_file()):
            copy = place / file.relative_to(sample.traces)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, copy)  # unlike copytree, it says why it cannot
    if json:
        console.show_json({"name": name, "traces": str(to)})
        return
    console.note(f"{to}: traces of {name}, {SYSTEM}, {MEASURED} and a data card")
    console.note(f"Next: tidings characterise {to} --base {to / SYSTEM} --to fitted.yaml")


def _list(*, json: bool) -> None:
    from tidings.samples.loading import load_sample, sample_names

    rows = [
        {
            "name": each.name,
            "description": each.system.description,
            "events": int(each.measured.subscribers["events"].sum()),
            "on_time": each.measured.on_time,
        }
        for each in map(load_sample, sample_names())
    ]
    if json:
        console.show_json(rows)
        return
    from tidings.reporting import terminal

    console.show(
        terminal.fitting(
            "Recorded runs of real brokers",
            rows,
            terminal.names("name", "sample"),
            terminal.formatted("events wanted", "events", ",", spare=1),
            terminal.shares("on time", "on_time"),
            terminal.texts("what", "description"),
        )
    )
