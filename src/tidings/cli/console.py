"""What every command prints with: results on stdout, progress and problems on stderr.

What prints is imported when there is something to print, for help needs none of it.
"""

from __future__ import annotations

import json
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import IO, TYPE_CHECKING, Any, TextIO, cast

from tidings.cli import interrupts
from tidings.errors import InvalidInputError, TidingsError
from tidings.model.json_text import plain

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.text import Text

_CONTROL = re.compile(
    r"\x1b(?!\[[0-9;]*m)|[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f\ud800-\udfff]"
)
_CONTROL_IN_JSON = re.compile("[\x7f-\x9f\ud800-\udfff]")  # others are escaped in any case
SHOW_AFTER_S, AGAIN_S = 2.0, 10.0
_WIDE = 120  # characters, of lines that nobody looks at in a terminal
_NARROWEST = 60  # of tables: squeezed into less they cannot be read, folded by a terminal they can
_COUNT = re.compile(r"\b(\d[\d,]*) of (?:at most |about |at least )?(\d[\d,]*)")
_OPEN_END = "at least "  # before a count: more may follow, so the time left is no less


def out() -> Console:
    """Make the console for results; in a pipe it is wide, unless COLUMNS says how wide."""
    from rich.console import Console

    class Results(Console):
        """Goes on where a reader has had enough: warnings and the exit code are still to come."""

        def on_broken_pipe(self) -> None:
            write_no_more()

    width = None if sys.stdout.isatty() else _asked_width() or _WIDE
    console = Results(file=cast(IO[str], _Tame(sys.stdout)), soft_wrap=False, width=width)
    console.width = max(console.width, _NARROWEST)
    return console


def write_no_more() -> None:
    """Lead stdout nowhere, for nobody reads it: writing on would raise again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _asked_width() -> int | None:
    """Read how wide the caller wants lines, in characters; None where that is not said."""
    columns = os.environ.get("COLUMNS", "")
    return int(columns) if columns.isdecimal() and int(columns) > 0 else None


def err() -> Console:
    """Make the console for everything that is not the result."""
    from rich.console import Console

    return Console(file=cast(IO[str], _Tame(sys.stderr)), soft_wrap=True)


def _tamed(text: str) -> str:
    return _CONTROL.sub(lambda control: repr(control[0])[1:-1], text)


class _Tame:
    """A stream that shows control characters instead of obeying them: names may hold any.

    So it does with halves of surrogate pairs, which no encoding has. Colours are let through, as
    they can do no harm.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return self._stream.write(_tamed(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _text(*parts: str | tuple[str, str]) -> Text:
    """Join texts one after the other, as they are; a pair is a text and its colour."""
    from rich.text import Text

    return Text.assemble(*parts)


def show(*parts: RenderableType) -> None:
    """Print results for a person; texts as they are, for names may look like markup or emoji."""
    console = out()
    for part in parts:
        console.print(_text(part) if isinstance(part, str) else part)


def show_checked(passed: bool | None, words: tuple[str, ...], text: str) -> None:
    """Print whether something holds: the first word if it does, the second if not.

    The third, where there is one, if that cannot be told.
    """
    which, colour = {True: (0, "green"), False: (1, "red"), None: (2, "yellow")}[passed]
    show(_text((words[which].ljust(max(map(len, words))), colour), f" {text}"))


def note(text: str) -> None:
    """Print, beside the result, what was done."""
    err().print(_text(text))


def show_json(document: Any) -> None:
    """Print a result for a program."""
    text = json.dumps(plain(document), allow_nan=False, indent=1, ensure_ascii=False)
    text = _CONTROL_IN_JSON.sub(lambda each: f"\\u{ord(each[0]):04x}", text)
    try:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()
    except BrokenPipeError:
        write_no_more()


def warn(messages: tuple[str, ...]) -> None:
    """Print what the reader of a result must know."""
    for message in messages:
        err().print(_text(("warning:", "yellow"), f" {message}"))


def complain(error: TidingsError) -> None:
    """Print a deliberate error: one readable line, or a headline and a list."""
    console = err()
    console.print(_text(("error:", "red"), f" {_headline(error)}"))
    if isinstance(error, InvalidInputError):
        for problem in error.problems:
            console.print(_text(f"  {problem}"))


def complain_of_fault(message: str) -> None:
    """Print that Tidings itself is wrong, and what helps to find out why."""
    advice = "Please report it; TIDINGS_DEBUG=1 prints the traceback."
    err().print(_text(("a bug in Tidings:", "red"), f" {message}\n{advice}"))


def failure_document(error: Exception, *, kind: str, message: str, code: int) -> dict[str, Any]:
    """Describe what went wrong, for a program: problems one by one, where there is a list."""
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


def _roughly(time_s: float) -> str:
    """Write a time without decimals, in seconds, minutes or hours."""
    unit, size_s = next(
        (each for each in (("h", 3600.0), ("min", 60.0)) if time_s >= 1.5 * each[1]), ("s", 1.0)
    )
    return f"{time_s / size_s:.0f} {unit}"


class _Task:
    """What is being done, as it is said on stderr, and how long it will take."""

    def __init__(self, name: str) -> None:
        self.step = ""
        self._name = name
        self._started = self._said_at = time.monotonic()
        self._said = ""
        self._what, self._total, self._first, self._done = "", 0, 0.0, 0.0
        self._counted_from = self._counted_at = self._started

    def begin(self, step: str) -> None:
        """Take note of a step; estimate the time left where it counts."""
        self.step = step
        counts = [[int(each.replace(",", "")) for each in pair] for pair in _COUNT.findall(step)]
        if not counts:
            return
        # Of a step that has steps itself, those that are over count as parts of it.
        (number, total), *inner = counts
        done = number + sum(min(part - 1, parts) / max(parts, 1) for part, parts in inner[:1])
        now = time.monotonic()
        what = _COUNT.sub("", step)
        goes_on = done >= self._done and (what == self._what or total == self._total)
        if not goes_on:
            self._first, self._counted_from = done, now
        self._what, self._total = what, total  # better known as work goes on
        self._done, self._counted_at = done, now

    @property
    def left_s(self) -> float | None:
        """How long the counted steps will still take at the pace so far, in seconds."""
        if self._done <= self._first or _COUNT.search(self.step) is None:
            return None
        pace_s = (self._counted_at - self._counted_from) / (self._done - self._first)
        ends = self._counted_at + pace_s * (self._total - self._done)
        return max(0.0, ends - time.monotonic())

    def __str__(self) -> str:
        step = f": {self.step}" if self.step else ""
        left_s, count = self.left_s, _COUNT.search(self.step)
        known = left_s is not None and left_s >= 1.0
        least = count is not None and _OPEN_END in count[0]
        about = f"{'at least' if least else 'about'} {_roughly(left_s or 0.0)}"
        left = f", {about} for the rest of these" if known else ""
        text = f"{self._name}{step} ({time.monotonic() - self._started:.0f} s{left})"
        return _tamed(text)

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
        task.begin(current)

    def watch(tell: Callable[[], None], every_s: float) -> None:
        while not done.wait(every_s):
            tell()

    from rich.console import Console

    console = Console(stderr=True)  # a spinner moves the cursor; what it says is tamed
    with console.status(_text(str(task))) if console.is_terminal else nullcontext() as status:
        if status is not None:
            arguments = (lambda: status.update(_text(str(task))), 0.5)
        else:
            arguments = (task.tell, 0.1)
        watcher = threading.Thread(target=watch, args=arguments, daemon=True)
        watcher.start()
        try:
            yield step
        except KeyboardInterrupt as end:
            if str(end):  # what is left of it; Typer would not hand that on
                note(str(end))
            raise
        finally:
            done.set()
            watcher.join()
