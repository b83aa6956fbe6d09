"""Names in sentences."""

from __future__ import annotations

from collections.abc import Sequence

MOST_NAMES = 5  # that a sentence carries


def few(names: Sequence[str]) -> str:
    """Write the first names, and how many more there are.

    >>> few(["a", "b"]), few(list("abcdefg"))
    ('a, b', 'a, b, c, d, e and 2 more')
    """
    more = len(names) - MOST_NAMES
    return ", ".join(names[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
