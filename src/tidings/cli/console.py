"""What every command prints with: results on stdout, progress and problems on stderr."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from rich.console import Console, RenderableType

from tidings.cli import interrupts
from tidings.errors import InvalidInputError, TidingsError
from tidings.model.outcome_files import plain

SHOW_AFTER_S, AGAIN_S = 2.0, 10.0


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


def complain_of_fault(message: str) -> None:
    """Print that Tidings itself is wrong, and what helps to find out why."""
    err().print(
        f"[red]a fault of Tidings itself:[/] {_escaped(message)}\n"
        "Please report it; with TIDINGS_DEBUG=1 it shows where.",
        highlight=False,
    )


def failure_document(error: Exception, *, kind: str, message: str, code: int) -> dict[str, Any]:
    """What went wrong, for a program: problems one by one, where there is a list of them."""
    said: dict[str, Any] = {"kind": kind, "message": message, "exit_code": code}
    if isinstance(error, InvalidInputError):
        said["message"] = error.headline
        if error.problems:
            said["problems"] = [
                {"at": p.at, "line": p.line, "saw": p.saw, "want": p.want, "fix": p.fix}
                for p in error.problems
            ]
    return said


def _headline(error: TidingsError) -> str:
    return error.headline if isinstance(error, InvalidInputError) else str(error)


def _escaped(text: str) -> str:
    return text.replace("[", "\\[")


class _Task:
    """What is being done, as it is told on stderr."""

    def __init__(self, name: str) -> None:
        self.step = ""
        self._name = name
        self._started = self._said_at = time.monotonic()
        self._said = ""

    def __str__(self) -> str:
        step = f": {self.step}" if self.step else ""
        return f"{self._name}{step} ({time.monotonic() - self._started:.0f} s)"

    def tell(self) -> None:
        """Write a line if the last one is old: sooner for a new step than for the same."""
        silent_s = time.monotonic() - self._said_at
        if silent_s >= (SHOW_AFTER_S if self.step != self._said or not self._said else AGAIN_S):
            self._said, self._said_at = self.step, time.monotonic()
            sys.stderr.write(f"{self}\n")
            sys.stderr.flush()


@contextmanager
def progress(name: str) -> Iterator[Callable[[str], None]]:
    """Tell what is going on while it takes long; gives a function to name the current step.

    On a terminal a spinner shows the step and the seconds; elsewhere a line says it after two
    seconds, when two more have passed and the step has changed, and every ten seconds.
    """
    task, done = _Task(name), threading.Event()

    def step(current: str) -> None:
        interrupts.check()
        task.step = current

    def watch(tell: Callable[[], None], every_s: float) -> None:
        while not done.wait(every_s):
            tell()

    console = err()
    with console.status(str(task)) if console.is_terminal else nullcontext() as status:
        if status is not None:
            arguments = (lambda: status.update(_escaped(str(task))), 0.5)
        else:
            arguments = (task.tell, 0.1)
        watcher = threading.Thread(target=watch, args=arguments, daemon=True)
        watcher.start()
        try:
            yield step
        finally:
            done.set()
            watcher.join()
