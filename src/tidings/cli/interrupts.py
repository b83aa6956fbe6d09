"""Ctrl-C, SIGTERM or SIGHUP: each ends a command in one line with exit code 130, at any time."""

from __future__ import annotations

import contextlib
import logging
import signal
import sys
import time
from typing import Any

EXIT_CODE = 130
# A second Ctrl-C within this time is impatience: what the first began to tidy up goes on.
TIDYING_S = 5.0

_asked_at: list[float] = []


def heed() -> None:
    """Have Ctrl-C end this command; to be called again when a library took the signal over."""
    with contextlib.suppress(ValueError):  # not the main thread, which alone is interrupted
        for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if each != signal.SIGHUP or signal.getsignal(each) != signal.SIG_IGN:  # not under nohup
                signal.signal(each, _interrupt)
        sys.unraisablehook = _tell_unraisable


def asked() -> bool:
    """Whether Ctrl-C was pressed: then whatever fails, fails because of it."""
    return bool(_asked_at)


def check() -> None:
    """Raise :class:`KeyboardInterrupt` if one was raised before and lost in a destructor."""
    if asked():
        raise KeyboardInterrupt


def _interrupt(_signal: int, _frame: Any) -> None:
    now = time.monotonic()
    if not _asked_at or now - _asked_at[-1] > TIDYING_S:
        _asked_at.append(now)
        logging.disable()  # what libraries say of their broken work is no news
        raise KeyboardInterrupt


def _tell_unraisable(problem: Any) -> None:
    if not isinstance(problem.exc_value, KeyboardInterrupt):
        sys.__unraisablehook__(problem)
