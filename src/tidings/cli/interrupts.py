"""Ctrl-C, SIGTERM or SIGHUP: each ends a command in one line with exit code 130, at any time.

Python handles a signal between two steps of its main thread, which may wait in compiled code for
ever (a library that opens a pipe begins again when it is interrupted). So a thread looks on, and
ends the command where the main thread does not.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from typing import Any, NoReturn

EXIT_CODE = 130
# A second Ctrl-C within this time is impatience: what the first began to tidy up goes on.
TIDYING_S = 5.0
# To tidy up takes seconds: longer than this, and something waits that will not end.
_LONGEST_TIDYING_S = 60.0
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_asked_at: list[float] = []


def heed() -> None:
    """Let Ctrl-C end this command; to be called again when a library took the signal over."""
    with contextlib.suppress(ValueError):  # not the main thread, which alone is interrupted
        for each in _SIGNALS:
            if each != signal.SIGHUP or signal.getsignal(each) != signal.SIG_IGN:  # not under nohup
                signal.signal(each, _interrupt)
        sys.unraisablehook = _tell_unraisable
        threading.excepthook = _tell_thread


@contextlib.contextmanager
def kept() -> Iterator[None]:
    """Let no library take signals over while the block runs: Spark's handler fails in itself."""
    usual, signal.signal = signal.signal, lambda *_: None
    try:
        yield
    finally:
        signal.signal = usual


def asked() -> bool:
    """Test whether Ctrl-C was pressed: then whatever fails, fails because of it."""
    return bool(_asked_at)


def check() -> None:
    """Raise :class:`KeyboardInterrupt` if one was raised before and lost in a destructor."""
    if asked():
        raise KeyboardInterrupt


def leave() -> NoReturn:
    """End without waiting for compiled code in other threads, which nothing can interrupt."""
    signal.alarm(round(_LONGEST_TIDYING_S))  # ends the process, should what follows wait
    sys.stderr.write("interrupted\n")
    sys.stderr.flush()
    atexit._run_exitfuncs()  # temporary folders go
    os._exit(EXIT_CODE)


def look_on() -> None:
    """Start a thread that waits for signals, to end this command where its main thread does not."""
    coming, written = os.pipe()
    os.set_blocking(written, False)
    signal.set_wakeup_fd(written, warn_on_full_buffer=False)  # whatever the main thread does
    threading.Thread(target=_end, args=(coming,), daemon=True).start()
    sys.meta_path.insert(0, _QuietArrow)


class _QuietArrow(MetaPathFinder):
    """Import pyarrow without its own signal handlers: they set a mark it may never come to read."""

    @classmethod
    def find_spec(cls, name: str, path: Any, target: Any = None) -> ModuleSpec | None:
        if name != "pyarrow":
            return None
        sys.meta_path.remove(cls)
        spec = find_spec(name)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def load_quietly(module: Any) -> None:
                load(module)
                module.enable_signal_handlers(False)

            spec.loader.exec_module = load_quietly  # type: ignore[method-assign]
        return spec


def _end(coming: int) -> None:
    """End the command if the main thread has not heeded a signal soon, or not ended long after."""
    while os.read(coming, 1)[0] not in _SIGNALS:
        pass
    time.sleep(TIDYING_S)
    if asked():
        time.sleep(_LONGEST_TIDYING_S)
    leave()


def _interrupt(_signal: int, _frame: Any) -> None:
    now = time.monotonic()
    if not _asked_at or now - _asked_at[-1] > TIDYING_S:
        _asked_at.append(now)
        logging.disable()  # what libraries say of their broken work is no news
        servers: Any = sys.modules.get("socketserver")
        if servers is not None:  # nor what servers here, that Spark talked to until now
            servers.BaseServer.handle_error = lambda *_: None
        raise KeyboardInterrupt


def _tell_unraisable(problem: Any) -> None:
    if not isinstance(problem.exc_value, KeyboardInterrupt):
        sys.__unraisablehook__(problem)


def _tell_thread(problem: threading.ExceptHookArgs) -> None:
    """Tell why a thread ended, but not of one that lost Spark because all ends."""
    if not asked():
        threading.__excepthook__(problem)
