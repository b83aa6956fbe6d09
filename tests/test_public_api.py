"""What is public is what was written down, so that it changes only where somebody means it to."""

from __future__ import annotations

from pathlib import Path

from public_api import lines

PINNED = Path(__file__).with_name("public_api.txt")


def test_nothing_public_changes_by_accident():
    now, pinned = set(lines()), set(PINNED.read_text(encoding="utf-8").splitlines())
    gone, new = sorted(pinned - now), sorted(now - pinned)
    assert not gone, "no longer there; docs/reference/stability.md says when that may be: " + str(
        gone
    )
    assert not new, f"new; write it down: python tests/public_api.py > {PINNED.name}: {new}"
