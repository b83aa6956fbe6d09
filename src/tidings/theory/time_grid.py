"""Times that grow by a constant factor, from far below the shortest to far above the longest scale.

Curves are given at these times; in between they follow the logarithm of the time linearly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_PER_FACTOR_E = 28.0  # points, 64 in a decade
_MOST_POINTS = 1200


@dataclass(frozen=True, kw_only=True)
class TimeGrid:
    """``points`` times from ``first_s`` on, each e^step times the one before."""

    first_s: float
    step: float
    points: int

    @cached_property
    def times_s(self) -> Floats:
        """The times, in seconds."""
        times: Floats = self.first_s * np.exp(self.step * np.arange(self.points))
        return times

    def places(self, t_s: Floats) -> tuple[Ints, Floats]:
        """The point at or before each time, and how far on it is to the next, from 0 to 1."""
        place = np.log(np.maximum(t_s, 1e-300) / self.first_s) / self.step
        at = np.clip(np.floor(place), 0, self.points - 2).astype(np.int64)
        return at, np.clip(place - at, 0.0, 1.0)


def time_grid(shortest_s: float, longest_s: float) -> TimeGrid:
    """The grid between two times: 64 points a decade, fewer where that would be too many.

    >>> time_grid(0.01, 1.0).points
    130
    """
    width = math.log(longest_s / shortest_s)
    points = min(math.ceil(width * _PER_FACTOR_E) + 1, _MOST_POINTS)
    return TimeGrid(first_s=shortest_s, step=width / (points - 1), points=points)
