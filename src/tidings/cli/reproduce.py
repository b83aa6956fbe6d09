"""``tidings reproduce NAME``: the door to the papers' experiments, which live beside the package.

They are in the folder ``studies`` of a clone. A wheel is the product alone: from there the command
says where the experiments are.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import typer

from tidings.cli.listing import Listing
from tidings.errors import UnsupportedError

STUDIES = "studies"  # the folder, and the package that it is
SOURCE = Path(__file__).resolve().parents[3]  # of the package: a clone, or where wheels are put


def clone() -> Path | None:
    """Find the clone that this package is part of; no code of another folder is ever run."""
    wanted = (f"{STUDIES}/commands.py", "src/tidings/__init__.py")
    return SOURCE if all((SOURCE / each).is_file() for each in wanted) else None


class Studies(Listing):
    """A command for each study of the clone; without a clone, word of where they are."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Go on where there are studies, or help is asked for; raises UnsupportedError else."""
        if clone() is None and not {"-h", "--help"} & set(args):
            raise UnsupportedError(
                f"the papers' experiments are not part of the installed package: they are in the "
                f"folder '{STUDIES}' of a clone of Tidings; run 'make' in a clone, then "
                f"'.venv/bin/tidings reproduce {' '.join(args) or 'NAME'}' there"
            )
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: Any) -> list[str]:
        """List the names of the studies."""
        return list(_studies().NAMES) if clone() else []

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Give the command that runs the study of this name, or None."""
        return _studies().command(cmd_name) if clone() else None


def _studies() -> Any:
    root = str(clone())
    if root not in sys.path:
        sys.path.insert(0, root)
    return import_module(f"{STUDIES}.commands")


app = typer.Typer(
    cls=Studies,
    help="Repeat the experiments of a paper: predicted against simulated, errors, claims, "
    "plots. Needs a clone of Tidings, with its folder 'studies'.\n\nExample: tidings "
    "reproduce content-timeliness --systems 2 --load high",
    rich_markup_mode=None,
)


@app.callback()
def _group() -> None:
    """Make a group of a Typer that has no command of its own."""
