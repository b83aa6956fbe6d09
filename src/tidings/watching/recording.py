"""The state of a watched system written to its folder: the latest whole, a line for each."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from tidings.model.json_text import parse
from tidings.model.plain_files import open_plain
from tidings.model.writing import write_file
from tidings.watching.state import NOW_FILE, PAST_FILE, State

MOST_LINES = 10_000
MOST_PAST = 21  # standings in a line: everybody and the worst


def write_state(folder: Path, state: State) -> None:
    """Write the latest state, and a line for time series; these are halved when they are many."""
    write_file(folder / NOW_FILE, json.dumps(state.to_document()).encode())
    path = folder / PAST_FILE
    short = replace(state, standings=state.standings[:MOST_PAST])
    lines = _lines(path)
    if len(lines) >= MOST_LINES:
        write_file(path, b"".join(each + b"\n" for each in lines[MOST_LINES // 2 :]))
    elif lines and not _is_whole(lines[-1]):  # of a run that was killed
        write_file(path, b"".join(each + b"\n" for each in lines[:-1]))
    with path.open("ab") as stream:
        stream.write(short.past_line().encode() + b"\n")


def _lines(path: Path) -> list[bytes]:
    if not path.exists():
        return []
    with open_plain(path) as file:
        return file.read().splitlines()


def _is_whole(line: bytes) -> bool:
    try:
        parse(line)
    except ValueError:
        return False
    return True
