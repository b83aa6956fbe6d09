"""How whatever goes on beside a run is ended."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

_ASKED_TO_END, _UNTIL_ASKED_AGAIN_S = 50, 0.2


async def end_all(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel tasks, and wait until all have ended.

    A wait that ends at the moment at which its task is cancelled swallows that, and the task goes
    on for ever: so it is asked more than once.
    """
    left = set(tasks)
    for _ in range(_ASKED_TO_END):
        left = {each for each in left if not each.done()}
        if not left:
            return
        for task in left:
            task.cancel()
        await asyncio.wait(left, timeout=_UNTIL_ASKED_AGAIN_S)
