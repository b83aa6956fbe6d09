"""``tidings reproduce NAME``: a command for each study, imported when it is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import typer

from studies import harness

NAMES = (
    "content-timeliness",
    "fault-tolerance",
    "mobile-onoff",
    "notification-loss",
    "performance-methodology",
    "published-fits",
    "combined",
)

MOVED = (
    "notification-loss",
    "combined",
    "content-timeliness",
    "fault-tolerance",
    "performance-methodology",
)


def command(name: str) -> Any:
    """The command that runs a study, or None if there is none of this name."""
    if name not in NAMES:
        return None
    if name in MOVED:
        return harness.command(name)
    own_name = name.replace("-", "_")
    alone = typer.Typer(add_completion=False, rich_markup_mode="rich")
    alone.command(name)(getattr(import_module(f"studies.commands.{own_name}"), own_name))
    return typer.main.get_command(alone)
