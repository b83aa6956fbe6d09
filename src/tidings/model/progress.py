"""How long work says where it is."""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable
from itertools import count
from typing import Any

# Called with what is being done, in a few words. A step that knows which of how many it is says so
# ("3 of 20"): the time left is estimated from that.
Progress = Callable[[str], None]


def with_step_numbers(progress: Progress, most: int) -> Progress:
    """Let every step say which it is, of so many at most.

    >>> said = []
    >>> tell = with_step_numbers(said.append, 2)
    >>> tell("reading"), tell("fitting")
    (None, None)
    >>> said
    ['reading, 1 of at most 2 steps', 'fitting, 2 of at most 2 steps']
    """
    numbers = count(1)
    return lambda step: progress(f"{step}, {next(numbers)} of at most {most} steps")


def show_progress(name: str = "") -> Progress:
    """Make a function that shows the present step: one line of a notebook's cell, or of stderr.

    ``predict(system, progress=show_progress("predicting"))``; what was shown stays until the next
    step.
    """
    started = time.monotonic()
    show = _in_notebook() or _on_stderr

    def step(current: str) -> None:
        parts = (f"{name}: " if name else "", current, f" ({time.monotonic() - started:.0f} s)")
        show("".join(parts))

    return step


def _on_stderr(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def _in_notebook() -> Progress | None:
    """Make a writer to a line of the running notebook cell; give None outside a notebook."""
    interactive: Any = sys.modules.get("IPython")
    shell = interactive.get_ipython() if interactive is not None else None
    if shell is None or not hasattr(shell, "kernel"):
        return None
    handle = importlib.import_module("IPython.display").DisplayHandle()
    handle.display({"text/plain": ""}, raw=True)
    return lambda text: handle.update({"text/plain": text}, raw=True)


def within(tell: Progress, step: str) -> Progress:
    """Make a progress that says of every step which larger one it is part of.

    >>> within(print, "change 2 of 3")("run 1 of 5")
    change 2 of 3: run 1 of 5
    """
    return lambda part: tell(f"{step}: {part}")
