"""How long work says where it is."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

# Told what is being done, in a few words. Who knows which of how many steps it is says so ("3 of
# 20"): the time left is told by that.
Progress = Callable[[str], None]


def numbered(progress: Progress, most: int) -> Progress:
    """Let every step say which it is, of so many at most.

    >>> said = []
    >>> tell = numbered(said.append, 2)
    >>> tell("reading"), tell("fitting")
    (None, None)
    >>> said
    ['reading, 1 of at most 2 steps', 'fitting, 2 of at most 2 steps']
    """
    numbers = count(1)
    return lambda step: progress(f"{step}, {next(numbers)} of at most {most} steps")
