"""Where the command ``tidings`` begins: so small that Ctrl-C is heeded from the first moment.

Everything else is imported inside, with the interruption of a slow import in mind.
"""

from __future__ import annotations

import sys
from typing import NoReturn

from tidings.cli import interrupts


def main() -> NoReturn:
    """Run the command ``tidings``: its entry point."""
    interrupts.heed()
    interrupts.look_on()
    try:
        from tidings.cli.commands import run

        code = run(sys.argv[1:])
    except BaseException:
        if not interrupts.asked():
            raise
        code = interrupts.EXIT_CODE
    if code == interrupts.EXIT_CODE:
        interrupts.leave()
    sys.exit(code)
