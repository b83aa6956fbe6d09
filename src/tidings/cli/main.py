"""Where the command ``tidings`` begins: so small that Ctrl-C is heeded from the first moment.

Everything else is imported inside, with the interruption of a slow import in mind.
"""

from __future__ import annotations

import atexit
import os
import sys
from typing import NoReturn

from tidings.cli import interrupts


def main() -> NoReturn:
    """The entry point of the command ``tidings``."""
    interrupts.heed()
    try:
        from tidings.cli.commands import run

        code = run(sys.argv[1:])
    except BaseException:
        if not interrupts.asked():
            raise
        code = interrupts.EXIT_CODE
    if code == interrupts.EXIT_CODE:
        _leave_now()
    sys.exit(code)


def _leave_now() -> NoReturn:
    """End without waiting for compiled code in other threads, which nothing can interrupt."""
    sys.stderr.write("interrupted\n")
    sys.stderr.flush()
    atexit._run_exitfuncs()  # temporary folders go
    os._exit(interrupts.EXIT_CODE)
