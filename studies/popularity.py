"""How popular things are: shares that fall with the rank."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def zipf(count: int) -> NDArray[np.float64]:
    """Probabilities proportional to 1/rank.

    >>> zipf(3).round(4).tolist()
    [0.5455, 0.2727, 0.1818]
    """
    weights = 1.0 / np.arange(1, count + 1)
    return np.asarray(weights / weights.sum())
