"""What every command prints with: results on stdout, progress and problems on stderr."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console, RenderableType

from tidings.errors import InvalidInputError, TidingsError
from tidings.model.outcome_files import plain

SHOW_AFTER_S = 2.0


def out() -> Console:
    """The console for results; in a pipe it is wide, so that no table is cut."""
    return Console(soft_wrap=False, width=None if sys.stdout.isatty() else 120)


def err() -> Console:
    """The console for everything that is not the result."""
    return Console(stderr=True, soft_wrap=True)


def show(*parts: RenderableType) -> None:
    """Print results for a person."""
    console = out()
    for part in parts:
        console.print(part)


def show_json(document: Any) -> None:
    """Print a result for a program."""
    sys.stdout.write(json.dumps(plain(document), allow_nan=False, indent=1, ensure_ascii=False))
    sys.stdout.write("\n")


def warn(messages: tuple[str, ...]) -> None:
    """Print what the reader of a result must know."""
    for message in messages:
        err().print(f"[yellow]warning:[/] {_escaped(message)}", highlight=False)


def complain(error: TidingsError) -> None:
    """Print a deliberate error: one readable line, or a headline and a list."""
    console = err()
    console.print(f"[red]error:[/] {_escaped(_headline(error))}", highlight=False)
    if isinstance(error, InvalidInputError):
        for problem in error.problems:
            console.print(f"  {_escaped(str(problem))}", highlight=False)


def _headline(error: TidingsError) -> str:
    return error.headline if isinstance(error, InvalidInputError) else str(error)


def _escaped(text: str) -> str:
    return text.replace("[", "\\[")


@contextmanager
def progress(task: str) -> Iterator[Callable[[str], None]]:
    """Tell what is going on while it takes long; gives a function to name the current step.

    On a terminal a spinner shows the step and the seconds; elsewhere a step is a line of its own
    when two seconds have passed since the start or since the last such line.
    """
    console = err()
    started = time.monotonic()
    if console.is_terminal:
        with console.status(f"{task} …") as status:
            yield lambda step: status.update(
                f"{task}: {_escaped(step)} ({time.monotonic() - started:.0f} s)"
            )
        return
    said_at = started

    def step(name: str) -> None:
        nonlocal said_at
        if time.monotonic() - said_at > SHOW_AFTER_S:
            said_at = time.monotonic()
            sys.stderr.write(f"{task}: {name} ({time.monotonic() - started:.0f} s)\n")
            sys.stderr.flush()

    yield step
