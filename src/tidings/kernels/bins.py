"""The bin of a delay on the common grid, fast: a table by the leading bits, and one comparison.

The leading five bits of a fraction split an octave into cells 3.1 % wide or less, narrower than the
grid's bins (4.7 %), so that a cell touches at most two bins.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidings.kernels.compile import inlined
from tidings.model import delay_grid

_SHIFT = 52 - 5  # of the 52 bits of a fraction, five are kept
_FIRST = int(np.float64(delay_grid.LOWEST_S).view(np.int64)) >> _SHIFT
_CELLS = (int(delay_grid.EDGES_S[-1].view(np.int64)) >> _SHIFT) - _FIRST + 1


def bin_tables() -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The lowest bin of every cell, and the greatest delay of every bin."""
    edges = _greatest_in_bin()
    starts = (np.arange(_FIRST, _FIRST + _CELLS, dtype=np.int64) << _SHIFT).view(np.float64)
    return delay_grid.bin_of(starts), edges


def _greatest_in_bin() -> NDArray[np.float64]:
    """The greatest number that ``bin_of`` puts in each bin, by bisection over the numbers' bits."""
    bins = np.arange(delay_grid.BINS - 1)
    low = (delay_grid.EDGES_S[:-1] * (1 - 1e-9)).view(np.int64)
    high = (delay_grid.EDGES_S[:-1] * (1 + 1e-6)).view(np.int64)
    while np.any(high - low > 1):
        middle = low + (high - low) // 2
        inside = delay_grid.bin_of(middle.view(np.float64)) <= bins
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    return np.append(low.view(np.float64), np.inf)


@inlined
def count_delay(place: Any, delay: float) -> None:
    """Count a delay in its bin, and see how low and how high the delays in it lie."""
    if place.value == 0:
        place.lowest = place.highest = delay
    elif delay < place.lowest:
        place.lowest = delay
    elif delay > place.highest:
        place.highest = delay
    place.value += 1


@inlined
def bin_of(delay: float, guess: Any, edges: Any) -> int:
    """The bin of a delay, as ``delay_grid.bin_of`` has it."""
    if delay <= edges[0]:
        return 0
    cell = (np.float64(delay).view(np.int64) >> _SHIFT) - _FIRST
    if cell >= guess.size:
        return edges.size - 1
    place = guess[cell]
    return place + 1 if delay > edges[place] else place
