"""What people's programs and scripts stand on, as text: names, parameters, options, exit codes.

    python tests/public_api.py > tests/public_api.txt

``tests/test_public_api.py`` fails where the text no longer says what there is, so that nothing of
it changes by accident; docs/reference/stability.md says what may change when.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator
from typing import Any

import typer.main

import tidings as td
from tidings import errors
from tidings.cli.commands import app


def lines() -> Iterator[str]:
    """Yield a line for each thing that is public."""
    for name in sorted(td.__all__):
        yield from _thing(name, getattr(td, name))
    yield from _exit_codes(errors.TidingsError)
    yield from _command(typer.main.get_command(app), ("tidings",))


def _thing(name: str, thing: object) -> Iterator[str]:
    if dataclasses.is_dataclass(thing):
        for field in dataclasses.fields(thing):
            yield f"td.{name}.{field.name}"
    elif inspect.isclass(thing):
        yield f"td.{name}"
    elif callable(thing):
        parameters = inspect.signature(thing).parameters.values()
        yield f"td.{name}({', '.join(map(_written, parameters))})"
    else:
        yield f"td.{name}"


def _written(parameter: inspect.Parameter) -> str:
    """Write a parameter; = marks those that have a default."""
    stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    return stars + parameter.name + ("" if parameter.default is parameter.empty else "=")


def _exit_codes(error: type[errors.TidingsError]) -> Iterator[str]:
    yield f"exit {error.exit_code} {error.kind}"
    for below in error.__subclasses__():
        yield from _exit_codes(below)


def _command(command: Any, words: tuple[str, ...]) -> Iterator[str]:
    shown = [
        "|".join(each.opts) if each.param_type_name == "option" else each.name.upper()
        for each in command.params
    ]
    yield " ".join((*words, *shown))
    if hasattr(command, "list_commands"):
        for name in sorted(command.list_commands(None)):
            yield from _command(command.get_command(None, name), (*words, name))


if __name__ == "__main__":
    print("\n".join(lines()))
