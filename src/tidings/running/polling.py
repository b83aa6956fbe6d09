"""Pages of a running broker polled into a folder, one file a poll, as importers read them.

Every poll is a file of its own, so that whatever was read stays, also when polling is stopped, and
can be read again. A poll that fails is told and left out: the next one comes all the same.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tidings.errors import EngineError
from tidings.model.writing import write_file
from tidings.running.asking import Pages

# What is asked of each kind of broker: the page and its options.
PAGES: dict[str, tuple[str, dict[str, str | int]]] = {
    "jsz": ("jsz", {"consumers": "true", "stream-leader-only": "true"}),
    "rabbitmq": ("api/queues", {}),
    "burrow": ("lag", {}),  # below the address of a group
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Polled:
    """How many polls were written, and what came of those that failed."""

    polls: int
    problems: tuple[str, ...]


def poll(
    url: str,
    kind: str,
    folder: Path,
    *,
    every_s: float,
    for_s: float,
    tell: Callable[[str], None] = lambda stage: None,
) -> Polled:
    """Read a page every so many seconds, for so long, each into a file of its own.

    Polls keep their beat: one that is late does not delay those that follow. Raises EngineError
    where the first cannot be read: an address that is wrong is told at once.
    """
    pages = Pages(url, [])
    folder.mkdir(parents=True, exist_ok=True)
    problems: list[str] = []
    polls, planned = 0, int(for_s / every_s + 1e-9) + 1
    begin = time.monotonic()
    for number in range(planned):
        time.sleep(max(0.0, begin + number * every_s - time.monotonic()))
        tell(f"poll {number + 1} of {planned}")
        try:
            take(pages, kind, folder)
        except EngineError as problem:
            if not polls:
                raise EngineError(f"the first poll could not be read: {problem}") from None
            problems.append(str(problem))
            continue
        polls += 1
    return Polled(polls=polls, problems=tuple(problems))


def take(
    pages: Pages,
    kind: str,
    folder: Path,
    worth: Callable[[Mapping[str, Any]], bool] = lambda page: True,
) -> None:
    """Read a page once, and write it to a file of its own where it is worth it."""
    page, options = PAGES[kind]
    polled_ns = time.time_ns()
    document = pages.read(page, **options)
    whole = document if isinstance(document, dict) else {"page": document}
    if worth(whole):
        folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps({**whole, "polled_ns": polled_ns})
        write_file(folder / f"{polled_ns}.json", f"{text}\n".encode())
