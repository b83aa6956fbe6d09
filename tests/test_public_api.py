"""What is public is what was written down, so that it changes only where somebody means it to."""

from __future__ import annotations

import inspect
from pathlib import Path

import tidings as td
from public_api import lines

PINNED = Path(__file__).with_name("public_api.txt")


def test_nothing_public_changes_by_accident():
    now, pinned = set(lines()), set(PINNED.read_text(encoding="utf-8").splitlines())
    gone, new = sorted(pinned - now), sorted(now - pinned)
    assert not gone, "no longer there; docs/reference/stability.md says when that may be: " + str(
        gone
    )
    assert not new, f"new; write it down: python tests/public_api.py > {PINNED.name}: {new}"


def test_wherever_a_path_is_taken_text_is_taken_too():
    verbs = {name: getattr(td, name) for name in td.__all__ if inspect.isroutine(getattr(td, name))}
    taken = {
        f"{name}({each.name})": str(each.annotation)
        for name, verb in verbs.items()
        for each in inspect.signature(verb).parameters.values()
        if "Path" in str(each.annotation)
    }
    assert len(taken) > 9
    assert [name for name, kind in taken.items() if not kind.startswith("str | ")] == []
