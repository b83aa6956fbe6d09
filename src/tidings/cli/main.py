"""Where the command ``tidings`` begins: so small that Ctrl-C is heeded from the first moment.

Everything else is imported inside, with the interruption of a slow import in mind.
"""

from __future__ import annotations

import sys
from typing import NoReturn

from tidings.cli import interrupts

_NO_MEMORY = 5  # as all that is missing


def main() -> NoReturn:
    """Run the command ``tidings``: its entry point."""
    interrupts.heed()
    interrupts.look_on()
    try:
        from tidings.cli.commands import run

        code = run(sys.argv[1:])
    except BaseException as problem:
        if interrupts.asked():
            code = interrupts.EXIT_CODE
        elif isinstance(problem, MemoryError) or "failed to map segment" in str(problem):
            sys.stderr.write("error: there is not enough memory to start\n")
            code = _NO_MEMORY
        else:
            raise
    if code == interrupts.EXIT_CODE:
        interrupts.leave()
    sys.exit(code)
