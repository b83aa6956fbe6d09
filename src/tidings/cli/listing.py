"""Help as plain text: the same in a terminal and in a pipe, and nothing heavy is imported for it.

A library that draws frames around help takes longer to be imported than all commands together.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

import typer
from typer.core import TyperGroup


class Listing(TyperGroup):
    """A group of commands whose help says of each, whole, what it says of itself first."""

    _command_first = False

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take the words apart: where a command comes first, no option of the group is given.

        Without any word the help is the answer, and the exit code that of wrong input.
        """
        if not args and not ctx.resilient_parsing:
            typer.echo(ctx.get_help())
            raise typer.Exit(2)
        self._command_first = bool(args) and not args[0].startswith("-")
        return super().parse_args(ctx, args)

    def get_params(self, ctx: Any) -> list[Any]:
        """List the group's options, if any is given: to read one imports a library of checks."""
        return [] if self._command_first else super().get_params(ctx)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command that is asked for; of one that is not there, say which may be meant."""
        close = difflib.get_close_matches(args[0], self.list_commands(ctx), n=1) if args else []
        if close and self.get_command(ctx, args[0]) is None:
            ctx.fail(f"No such command '{args[0]}'. Did you mean '{close[0]}'?")
        return super().resolve_command(ctx, args)

    def headings(self, ctx: Any) -> Mapping[str, Sequence[str]]:
        """List the names of the commands, by what they are listed under."""
        return {"Commands": self.list_commands(ctx)}

    def help_of(self, ctx: Any, name: str) -> str:
        """Give the help of the command of this name."""
        command: Any = self.get_command(ctx, name)
        return str(command.help)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands, in one column under all headings."""
        width = max(map(len, self.list_commands(ctx)), default=0)
        for heading, names in self.headings(ctx).items():
            rows = [(name.ljust(width), _purpose(self.help_of(ctx, name))) for name in names]
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)


def _purpose(text: str) -> str:
    return " ".join(text.split("\n\n")[0].split())
