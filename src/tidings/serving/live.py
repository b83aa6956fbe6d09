"""What all open pages are shown: made once for each new state, and sent to each of them."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool

from tidings.serving.folder import PastStates, WatchedFolder, to_line
from tidings.serving.metrics import metrics_text
from tidings.serving.network_map import Maps, NetworkMap
from tidings.serving.view import view
from tidings.watching.state import NOW_FILE

MOST_LABELS = 200
LOOK_EVERY_S = 0.5  # at the file of the state
PING_EVERY_S = 10.0  # so that a page notices that nobody is there
RETRY_MS = 2000  # after which a page that lost its server asks again


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeSettings:
    """What is served, and to whom."""

    folder: Path
    token: str = ""
    most_labels: int = MOST_LABELS


class Live:
    """The latest state of a folder, and who waits for the next."""

    def __init__(self, settings: ServeSettings) -> None:
        self.settings = settings
        self.folder = WatchedFolder(settings.folder)
        self.past = PastStates(settings.folder)
        self._maps = Maps(settings.folder)
        self.map = NetworkMap()
        self._event = ""
        self._count = 0  # of the states so far
        self._changed = asyncio.Event()
        self._ended = False

    def renew(self) -> bool:
        """Read the state if it is new, and write the event that tells it; answers whether."""
        before = self.folder.state
        if not self.folder.renew() and self._event:
            return False
        try:
            self._tell()
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as problem:
            self.folder.state = before  # the pages of others must not end with this one
            self.folder.problem = f"{NOW_FILE} has what no state has: {problem}"
            self._tell()
        return True

    def view(self, **options: Any) -> dict[str, Any]:
        """Give what the page shows now."""
        return view(self.folder.state, self.map, self.folder.problem, **options)

    def _tell(self) -> None:
        self.map = self._maps.of(self.folder.state)
        metrics_text(self.folder.state, self.settings.most_labels)  # raises where it would then
        self._event = f"data: {to_line(self.view())}\n\n"

    def title(self) -> str:
        """Give the name of the watched system."""
        state = self.folder.state
        return (state.system if state is not None else "") or self.settings.folder.name

    async def look(self) -> None:
        """Look at the folder again and again, and wake who waits for news."""
        while True:
            if await run_in_threadpool(self.renew):
                self._wake()
            await asyncio.sleep(LOOK_EVERY_S)

    async def events(self) -> AsyncIterator[str]:
        """Tell the state, and then each new one, until the server ends."""
        yield f"retry: {RETRY_MS}\n\n"
        seen = -1
        while not self._ended:
            changed = self._changed
            if self._count != seen:
                seen = self._count
                yield self._event
            yield f"event: ping\ndata: {time.time()}\n\n"
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(changed.wait(), PING_EVERY_S)

    def end(self) -> None:
        """End the streams of all pages."""
        self._ended = True
        self._wake()

    def _wake(self) -> None:
        self._count += 1
        self._changed.set()
        self._changed = asyncio.Event()
